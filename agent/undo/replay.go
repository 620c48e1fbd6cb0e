//go:build linux

package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
)

// Replayed is what became of one journal that was found.
type Replayed struct {
	Path   string
	Owner  int // its agent's process id
	Undone []string
	Failed []*Failure
	// Err is why the journal was not carried out; the file is left.
	Err error
	// Forgotten says that it was removed because what it names is gone: the
	// machine was booted since, or the network namespace ended.
	Forgotten string
	// Elsewhere: it belongs to another network namespace, which an agent there
	// has to put back.
	Elsewhere bool
}

// Left reports whether something of it is still to be put back here.
func (r *Replayed) Left() bool { return r.Err != nil || len(r.Failed) > 0 }

// Replay carries out the journals in dir whose agents are dead, and removes those
// of which nothing is left. Journals of agents that live are not looked at. The
// error is that of the directory; one that does not exist has no journals.
func Replay(ctx context.Context, dir string, t Table) ([]*Replayed, error) {
	st, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("it is no directory, but a %v", st.Mode().Type())
	}
	if err == nil {
		err = owned(st)
	}
	if err != nil {
		return nil, noJournal(dir, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, noJournal(dir, err)
	}
	var out []*Replayed
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), suffix) {
			continue
		}
		if r := replay(ctx, filepath.Join(dir, n.Name()), t); r != nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// replay carries one journal out; nil when it is not ours to touch.
func replay(ctx context.Context, path string, t Table) *Replayed {
	r := &Replayed{Path: path}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its agent has just ended
	}
	if err != nil {
		r.Err = err
		return r
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("it is no file, but a %v", st.Mode().Type())
	}
	if err == nil {
		err = owned(st)
	}
	if err != nil {
		r.Err = err
		return r
	}
	if err := lock(f); errors.Is(err, unix.EWOULDBLOCK) {
		return nil // its agent lives, or somebody else carries it out
	} else if err != nil {
		r.Err = err
		return r
	}
	// Who had the lock before may have removed the file.
	if st, err = f.Stat(); err == nil && st.Sys().(*syscall.Stat_t).Nlink == 0 {
		return nil
	}
	j := &Journal{file: f, path: path}
	h, items, err := load(f)
	if err == nil {
		err = j.repair()
	}
	if err != nil {
		r.Err = err
		return r
	}
	r.Owner = h.PID
	here, err := ownNamespace()
	boot, err2 := procfs.BootID()
	switch {
	case err != nil || err2 != nil:
		r.Err = errors.Join(err, err2)
		return r
	case h.Boot != boot:
		r.Forgotten = "the machine was booted since"
	case len(items) == 0:
	case h.NetNS == here:
		s := &Stack{table: t, keepers: []Keeper{j}, items: items}
		if r.Undone, r.Failed = s.Revert(ctx); len(r.Failed) > 0 {
			return r
		}
	case h.NetNS.inUse() && h.NetNS.Inode != here.Inode:
		r.Elsewhere = true
		return r
	default:
		r.Forgotten = "its network namespace is gone"
	}
	if err := os.Remove(path); err != nil {
		r.Err = err
	}
	return r
}

// Lines says what became of it, for people; nothing where nothing was to be done.
func (r *Replayed) Lines() []string {
	var out []string
	who := fmt.Sprintf("settings that the agent with process %d left", r.Owner)
	switch {
	case r.Err != nil:
		return []string{fmt.Sprintf("undo journal %s: %v: it is left; look at it, and remove it", r.Path, r.Err)}
	case r.Elsewhere:
		return []string{who + " are of another network namespace: they are put back there (" + r.Path + ")"}
	case r.Forgotten != "":
		return []string{who + " need nothing: " + r.Forgotten}
	}
	if len(r.Undone) > 0 {
		out = append(out, who+" were put back: "+strings.Join(r.Undone, ", "))
	}
	for _, f := range r.Failed {
		out = append(out, fmt.Sprintf("%s: not put back: %v (%s)", who, f, r.Path))
	}
	return out
}
