package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"fmt"
	"path"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// olderFiles hold for each older format n, as NNNN.sql, temporary views under
// the names of the tables of the newest format that a file of format n lacks or
// has otherwise. A reader lays them over the file, which stays as it is: an
// older hopbed can go on with it, and it may be one that cannot be written.
//
//go:embed older/*.sql
var olderFiles embed.FS

// connectOlder opens a file of an older format for reading as one of the newest
// format.
func connectOlder(ctx context.Context, abs string, format int) (*sqlx.DB, error) {
	name := fmt.Sprintf("older/%04d.sql", format)
	views, err := olderFiles.ReadFile(name)
	if err != nil {
		panic("store: " + path.Base(name) + " is missing: " + err.Error()) // a test keeps it there
	}
	// Temporary views belong to a connection: each of the pool gets its own.
	d := &sqlite.Driver{}
	d.RegisterConnectionHook(func(c sqlite.ExecQuerierContext, _ string) error {
		_, err := c.ExecContext(context.Background(), "PRAGMA query_only = 0;\n"+string(views)+"\nPRAGMA query_only = 1;", nil)
		return err
	})
	return connectRead(ctx, abs, func(dsn string) (*sqlx.DB, error) {
		return sqlx.NewDb(sql.OpenDB(opener{d, dsn}), driverName), nil
	})
}

// opener is a driver.Connector of a driver that is not registered.
type opener struct {
	d   *sqlite.Driver
	dsn string
}

func (o opener) Connect(context.Context) (driver.Conn, error) { return o.d.Open(o.dsn) }
func (o opener) Driver() driver.Driver                        { return o.d }
