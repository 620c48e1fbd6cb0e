package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
)

// cleanWithin bounds the wait for killed processes to be gone.
const cleanWithin = 5 * time.Second

// Cleaned is what Clean did with one journal.
type Cleaned struct {
	Journal string
	Tag     string
	Owner   string   // "pid 1234 on host x, since …"
	Alive   bool     // the controller runs: nothing was touched
	Removed []string // one line each
	Left    []string // what could not be removed, and why; the journal stays
}

// Clean removes what the controllers of dir's journals left, each journal by
// itself. A journal whose controller is alive is left alone. It returns when
// everything is gone or its time is over; an error means that a journal could
// not be read or judged, and concerns that journal only.
func Clean(ctx context.Context, dir string) ([]Cleaned, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("journals in %s: %w", dir, err)
	}
	slices.Sort(paths)
	var all []Cleaned
	var errs []error
	for _, p := range paths {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		c, err := cleanFile(p)
		if err != nil {
			errs = append(errs, err)
		}
		if c != nil {
			all = append(all, *c)
		}
	}
	return all, errors.Join(errs...)
}

func cleanFile(path string) (*Cleaned, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil, nil // another clean was faster
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("journal %s: lock: %w", path, err)
		}
		c := &Cleaned{Journal: path, Alive: true, Owner: "unknown"}
		if entries, err := read(path); err == nil {
			c.Tag, c.Owner = entries[0].Tag, owner(&entries[0])
		}
		return c, nil
	}
	if st, err := f.Stat(); err == nil && st.Size() == 0 {
		// The controller died between creating and writing it: nothing followed.
		return nil, os.Remove(path)
	}
	entries, err := read(path)
	if err != nil {
		return nil, err
	}
	return clean(path, entries, cleanWithin)
}

func owner(e *Entry) string {
	return fmt.Sprintf("pid %d on %s, since %s", e.PID, e.Host, e.At.Local().Format(time.DateTime))
}

// clean removes what the entries name and then the journal, whose lock the
// caller holds.
func clean(path string, entries []Entry, within time.Duration) (*Cleaned, error) {
	o := &entries[0]
	c := &Cleaned{Journal: path, Tag: o.Tag, Owner: owner(o)}
	if !strings.Contains(filepath.Base(path), o.Tag) || o.Tag == "" {
		return nil, fmt.Errorf("journal %s: names the tag %q: the file was renamed or damaged", path, o.Tag)
	}
	boot, err := procfs.BootID()
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	if boot == o.Boot { // after a reboot only files can be left
		c.processes(entries, within)
	}
	c.files(entries)
	if len(c.Left) > 0 {
		return c, nil
	}
	if err := os.Remove(path); err != nil {
		return c, fmt.Errorf("journal: %w", err)
	}
	return c, nil
}

// processes kills every process that carries the campaign's tag: those in the
// journal and those that they started in their turn.
func (c *Cleaned) processes(entries []Entry, within time.Duration) {
	started := map[int]uint64{}
	for _, e := range entries {
		if e.Kind != KindPID {
			continue
		}
		pid, start, ok := strings.Cut(e.ID, ":")
		p, err1 := strconv.Atoi(pid)
		s, err2 := strconv.ParseUint(start, 10, 64)
		if ok && err1 == nil && err2 == nil {
			started[p] = s
		}
	}
	removed := map[int]string{}
	for deadline := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		left, opaque, err := tagged(c.Tag, started)
		if err != nil {
			c.Left = append(c.Left, err.Error())
			return
		}
		for _, pid := range left {
			if removed[pid] == "" {
				removed[pid] = procfs.Name(pid)
			}
			kill(pid, c.Tag)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			for _, pid := range left {
				c.Left = append(c.Left, fmt.Sprintf("process %d (%s): still there %v after SIGKILL", pid, procfs.Name(pid), within))
				delete(removed, pid)
			}
			c.Left = append(c.Left, opaque...)
			break
		}
	}
	for _, pid := range sortedKeys(removed) {
		c.Removed = append(c.Removed, fmt.Sprintf("process %d (%s)", pid, removed[pid]))
	}
}

func sortedKeys(m map[int]string) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// tagged lists the running processes with the tag, other than this one. opaque
// names those of the journal that exist but may not be inspected.
func tagged(tag string, started map[int]uint64) (left []int, opaque []string, err error) {
	pids, err := procfs.PIDs()
	if err != nil {
		return nil, nil, fmt.Errorf("look for the campaign's processes: %w", err)
	}
	for _, pid := range pids {
		if pid == os.Getpid() || !procfs.Running(pid) {
			continue
		}
		has, err := procfs.HasEnv(pid, TagVariable+"="+tag)
		if has {
			left = append(left, pid)
		}
		if err == nil {
			continue
		}
		if s, ours := started[pid]; ours && errors.Is(err, os.ErrPermission) {
			if now, err := procfs.StartTime(pid); err == nil && now == s {
				opaque = append(opaque, fmt.Sprintf("process %d (%s): it was started by the campaign, but belongs to another user now: run hopbed clean as root", pid, procfs.Name(pid)))
			}
		}
	}
	return left, opaque, nil
}

// kill ends a process that carries the tag. The descriptor pins the process
// while its identity is checked once more, so that a reused pid cannot be hit.
func kill(pid int, tag string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
			if has, err := procfs.HasEnv(pid, TagVariable+"="+tag); err == nil && has {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		return
	}
	defer unix.Close(fd)
	if has, err := procfs.HasEnv(pid, TagVariable+"="+tag); err == nil && has {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // the next look tells
	}
}

// files removes the recorded files and directories that were not noted as
// gone. A path whose base does not carry the tag is not ours, whatever the
// journal says.
func (c *Cleaned) files(entries []Entry) {
	gone := map[string]bool{}
	for _, e := range entries {
		if e.Kind == kindGone {
			gone[e.ID] = true
		}
	}
	for _, e := range entries {
		if e.Kind != KindFile && e.Kind != KindDir || gone[e.Kind+" "+e.ID] {
			continue
		}
		if _, err := os.Lstat(e.ID); os.IsNotExist(err) {
			continue
		}
		if !filepath.IsAbs(e.ID) || !strings.Contains(filepath.Base(e.ID), c.Tag) {
			c.Left = append(c.Left, fmt.Sprintf("%s %s: its name does not carry the tag %s: not removed", e.Kind, e.ID, c.Tag))
			continue
		}
		remove := os.Remove
		if e.Kind == KindDir {
			remove = os.RemoveAll
		}
		if err := remove(e.ID); err != nil {
			c.Left = append(c.Left, fmt.Sprintf("%s: %v", e.Kind, err))
			continue
		}
		c.Removed = append(c.Removed, e.Kind+" "+e.ID)
	}
}

// CleanOne is Clean for the journal of one tag. Both results are nil where there is
// none: its controller has removed everything.
func CleanOne(ctx context.Context, dir, tag string) (*Cleaned, error) {
	if tag == "" || strings.ContainsRune(tag, '/') {
		return nil, fmt.Errorf("journal: %q is no ownership tag", tag)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return cleanFile(filepath.Join(dir, tag+suffix))
}
