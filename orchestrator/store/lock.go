package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// writerLock keeps a second hopbed from writing to the same database. SQLite's
// own locks would let both in, one transaction after the other, and two
// campaigns would then disturb each other's measurements unseen.
//
// It is a lock on a file beside the database, not on the database itself:
// closing any descriptor of a file drops the POSIX locks that SQLite holds on
// it. The kernel releases it when the process dies, so there is no stale lock.
type writerLock struct{ f *os.File }

func lockPath(db string) string { return db + "-lock" }

// A reader that looks whether somebody writes holds the lock for an instant.
const (
	lockTries = 5
	lockPause = 20 * time.Millisecond
)

// BeingWritten says whether a hopbed has the database open for writing now: a
// campaign that is marked as running and has no writer was killed.
func (s *Store) BeingWritten() bool {
	if s.lock != nil {
		return true
	}
	f, err := os.OpenFile(lockPath(s.abs), os.O_RDWR, 0)
	if err != nil {
		// Without a right to it nothing is known; the campaign's own word counts.
		return !errors.Is(err, os.ErrNotExist)
	}
	defer f.Close() // and with it the lock
	busy, _ := lockFile(f)
	return busy
}

func acquire(db string) (*writerLock, error) {
	for try := 1; ; {
		f, err := os.OpenFile(lockPath(db), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock of database %s: %w: results need a folder that you may write to (--db PATH)", db, err)
		}
		if busy, err := lockFile(f); err != nil {
			if busy && try < lockTries {
				f.Close()
				try++
				time.Sleep(lockPause)
				continue
			}
			defer f.Close()
			if busy {
				b := make([]byte, 200)
				n, _ := f.ReadAt(b, 0) // the holder is only for the message
				return nil, &LockedError{Path: db, Holder: strings.TrimSpace(string(b[:n]))}
			}
			return nil, fmt.Errorf("lock of database %s: %w", db, err)
		}
		// The previous holder removes the file before it lets go: what was
		// locked may be a file that nobody else can find any more.
		held, err1 := f.Stat()
		named, err2 := os.Stat(lockPath(db))
		if err1 != nil || err2 != nil || !os.SameFile(held, named) {
			f.Close()
			if err2 != nil && !errors.Is(err2, os.ErrNotExist) {
				return nil, fmt.Errorf("lock of database %s: %w", db, err2)
			}
			continue
		}
		l := &writerLock{f}
		host, _ := os.Hostname() // only for the message
		who := fmt.Sprintf("process %d on %s since %s\n", os.Getpid(), host, StampOf(time.Now()))
		// A full disk must not keep a reader of the message from the lock
		// itself, which is already held: the text is best effort.
		_ = f.Truncate(0)
		_, _ = f.WriteAt([]byte(who), 0)
		return l, nil
	}
}

func (l *writerLock) release() error {
	if l == nil || l.f == nil {
		return nil
	}
	err := unlockFile(l.f)
	l.f = nil
	return err
}
