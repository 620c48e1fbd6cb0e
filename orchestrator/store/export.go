package store

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Format is a format of Export.
type Format string

// The formats of Export.
const (
	FormatCSV  Format = "csv"  // RFC 4180 with a header line; NULL is an empty cell, empty text is ""
	FormatJSON Format = "json" // an array of objects, one a line; NULL is null
)

// export is how one table is exported: its query over the selected runs, and
// which columns hold JSON. A JSON export nests those instead of quoting them.
type export struct {
	query string
	json  []string
}

// Every table says which back end its numbers came from.
var exports = map[string]export{
	"campaigns": {"SELECT c.* FROM campaigns c WHERE c.id IN (SELECT r.campaign_id FROM runs r WHERE %s) ORDER BY c.id",
		[]string{"host_facts"}},
	"runs": {"SELECT r.* FROM runs r WHERE %s ORDER BY r.id",
		[]string{"params", "invalid_reasons", "warnings", "facts"}},
	"nodes": {"SELECT t.*, r.backend FROM nodes t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.node",
		[]string{"facts"}},
	"links": {"SELECT t.*, r.backend FROM links t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.src, t.dst", nil},
	"flows": {"SELECT t.*, r.campaign_id, r.backend, r.seed, r.repetition, r.params, r.valid, r.quick FROM flows t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.flow",
		[]string{"path", "counters", "params"}},
	"node_stats": {"SELECT t.*, r.backend FROM node_stats t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.node, t.ac", nil},
	"pipes":      {"SELECT t.*, r.backend FROM pipes t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.pipe, t.src", nil},
	"events":     {"SELECT t.*, r.backend FROM events t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.seq", nil},
	"artifacts":  {"SELECT t.*, r.backend FROM artifacts t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.path", nil},
	"messages":   {"SELECT t.*, r.backend FROM messages t JOIN runs r ON r.id = t.run_id WHERE %s ORDER BY t.run_id, t.flow, t.message", nil},
	"surveys": {"SELECT t.*, c.backend FROM surveys t JOIN campaigns c ON c.id = t.campaign_id WHERE t.campaign_id IN (SELECT r.campaign_id FROM runs r WHERE %s) ORDER BY t.campaign_id, t.survey",
		[]string{"params", "nodes", "mute"}},
	"survey_links": {"SELECT t.*, c.backend FROM survey_links t JOIN campaigns c ON c.id = t.campaign_id WHERE t.campaign_id IN (SELECT r.campaign_id FROM runs r WHERE %s) ORDER BY t.campaign_id, t.survey, t.src, t.dst",
		[]string{"lost"}},
	// The goodput of a sample is over the time since the sample before it,
	// however long ago that is: a gap stays visible in t_us.
	"samples": {`SELECT t.*, r.backend, 8e6 * (delivered_bytes - lag(delivered_bytes) OVER w) / (t_us - lag(t_us) OVER w) AS goodput_bps
		FROM samples t JOIN runs r ON r.id = t.run_id WHERE %s
		WINDOW w AS (PARTITION BY t.run_id, t.flow, t.side, t.node ORDER BY t.t_us)
		ORDER BY t.run_id, t.flow, t.side, t.node, t.t_us`, nil},
}

