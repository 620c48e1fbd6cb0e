//go:build linux

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

// spool is the directory below which an agent keeps its flows' bundles. It is
// removed with the endpoint. An agent that was killed leaves it behind, unlocked:
// then SweepStorage removes it, in the next agent or in hopbed clean.
type spool struct {
	path string
	lock *os.File
}

const (
	spoolPrefix = "hopbed-bundles-"
	lockName    = "lock"
)

// newSpool makes the directory, on the file system of the temporary files
// (TMPDIR). A run's results do not depend on it: what a relay still holds at the
// end of a run is of no use after it.
func newSpool() (*spool, error) {
	base := os.TempDir()
	_, _ = SweepStorage(base) // tried again by the next agent
	path, err := os.MkdirTemp(base, spoolPrefix)
	if err != nil {
		return nil, storage(err)
	}
	s := &spool{path: path}
	// The lock gets its name when it is held: other agents start at this moment, and
	// whoever finds the name must not find it unlocked.
	lock := filepath.Join(path, lockName)
	if s.lock, err = os.OpenFile(lock+".new", os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		if err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			err = os.Rename(lock+".new", lock)
		}
	}
	if err != nil {
		return nil, storage(errors.Join(err, s.close()))
	}
	return s, nil
}

func storage(err error) error {
	return &proto.Error{Code: proto.CodeSystem, What: "storage of bundles", Detail: err.Error(), Remedy: "set TMPDIR to a directory with room, or choose storage: memory"}
}

// SweepStorage removes the storage of bundles that killed agents have left in a
// folder of temporary files, and returns what it removed. What is in use, and what
// has no lock, because it is being made or is not hopbed's, is left alone. The
// error says what could not be removed.
func SweepStorage(base string) (removed []string, err error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, fmt.Errorf("storage of bundles: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), spoolPrefix) || !e.IsDir() {
			continue
		}
		path := filepath.Join(base, e.Name())
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			if err := os.RemoveAll(path); err != nil {
				errs = append(errs, fmt.Errorf("storage of bundles: %w", err))
			} else {
				removed = append(removed, path)
			}
		}
		_ = f.Close()
	}
	return removed, errors.Join(errs...)
}

// flow returns the directory of a flow.
func (s *spool) flow(id int) string { return filepath.Join(s.path, fmt.Sprintf("flow%d", id)) }

// close removes the directory.
func (s *spool) close() error {
	if s == nil {
		return nil
	}
	err := os.RemoveAll(s.path)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
