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
// then the next agent removes it.
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
	sweep(base)
	path, err := os.MkdirTemp(base, spoolPrefix)
	if err != nil {
		return nil, storage(err)
	}
	s := &spool{path: path}
	if s.lock, err = os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, storage(errors.Join(err, s.close()))
	}
	return s, nil
}

func storage(err error) error {
	return &proto.Error{Code: proto.CodeSystem, What: "storage of bundles", Detail: err.Error(), Remedy: "set TMPDIR to a directory with room, or choose storage: memory"}
}

// sweep removes what killed agents have left. One that cannot be locked is in use,
// one without a lock is being made, or is not ours.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), spoolPrefix) {
			continue
		}
		path := filepath.Join(base, e.Name())
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(path) // tried again by the next agent
		}
		_ = f.Close()
	}
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
