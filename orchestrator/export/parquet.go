package export

import (
	"context"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// parquetRows is how many rows are written at once.
const parquetRows = 1024

// groupRows bounds a row group: what a reader must load at least.
const groupRows = 1 << 17

// ParquetTable names the table in a file's key-value metadata, beside who wrote it
// (ParquetVersion).
const (
	ParquetTable   = "hopbed.table"
	ParquetVersion = "hopbed.version"
)

// Parquet writes a table's rows of the selected runs as an Apache Parquet file:
// integers as INT64, numbers as DOUBLE, texts as UTF-8 strings, JSON documents as
// strings with the logical type JSON. Every column is optional, NULL being null.
// Columns stand in alphabetical order, as the library has groups. Rows stream; no
// more than a row group is held.
func Parquet(ctx context.Context, st *store.Store, w io.Writer, table, version string, f store.Filter) error {
	var (
		out   *parquet.GenericWriter[any]
		place []int // of a column of the table among those of the file
		rows  []parquet.Row
	)
	flush := func() error {
		_, err := out.WriteRows(rows)
		rows = rows[:0]
		return err
	}
	begin := func(cols []store.Column) error {
		group := parquet.Group{}
		for _, c := range cols {
			if _, twice := group[c.Name]; twice {
				return fmt.Errorf("two columns have the name %s", c.Name)
			}
			group[c.Name] = parquet.Optional(parquet.Compressed(node(&c), &parquet.Zstd))
		}
		schema := parquet.NewSchema(table, group)
		for _, c := range cols {
			leaf, ok := schema.Lookup(c.Name)
			if !ok {
				return fmt.Errorf("the schema lost the column %s", c.Name)
			}
			place = append(place, leaf.ColumnIndex)
		}
		out = parquet.NewGenericWriter[any](w, schema, parquet.MaxRowsPerRowGroup(groupRows), parquet.CreatedBy("hopbed", version, ""),
			parquet.KeyValueMetadata(ParquetTable, table), parquet.KeyValueMetadata(ParquetVersion, version))
		return nil
	}
	err := st.Rows(ctx, table, f, begin, func(vals []any) error {
		row := make(parquet.Row, len(vals))
		for i, v := range vals {
			at := place[i]
			switch v := v.(type) {
			case nil:
				row[at] = parquet.NullValue().Level(0, 0, at)
			case int64:
				row[at] = parquet.Int64Value(v).Level(0, 1, at)
			case float64:
				row[at] = parquet.DoubleValue(v).Level(0, 1, at)
			case string:
				row[at] = parquet.ByteArrayValue([]byte(v)).Level(0, 1, at)
			default:
				return fmt.Errorf("a value of type %T", v)
			}
		}
		if rows = append(rows, row); len(rows) == parquetRows {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return fmt.Errorf("export %s: %w", table, err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("export %s: %w", table, err)
	}
	return nil
}

func node(c *store.Column) parquet.Node {
	switch {
	case c.Kind == store.KindInteger:
		return parquet.Int(64)
	case c.Kind == store.KindReal:
		return parquet.Leaf(parquet.DoubleType)
	case c.JSON:
		return parquet.JSON()
	}
	return parquet.String()
}
