package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
	messagesTable  = tableOf[Message]("messages")
	nodeStatsTable = tableOf[NodeStat]("node_stats")
	pipesTable     = tableOf[Pipe]("pipes")
	eventsTable    = tableOf[Event]("events")
	artifactsTable = tableOf[Artifact]("artifacts")

	surveysTable     = tableOf[Survey]("surveys", "-")
	surveyLinksTable = tableOf[SurveyLink]("survey_links")
)

// statement inserts rows into the columns that the mask names.
func (t table) statement(rows int, mask uint64) string {
	var cols, marks []string
	for i, c := range t.cols {
		if mask&(1<<i) != 0 {
			cols = append(cols, c)
			marks = append(marks, "?")
		}
	}
	one := "(" + strings.Join(marks, ",") + "),"
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, strings.Join(cols, ","), strings.TrimSuffix(strings.Repeat(one, rows), ","))
}

// args appends a row's values, missing ones as nil.
func (t table) args(dst []any, row reflect.Value) ([]any, error) {
	for _, f := range t.fields {
		v := row.Field(f).Interface()
		if vr, is := v.(driver.Valuer); is {
			var err error
			if v, err = vr.Value(); err != nil {
				return nil, err
			}
		}
		dst = append(dst, v)
	}
	return dst, nil
}

func insertOne[T any](ctx context.Context, tx *sqlx.Tx, t table, row *T) (int64, error) {
	args, err := t.args(nil, reflect.ValueOf(row).Elem())
	if err != nil {
		return 0, err
	}
	res, err := tx.ExecContext(ctx, t.statement(1, 1<<len(t.cols)-1), args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// rowsPerStatement is where longer statements stop being faster (a run's
// samples are some 100,000 rows).
const rowsPerStatement = 32

// insertMany inserts rows in batches. A batch names only the columns that some
// row of it fills: most columns of a sample belong to one transport or one side
// of a flow, and binding NULLs would take most of the time. The rows go in by
// the given order, nil for their own.
func insertMany[T any](ctx context.Context, tx *sqlx.Tx, t table, rows []T, order []int) error {
	full := map[uint64]*sql.Stmt{} // by mask, for whole batches
	defer func() {
		for _, s := range full {
			s.Close()
		}
	}()
	var (
		all, some []any
		v         = reflect.ValueOf(rows)
		err       error
	)
	for start := 0; start < len(rows); start += rowsPerStatement {
		n := min(rowsPerStatement, len(rows)-start)
		all = all[:0]
		for i := range n {
			at := start + i
			if order != nil {
				at = order[at]
			}
			if all, err = t.args(all, v.Index(at)); err != nil {
				return fmt.Errorf("%s, row %d: %w", t.name, at, err)
			}
		}
		var mask uint64
		for i, a := range all {
			if a != nil {
				mask |= 1 << (i % len(t.cols))
			}
		}
		some = some[:0]
		for i, a := range all {
			if mask&(1<<(i%len(t.cols))) != 0 {
				some = append(some, a)
			}
		}
		if n < rowsPerStatement {
			_, err = tx.ExecContext(ctx, t.statement(n, mask), some...)
		} else {
			s := full[mask]
			if s == nil {
				if s, err = tx.PrepareContext(ctx, t.statement(n, mask)); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
				full[mask] = s
			}
			_, err = s.ExecContext(ctx, some...)
		}
		if err != nil {
			return fmt.Errorf("%s, rows %d to %d: %w", t.name, start, start+n-1, err)
		}
	}
	return nil
}
