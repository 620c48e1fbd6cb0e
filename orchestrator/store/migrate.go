package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"sort"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The migrations in the order of their names. Number n brings a file from
// format n-1 to format n. A migration that was released is never edited.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

func migrations() []string {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		panic("store: embedded migrations: " + err.Error()) // the compiler put them there
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sort.Strings(names)
	return names
}

// formatVersion is the newest format that this program knows.
func formatVersion() int { return len(migrations()) }

// migrate brings the file to the newest format, each step in a transaction of
// its own: a step that fails leaves the format before it.
func (s *Store) migrate(ctx context.Context) error {
	before, err := checkFormat(ctx, s.w, s.path)
	if err != nil {
		return err
	}
	for i, name := range migrations() {
		text, err := migrationFiles.ReadFile(path.Join("migrations", name))
		if err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
		if err := s.step(ctx, i+1, name, string(text)); err != nil {
			return err
		}
	}
	if 0 < before && before < formatVersion() {
		s.migrated = before
	}
	return nil
}

func (s *Store) step(ctx context.Context, version int, name, text string) error {
	return s.inTx(ctx, "migration "+name, func(tx *sqlx.Tx) error {
		// Read inside the transaction: the file may have changed since it
		// was inspected.
		have, err := checkFormat(ctx, tx, s.path)
		if err != nil || have >= version {
			return err
		}
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version))
		return err
	})
}

// inTx runs f in one immediate transaction; an error of f or of the commit
// leaves nothing.
func (s *Store) inTx(ctx context.Context, op string, f func(*sqlx.Tx) error) error {
	if s.w == nil {
		return fmt.Errorf("%s: database %s was opened for reading only", op, s.path)
	}
	if err := s.present(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	tx, err := s.w.BeginTxx(ctx, nil)
	if err != nil {
		return s.wrap(op, err)
	}
	if err := f(tx); err != nil {
		// SQLite rolls back by itself on a full disk or an I/O error, and
		// then has no transaction left to roll back.
		_ = tx.Rollback()
		var fe *FormatError
		if errors.As(err, &fe) {
			return err
		}
		return s.wrap(op, err)
	}
	return s.wrap(op, tx.Commit())
}

func isNotADatabase(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_NOTADB
}
