package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotFound is wrapped by queries for one campaign or run that is not there.
var ErrNotFound = errors.New("not in the database")

// FormatError says that a file is not a database that this program can use.
// The file has not been changed.
type FormatError struct {
	Path  string
	Found int // format version of the file; 0 when it is not hopbed's at all
	Known int // newest format version that this program knows
	Cause string
}

// Error names the file, the reason and the remedy.
func (e *FormatError) Error() string {
	if e.Found > e.Known {
		return fmt.Sprintf("database %s has format %d, written by a newer hopbed; this one reads up to format %d: use the newer hopbed, or name another file with --db (the file was not changed)", e.Path, e.Found, e.Known)
	}
	return fmt.Sprintf("%s is not a hopbed database (%s): name another file with --db (the file was not changed)", e.Path, e.Cause)
}

// LockedError says that another hopbed is writing to the database.
type LockedError struct {
	Path   string
	Holder string // who holds it, e.g. "process 4711 on laptop since 2026-02-03T10:00:00.000Z"; "" when unknown
}

// Error names the holder and what to do.
func (e *LockedError) Error() string {
	who := e.Holder
	if who == "" {
		who = "another process"
	}
	return fmt.Sprintf("database %s is being written by %s: wait until it has finished, stop it, or name another file with --db", e.Path, who)
}

// BusyError says that a program other than hopbed kept the database locked
// for longer than the busy time-out.
type BusyError struct {
	Path string
	Op   string
	Err  error
}

// Error says what failed and what to do.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s: database %s is locked by another program (an open sqlite3 shell or browser?): close it there and run again with --resume: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns SQLite's error.
func (e *BusyError) Unwrap() error { return e.Err }

// RemovedError says that the file was removed, or replaced by another one, while
// it was open for writing.
type RemovedError struct{ Path string }

// Error says what that means.
func (e *RemovedError) Error() string {
	return fmt.Sprintf("database %s was removed or replaced while hopbed wrote to it: the results in it are lost, run again", e.Path)
}

// DiskFullError says that the file system of the database has no room left.
// Nothing of the failed operation was kept; what was stored before is intact.
type DiskFullError struct {
	Path string
	Op   string
	Err  error
}

// Error says what failed and what to do.
func (e *DiskFullError) Error() string {
	return fmt.Sprintf("%s: no space left for database %s; nothing of this was kept, earlier results are intact: free some space and run again with --resume: %v", e.Op, e.Path, e.Err)
}

// Unwrap returns SQLite's error.
func (e *DiskFullError) Unwrap() error { return e.Err }

// wrap turns SQLite's result codes into the errors above.
func (s *Store) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return wrapSQLite(s.path, op, err)
}

func wrapSQLite(path, op string, err error) error {
	var se *sqlite.Error
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return &DiskFullError{path, op, err}
		case sqlite3.SQLITE_IOERR:
			if diskFull(path) {
				return &DiskFullError{path, op, err}
			}
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return &BusyError{path, op, err}
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			return fmt.Errorf("%s: database %s is damaged; keep a copy and name another file with --db: %w", op, path, err)
		}
	}
	return fmt.Errorf("%s: database %s: %w", op, path, err)
}
