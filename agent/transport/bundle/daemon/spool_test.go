//go:build linux

package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// What a killed agent has left goes; what is in use, or not ours, stays.
func TestSweepStorage(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	used, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	killed, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(killed.flow(3), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := killed.lock.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	foreign := filepath.Join(base, spoolPrefix+"foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	removed, err := SweepStorage(base)
	if err != nil || len(removed) != 1 || removed[0] != killed.path {
		t.Errorf("removed %q, %v; want %q", removed, err, killed.path)
	}
	if _, err := os.Stat(killed.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the killed agent's: %v", err)
	}
	for _, path := range []string{used.path, foreign} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if err := used.close(); err != nil {
		t.Error(err)
	}
}

// Agents start at once; none may take another's storage for one that was left.
func TestAgentsStartAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				s, err := newSpool()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(s.path); err != nil {
					t.Error(err)
				}
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
