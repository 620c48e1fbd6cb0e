//go:build linux

package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/internal/testenv"
)

// dead makes a journal whose agent has ended, with three records of which the
// second was carried out.
func dead(t *testing.T, dir string) string {
	t.Helper()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"one", "two", "three"} {
		if err := j.Push(uint64(i+1), New("note", what, fmt.Sprint(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Done(2); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return j.Path()
}

func replayAll(t *testing.T, dir string, table Table) []*Replayed {
	t.Helper()
	r, err := Replay(t.Context(), dir, table)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJournalIsReplayed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	var done []string
	table := notes(&done, new(bool))
	path := dead(t, dir)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the journal has the mode %v, %v", st.Mode(), err)
	}
	r := replayAll(t, dir, table)
	if len(r) != 1 || !slices.Equal(r[0].Undone, []string{"three", "one"}) || r[0].Owner != os.Getpid() || r[0].Left() || !slices.Equal(done, []string{"3", "1"}) {
		t.Fatalf("%+v, done %v", r, done)
	}
	if lines := r[0].Lines(); len(lines) != 1 || !strings.Contains(lines[0], "were put back: three, one") {
		t.Errorf("%q", lines)
	}
	if r := replayAll(t, dir, table); len(r) != 0 {
		t.Errorf("once more: %+v", r)
	}
}

// However many runs an agent carries out, its journal does not grow.
func TestJournalDoesNotGrow(t *testing.T) {
	j, err := Create(filepath.Join(t.TempDir(), "undo"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Remove()
	w, err := Inherit(j.File(), j.Path())
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		st, err := os.Stat(j.Path())
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	var done []string
	s, before := NewStack(notes(&done, new(bool)), nil, w), size()
	for range 3 {
		for range 5 {
			if err := s.Push(New("note", "it", "x")); err != nil {
				t.Fatal(err)
			}
		}
		if size() == before {
			t.Fatal("nothing was written")
		}
		s.Revert(t.Context())
		if size() != before {
			t.Errorf("the journal has %d bytes, %d before", size(), before)
		}
	}
}

// A record that fails stays in the file, and only it.
func TestReplayThatFailsIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{"note", "stuck", "note"} {
		if err := j.Push(uint64(i+1), New(kind, kind, fmt.Sprint(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	var done []string
	stuck := true
	r := replayAll(t, dir, notes(&done, &stuck))
	if len(r) != 1 || !r[0].Left() || len(r[0].Failed) != 1 || len(r[0].Lines()) != 2 {
		t.Fatalf("%+v", r[0])
	}
	stuck = false
	r = replayAll(t, dir, notes(&done, &stuck))
	if len(r) != 1 || r[0].Left() || !slices.Equal(done, []string{"3", "1", "2"}) {
		t.Errorf("%+v, done %v", r, done)
	}
}

// Of an agent that lives nothing is touched.
func TestJournalOfTheLivingIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	var done []string
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Push(1, New("note", "one", "1")); err != nil {
		t.Fatal(err)
	}
	if r := replayAll(t, dir, notes(&done, new(bool))); len(r) != 0 || len(done) != 0 {
		t.Errorf("%+v, done %v", r, done)
	}
	if err := j.Remove(); err != nil {
		t.Error(err)
	}
}

// edit changes the first line of a journal.
func edit(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	var h map[string]any
	if err := json.Unmarshal([]byte(first), &h); err != nil {
		t.Fatal(err)
	}
	change(h)
	line, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(string(line)+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestJournalOfAnotherBootIsForgotten(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another boot":     func(h map[string]any) { h["boot"] = "00000000-0000-0000-0000-000000000000" },
		"a dead namespace": func(h map[string]any) { h["netns"] = map[string]any{"inode": "net:[1]", "cookie": 1} },
	} {
		dir := filepath.Join(t.TempDir(), "undo")
		var done []string
		edit(t, dead(t, dir), change)
		r := replayAll(t, dir, notes(&done, new(bool)))
		if name == "a dead namespace" && unseen() {
			// A process that may not be looked at may be in it: it is left alone.
			if len(r) != 1 || !r[0].Elsewhere || len(done) != 0 {
				t.Errorf("%s: %+v, done %v", name, r, done)
			}
			continue
		}
		if len(r) != 1 || r[0].Forgotten == "" || len(done) != 0 {
			t.Errorf("%s: %+v, done %v", name, r, done)
		}
		if list, _ := os.ReadDir(dir); len(list) != 0 {
			t.Errorf("%s: %v is left", name, list)
		}
	}
}

// unseen reports whether there is a process that may not be looked at.
func unseen() bool {
	pids, err := procfs.PIDs()
	for _, pid := range pids {
		if pid == 1 {
			continue
		}
		_, e := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		err = errors.Join(err, e)
	}
	return errors.Is(err, os.ErrPermission)
}

// A record that was being written when its process was killed is no record.
func TestTornLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	path := dead(t, dir)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id":4,"record":{"kind":"no`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var done []string
	if r := replayAll(t, dir, notes(&done, new(bool))); len(r) != 1 || r[0].Left() || !slices.Equal(done, []string{"3", "1"}) {
		t.Errorf("%+v, done %v", r[0], done)
	}
}

// What others could have written is not carried out.
func TestForeignJournalsAreRefused(t *testing.T) {
	var done []string
	table := notes(&done, new(bool))
	for name, spoil := range map[string]func(dir, path string) error{
		"others may write the file":      func(_, path string) error { return os.Chmod(path, 0o666) },
		"others may write the directory": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"the file is a symbolic link": func(dir, path string) error {
			return errors.Join(os.Rename(path, dir+".away"), os.Symlink(dir+".away", path))
		},
		"the directory is a symbolic link": func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".away"), os.Symlink(dir+".away", dir))
		},
		"a pipe in its place": func(_, path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"damaged in the middle": func(_, path string) error {
			return os.WriteFile(path, []byte(strings.Replace(readFile(path), `{"id":2`, `{"id":"2"`, 1)), 0o600)
		},
		"another version": func(_, path string) error {
			return os.WriteFile(path, []byte(strings.Replace(readFile(path), `{"v":1`, `{"v":2`, 1)), 0o600)
		},
		"no journal": func(_, path string) error { return os.WriteFile(path, nil, 0o600) },
		"another user's": func(_, path string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(path, 0o666)
			}
			return os.Chown(path, 65534, 65534)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "undo")
			path := dead(t, dir)
			if err := spoil(dir, path); err != nil {
				t.Fatal(err)
			}
			r, err := Replay(t.Context(), dir, table)
			if err == nil && (len(r) != 1 || r[0].Err == nil || !r[0].Left() || len(r[0].Lines()) != 1) {
				t.Errorf("it was taken: %+v", r)
			}
			var n *NoJournal
			if err != nil && !errors.As(err, &n) {
				t.Errorf("error %v", err)
			}
			if len(done) != 0 {
				t.Errorf("it was carried out: %v", done)
			}
			if strings.Contains(name, "directory") {
				if _, err := Create(dir); !errors.As(err, &n) {
					t.Errorf("a journal was begun there: %v", err)
				}
			}
		})
	}
}

func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// On a full disk the error says so, and what was written before stays readable.
func TestJournalOnAFullDisk(t *testing.T) {
	testenv.Need(t, testenv.Root)
	dir := t.TempDir()
	if err := unix.Mount("hopbed-test", dir, "tmpfs", 0, "size=16k,mode=700"); err != nil {
		t.Skipf("SKIP[unavailable: mounts] %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	var done []string
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = j.Push(uint64(n+1), New("note", strings.Repeat("x", 300), fmt.Sprint(n)))
	}
	var no *NoJournal
	if !errors.As(err, &no) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("after %d records: %v", n, err)
	}
	j.Close()
	if r := replayAll(t, dir, notes(&done, new(bool))); len(r) != 1 || len(done) != n-1 {
		t.Errorf("%d of %d records were carried out: %+v", len(done), n-1, r)
	}
	// So is one that cannot even begin.
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if _, err := Create(dir); !errors.As(err, &no) {
		t.Errorf("on a full disk: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left: %v", list)
	}
}

func TestDefaultDir(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	want := filepath.Join(dir, "hopbed")
	if os.Geteuid() == 0 {
		want = "/run/hopbed"
	}
	if got := DefaultDir(); got != want && got != "/var/run/hopbed" {
		t.Errorf("%s, want %s", got, want)
	}
	if r, err := Replay(context.Background(), filepath.Join(dir, "nothing"), nil); err != nil || r != nil {
		t.Errorf("no directory: %v, %v", r, err)
	}
}