// ExportTables returns the names of the tables that Export knows.
func ExportTables() []string {
	var names []string
	for n := range exports {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Export writes a table's rows of the selected runs to w, row by row.
func (s *Store) Export(ctx context.Context, w io.Writer, tableName string, format Format, f Filter) error {
	var write func(*bufio.Writer, *sql.Rows, []string) error
	switch format {
	case FormatCSV:
		write = writeCSV
	case FormatJSON:
		write = writeJSON
	default:
		return fmt.Errorf("export: there is no format %q: use %s or %s", format, FormatCSV, FormatJSON)
	}
	rows, exp, err := s.exported(ctx, tableName, f)
	if err != nil {
		return err
	}
	defer rows.Close()
	out := bufio.NewWriterSize(w, 64<<10)
	if err := write(out, rows, exp.json); err != nil {
		return fmt.Errorf("export %s: %w", tableName, err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export %s: %w", tableName, err)
	}
	return nil
}

// exported are the rows of a table of the selected runs.
func (s *Store) exported(ctx context.Context, tableName string, f Filter) (*sql.Rows, export, error) {
	exp, ok := exports[tableName]
	if !ok {
		return nil, exp, fmt.Errorf("export: there is no table %q: use one of %s", tableName, strings.Join(ExportTables(), ", "))
	}
	where, args := f.where()
	rows, err := s.r.QueryContext(ctx, fmt.Sprintf(exp.query, where), args...)
	if err != nil {
		return nil, exp, s.wrap("export "+tableName, err)
	}
	return rows, exp, nil
}

// Kind is what a column of an exported table holds; any may be NULL.
type Kind string

// The kinds of columns, by the names that SQLite has for them.
const (
	KindInteger Kind = "INTEGER"
	KindReal    Kind = "REAL"
	KindText    Kind = "TEXT"
)

// Column is a column of an exported table.
type Column struct {
	Name string
	Kind Kind
	JSON bool // a text that is a JSON document
}

// Rows reads a table of the selected runs, as Export has it: begin is called once
// with the columns, then row with the values of each row in their order, int64,
// float64, string or nil, which are row's until it returns.
func (s *Store) Rows(ctx context.Context, tableName string, f Filter, begin func([]Column) error, row func([]any) error) error {
	rows, exp, err := s.exported(ctx, tableName, f)
	if err != nil {
		return err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return s.wrap("export "+tableName, err)
	}
	cols := make([]Column, len(types))
	for i, t := range types {
		cols[i] = Column{t.Name(), Kind(t.DatabaseTypeName()), slices.Contains(exp.json, t.Name())}
		switch cols[i].Kind {
		case KindInteger, KindReal, KindText:
		default: // computed, as goodput_bps is
			cols[i].Kind = KindReal
		}
	}
	if err := begin(cols); err != nil {
		return fmt.Errorf("export %s: %w", tableName, err)
	}
	err = eachRow(rows, len(cols), func(vals []any) error {
		for i, v := range vals {
			ok := v == nil
			switch cols[i].Kind {
			case KindInteger:
				_, is := v.(int64)
				ok = ok || is
			case KindReal:
				if n, is := v.(int64); is { // a whole number of a computed column
					vals[i] = float64(n)
				}
				_, is := vals[i].(float64)
				ok = ok || is
			case KindText:
				if v != nil {
					t, err := text(v)
					if err != nil {
						return err
					}
					vals[i], ok = t, true
				}
			}
			if !ok {
				return fmt.Errorf("column %s holds %v (%T), not %s", cols[i].Name, v, v, cols[i].Kind)
			}
		}
		return row(vals)
	})
	return s.wrap("export "+tableName, err)
}

// eachRow scans every row into values of the driver's own types: int64,
// float64, string or nil.
func eachRow(rows *sql.Rows, cols int, f func([]any) error) error {
	vals := make([]any, cols)
	ptrs := make([]any, cols)
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		if err := f(vals); err != nil {
			return err
		}
	}
	return rows.Err()
}

func writeCSV(out *bufio.Writer, rows *sql.Rows, _ []string) error {
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	out.WriteString(strings.Join(cols, ",") + "\r\n")
	var buf []byte
	return eachRow(rows, len(cols), func(vals []any) error {
		buf = buf[:0]
		for i, v := range vals {
			if i > 0 {
				buf = append(buf, ',')
			}
			switch v := v.(type) {
			case nil:
			case int64:
				buf = strconv.AppendInt(buf, v, 10)
			case float64:
				buf = appendFloat(buf, v)
			default:
				t, err := text(v)
				if err != nil {
					return err
				}
				buf = appendCSVText(buf, t)
			}
		}
		_, err := out.Write(append(buf, '\r', '\n'))
		return err
	})
}

// appendFloat writes the shortest text that reads back as the same number.
func appendFloat(buf []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendFloat(buf, v, 'f', 1, 64)
	}
	return strconv.AppendFloat(buf, v, 'g', -1, 64)
}

// appendCSVText quotes by RFC 4180 where needed, and the empty text always, so
// that it differs from NULL.
func appendCSVText(buf []byte, t string) []byte {
	if t != "" && !strings.ContainsAny(t, ",\"\r\n") {
		return append(buf, t...)
	}
	buf = append(buf, '"')
	buf = append(buf, strings.ReplaceAll(t, `"`, `""`)...)
	return append(buf, '"')
}

func writeJSON(out *bufio.Writer, rows *sql.Rows, nested []string) error {
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	names := make([]string, len(cols))
	for i, c := range cols {
		b, err := json.Marshal(c)
		if err != nil {
			return err
		}
		names[i] = string(b)
	}
	out.WriteString("[")
	first := true
	var buf []byte
	err = eachRow(rows, len(cols), func(vals []any) error {
		buf = append(buf[:0], ",\n{"...)
		if first {
			buf = append(buf[:0], "\n{"...)
			first = false
		}
		for i, v := range vals {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, names[i]...)
			buf = append(buf, ':')
			switch v := v.(type) {
			case nil:
				buf = append(buf, "null"...)
			case int64:
				buf = strconv.AppendInt(buf, v, 10)
			case float64:
				if math.IsInf(v, 0) {
					buf = append(buf, "null"...)
					continue
				}
				buf = appendFloat(buf, v)
			default:
				t, err := text(v)
				if err != nil {
					return err
				}
				if slices.Contains(nested, cols[i]) {
					buf = append(buf, t...) // the schema checks that it is JSON
					continue
				}
				b, err := json.Marshal(t)
				if err != nil {
					return err
				}
				buf = append(buf, b...)
			}
		}
		_, err := out.Write(append(buf, '}'))
		return err
	})
	if err != nil {
		return err
	}
	_, err = out.WriteString("\n]\n")
	return err
}
