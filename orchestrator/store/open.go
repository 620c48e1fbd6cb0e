package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// driverName is what modernc.org/sqlite registers itself as; sqlx knows only
// "sqlite3" and has to be told how this one marks its parameters.
const driverName = "sqlite"

// busyTimeoutMS is how long a statement waits for a lock that another program
// holds. hopbed itself never holds one for longer than saving a run takes.
const busyTimeoutMS = 10_000

// applicationID marks the file as hopbed's (SQLite's PRAGMA application_id):
// the ASCII letters "hopb".
const applicationID = 0x686f7062

// Store is an open database. It is safe for concurrent use; writes are
// serialised.
type Store struct {
	path string   // as it was given, for people
	abs  string   // of the file itself
	w    *sqlx.DB // one connection; nil when opened for reading only
	r    *sqlx.DB
	lock *writerLock
	// migrated is the format that the file had, 0 where it was made or is as it
	// was.
	migrated int
	file     fs.FileInfo // of the file that was opened for writing
}

// Open opens the database at path for writing, creating it and bringing its
// format up to date as needed. It returns *LockedError when another hopbed is
// writing to it, *FormatError when the file is something else or newer, and
// *DiskFullError when there is no room.
func Open(ctx context.Context, path string) (*Store, error) {
	abs, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if st, err := os.Stat(filepath.Dir(abs)); err != nil {
		return nil, fmt.Errorf("database %s: its folder: %w", path, err)
	} else if !st.IsDir() {
		return nil, fmt.Errorf("database %s: %s is not a folder", path, filepath.Dir(abs))
	}
	if _, err := inspect(ctx, abs, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lock, err := acquire(abs)
	if err != nil {
		return nil, err
	}
	// Only under the lock: before, another hopbed may have been about to make it.
	_, statErr := os.Stat(abs)
	made := errors.Is(statErr, fs.ErrNotExist)
	s := &Store{path: path, abs: abs, lock: lock}
	if err := s.openWriter(ctx, abs); err != nil {
		if made {
			_ = os.Remove(abs) // a file without content would only raise questions
		}
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// resolve returns the path of the file itself: SQLite's log and our lock are
// beside it, whatever links lead to it.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	switch {
	case err == nil:
		return real, nil
	case errors.Is(err, fs.ErrNotExist): // it will be made
		return abs, nil
	}
	return "", err
}

func (s *Store) openWriter(ctx context.Context, abs string) error {
	var err error
	// Full synchronisation: one fsync for each run is cheap, and a run that
	// was reported as saved survives a power cut.
	s.w, err = connect(abs, "rwc", "_txlock=immediate", "_pragma=journal_mode(wal)", "_pragma=synchronous(full)", "_pragma=foreign_keys(1)")
	if err != nil {
		return s.wrap("open", err)
	}
	s.w.SetMaxOpenConns(1)
	if err := s.w.PingContext(ctx); err != nil {
		return s.wrap("open", err)
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if s.file, err = os.Stat(abs); err != nil {
		return fmt.Errorf("database %s: %w", s.path, err)
	}
	s.r, err = connectRead(ctx, abs, registered)
	return s.wrap("open", err)
}

// present checks that the file is still where it was opened: SQLite would go on
// writing into one that was removed, and everything would be gone with the
// process.
func (s *Store) present() error {
	if s.file == nil {
		return nil // it is being made
	}
	now, err := os.Stat(s.abs)
	if err == nil && os.SameFile(now, s.file) {
		return nil
	}
	return &RemovedError{Path: s.path}
}

// OpenRead opens the database at path for reading. It takes no lock and
// changes nothing: a campaign that is being written can be read, and a file of
// an older format is read as it is.
func OpenRead(ctx context.Context, path string) (*Store, error) {
	abs, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	version, err := inspect(ctx, abs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("database %s does not exist: run an experiment first, or name another file with --db: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, abs: abs}
	switch {
	case version == 0:
		return nil, fmt.Errorf("database %s is empty: run an experiment first, or name another file with --db: %w", path, ErrNotFound)
	case version < formatVersion():
		s.r, err = connectOlder(ctx, abs, version)
	default:
		s.r, err = connectRead(ctx, abs, registered)
	}
	if err != nil {
		return nil, s.wrap("open", err)
	}
	return s, nil
}

// Close lets go of the database.
func (s *Store) Close() error {
	var errs []error
	if s.r != nil {
		errs = append(errs, s.wrap("close", s.r.Close()))
	}
	// The writer last: the last connection to close empties the write-ahead
	// log into the file and removes it.
	if s.w != nil {
		errs = append(errs, s.wrap("close", s.w.Close()))
	}
	errs = append(errs, s.lock.release())
	return errors.Join(errs...)
}

// Migrated tells that Open has brought the file from an older format to the
// newest one, which an older hopbed cannot read.
func (s *Store) Migrated() (from, to int, ok bool) {
	return s.migrated, formatVersion(), s.migrated > 0
}

// Path returns the path that the store was opened with.
func (s *Store) Path() string { return s.path }

// dialer makes a pool of connections.
type dialer func(dsn string) (*sqlx.DB, error)

// registered uses the driver that its package has registered.
func registered(dsn string) (*sqlx.DB, error) {
	sqlx.BindDriver(driverName, sqlx.QUESTION)
	return sqlx.Open(driverName, dsn)
}

func connect(abs, mode string, params ...string) (*sqlx.DB, error) {
	return registered(source(abs, mode, params...))
}

// source names a file and how it is opened to the driver.
func source(abs, mode string, params ...string) string {
	dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: abs}).String() + "?mode=" + mode + fmt.Sprintf("&_pragma=busy_timeout(%d)", busyTimeoutMS)
	for _, p := range params {
		dsn += "&" + p
	}
	return dsn
}

// connectRead opens for reading. A database in write-ahead mode needs its log
// and index files even then, and only a connection that may write removes them
// again when it is the last; so the file is opened for writing with a promise
// not to. Where it cannot be written and no log is waiting, it cannot change
// and needs no such files.
func connectRead(ctx context.Context, abs string, dial dialer) (*sqlx.DB, error) {
	db, first := connectProbed(ctx, dial, abs, "rw", "_pragma=query_only(1)")
	if first == nil {
		return db, nil
	}
	if hasLog(abs) {
		return connectProbed(ctx, dial, abs, "ro", "_pragma=query_only(1)")
	}
	if db, err := connectProbed(ctx, dial, abs, "ro", "immutable=1"); err == nil {
		return db, nil
	}
	return nil, first
}

// connectUntouched opens a file that may not be ours, leaving it and its
// folder as they are.
func connectUntouched(ctx context.Context, abs string) (*sqlx.DB, error) {
	if hasLog(abs) {
		return connectProbed(ctx, registered, abs, "ro", "_pragma=query_only(1)")
	}
	return connectProbed(ctx, registered, abs, "ro", "immutable=1")
}

func hasLog(abs string) bool {
	_, err := os.Stat(abs + "-wal")
	return !errors.Is(err, fs.ErrNotExist)
}

func connectProbed(ctx context.Context, dial dialer, abs, mode string, params ...string) (*sqlx.DB, error) {
	db, err := dial(source(abs, mode, params...))
	if err != nil {
		return nil, err
	}
	var n int
	if err := db.GetContext(ctx, &n, "SELECT count(*) FROM sqlite_master"); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// inspect looks at a file without changing it. It returns the format version
// (0 for an empty file), fs.ErrNotExist, or *FormatError.
func inspect(ctx context.Context, abs, path string) (int, error) {
	st, err := os.Stat(abs)
	if err != nil {
		return 0, fmt.Errorf("database %s: %w", path, err)
	}
	if !st.Mode().IsRegular() {
		return 0, &FormatError{Path: path, Known: formatVersion(), Cause: "not a regular file"}
	}
	if st.Size() == 0 {
		return 0, nil
	}
	db, err := connectUntouched(ctx, abs)
	if err != nil {
		if isNotADatabase(err) {
			return 0, &FormatError{Path: path, Known: formatVersion(), Cause: "not SQLite"}
		}
		return 0, wrapSQLite(path, "open", err)
	}
	defer db.Close()
	return checkFormat(ctx, db, path)
}

func checkFormat(ctx context.Context, q sqlx.QueryerContext, path string) (int, error) {
	var app, version, tables int
	for _, c := range []struct {
		dst   *int
		query string
	}{
		{&app, "PRAGMA application_id"},
		{&version, "PRAGMA user_version"},
		{&tables, "SELECT count(*) FROM sqlite_master"},
	} {
		if err := sqlx.GetContext(ctx, q, c.dst, c.query); err != nil {
			return 0, wrapSQLite(path, "open", err)
		}
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, &FormatError{Path: path, Known: formatVersion(), Cause: "an SQLite file of another application"}
	case version > formatVersion():
		return 0, &FormatError{Path: path, Found: version, Known: formatVersion()}
	}
	return version, nil
}

// notFound makes sql.ErrNoRows speak.
func notFound(err error, what string, id int64) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s %d: %w", what, id, ErrNotFound)
	}
	return err
}
