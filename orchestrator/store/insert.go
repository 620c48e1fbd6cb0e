package store

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
)

// table binds a record type to its table. The columns are the db tags of the
// type, in its order; skip names those that the database fills in.
type table struct {
	name   string
	fields []int
	cols   []string
}

func tableOf[T any](name string, skip ...string) table {
	t := table{name: name}
	rt := reflect.TypeFor[T]()
next:
	for i := range rt.NumField() {
		col := rt.Field(i).Tag.Get("db")
		for _, s := range skip {
			if col == s {
				continue next
			}
		}
		t.fields = append(t.fields, i)
		t.cols = append(t.cols, col)
	}
	return t
}

var (
	campaignsTable = tableOf[Campaign]("campaigns", "id")
	runsTable      = tableOf[Run]("runs", "id", "valid")
	nodesTable     = tableOf[Node]("nodes")
	linksTable     = tableOf[Link]("links")
	flowsTable     = tableOf[Flow]("flows")
	samplesTable   = tableOf[Sample]("samples")
	nodeStatsTable = tableOf[NodeStat]("node_stats")
	eventsTable    = tableOf[Event]("events")
	artifactsTable = tableOf[Artifact]("artifacts")
)

func (t table) statement(rows int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(t.cols)), ",") + ")"
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, strings.Join(t.cols, ","), strings.TrimSuffix(strings.Repeat(one+",", rows), ","))
}

func (t table) args(dst []any, row reflect.Value) []any {
	for _, f := range t.fields {
		dst = append(dst, row.Field(f).Interface())
	}
	return dst
}

func insertOne[T any](ctx context.Context, tx *sqlx.Tx, t table, row *T) (int64, error) {
	res, err := tx.ExecContext(ctx, t.statement(1), t.args(nil, reflect.ValueOf(row).Elem())...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// rowsPerStatement is where longer statements stop being faster (a run's
// samples are some 100,000 rows).
const rowsPerStatement = 32

func insertMany[T any](ctx context.Context, tx *sqlx.Tx, t table, rows []T) error {
	var (
		args = make([]any, 0, rowsPerStatement*len(t.cols))
		v    = reflect.ValueOf(rows)
		full *sql.Stmt
		err  error
	)
	for start := 0; start < len(rows); start += rowsPerStatement {
		n := min(rowsPerStatement, len(rows)-start)
		args = args[:0]
		for i := range n {
			args = t.args(args, v.Index(start+i))
		}
		switch {
		case n < rowsPerStatement:
			_, err = tx.ExecContext(ctx, t.statement(n), args...)
		case full == nil:
			if full, err = tx.PrepareContext(ctx, t.statement(n)); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			defer full.Close()
			fallthrough
		default:
			_, err = full.ExecContext(ctx, args...)
		}
		if err != nil {
			return fmt.Errorf("%s, rows %d to %d: %w", t.name, start, start+n-1, err)
		}
	}
	return nil
}
