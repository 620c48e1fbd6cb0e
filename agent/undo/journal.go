//go:build linux

package undo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
)

// Journal is the file of one agent: what must be put back if its processes are
// killed. The processes that have it open hold its lock together, so that others
// see whether one of them lives. It is a Keeper.
type Journal struct {
	file *os.File
	path string
	// empty is the length without records, 0 = unknown; open is how many of this
	// process's are not done.
	empty int64
	open  int
}

// header is the first line of a journal: whose it is and where it may be carried
// out.
type header struct {
	Version int       `json:"v"`
	Boot    string    `json:"boot"`
	PID     int       `json:"pid"`
	Start   uint64    `json:"start"` // of the process, in clock ticks since boot
	NetNS   namespace `json:"netns"`
	At      time.Time `json:"at"`
}

// entry is any other line.
type entry struct {
	ID     uint64  `json:"id"`
	Record *Record `json:"record,omitempty"`
	Done   bool    `json:"done,omitempty"`
}

const (
	version = 1
	suffix  = ".undo"
)

// NoJournal says that there can be no journal: nothing puts settings back if all
// processes of an agent are killed at once.
type NoJournal struct {
	Path string
	Err  error
	Do   string
}

// Error says why, and what to do.
func (n *NoJournal) Error() string {
	return fmt.Sprintf("undo journal %s: %v; %s", n.Path, n.Err, n.Do)
}

// Unwrap returns why.
func (n *NoJournal) Unwrap() error { return n.Err }

func noJournal(path string, err error) error {
	n := &NoJournal{Path: path, Err: err, Do: "without it nothing is put back if agent and guardian are killed at once"}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		n.Do = "free some space there; " + n.Do
	}
	return n
}

// DefaultDir is where journals are: on a file system that is empty after a boot,
// as the kernel's settings are: /run/hopbed for root, else below $XDG_RUNTIME_DIR;
// where there is neither, a directory of the user's among the temporary files.
func DefaultDir() string {
	uid := os.Geteuid()
	candidates := []string{os.Getenv("XDG_RUNTIME_DIR")}
	if uid == 0 {
		candidates = []string{"/run", "/var/run"}
	}
	for _, base := range candidates {
		if st, err := os.Stat(base); filepath.IsAbs(base) && err == nil && st.IsDir() {
			return filepath.Join(base, "hopbed")
		}
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("hopbed-%d", uid))
}

// openDir makes the directory and looks whether it is this user's alone: what is
// in a journal is carried out.
func openDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("it is no directory, but a %v", st.Mode().Type())
	}
	return owned(st)
}

// owned refuses what others can write.
func owned(st os.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to another user (%d)", sys.Uid)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others may use it (mode %v)", st.Mode().Perm())
	}
	return nil
}

// Create begins the journal of this process in dir.
func Create(dir string) (*Journal, error) {
	if err := openDir(dir); err != nil {
		return nil, noJournal(dir, err)
	}
	h, err := self()
	if err != nil {
		return nil, noJournal(dir, err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d%s", h.Boot, h.PID, h.Start, suffix))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, noJournal(path, err)
	}
	j := &Journal{file: f, path: path}
	err = lock(f)
	if err == nil {
		err = j.write(h, true)
	}
	if err != nil {
		return nil, noJournal(path, errors.Join(err, f.Close(), os.Remove(path)))
	}
	return j, nil
}

func self() (header, error) {
	h := header{Version: version, PID: os.Getpid(), At: time.Now().UTC()}
	var err error
	if h.Boot, err = procfs.BootID(); err != nil {
		return h, err
	}
	if h.Start, err = procfs.StartTime(h.PID); err != nil {
		return h, err
	}
	h.NetNS, err = ownNamespace()
	return h, err
}

func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}

// Inherit is the journal that a parent process has created and passed on as an
// open file; nothing has been recorded yet.
func Inherit(f *os.File, path string) (*Journal, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, noJournal(path, err)
	}
	return &Journal{file: f, path: path, empty: st.Size()}, nil
}

// File is the journal's open file, Path its name.
func (j *Journal) File() *os.File { return j.file }

// Path is the name of the file.
func (j *Journal) Path() string { return j.path }

// Push returns when the record is on disk.
func (j *Journal) Push(id uint64, r Record) error {
	if err := j.write(entry{ID: id, Record: &r}, true); err != nil {
		return noJournal(j.path, err)
	}
	j.open++
	return nil
}

// Done notes that a record was carried out. After the last one the file is as it
// was in the beginning: an agent may carry out thousands of runs.
func (j *Journal) Done(id uint64) error {
	if j.open--; j.open == 0 && j.empty > 0 {
		return j.file.Truncate(j.empty)
	}
	return j.write(entry{ID: id, Done: true}, false)
}

func (j *Journal) write(v any, durable bool) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	st, err := j.file.Stat()
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	if err == nil && durable {
		err = j.file.Sync()
	}
	if err != nil {
		// Half a line would make the rest unreadable.
		return errors.Join(err, j.file.Truncate(st.Size()))
	}
	return nil
}

// repair removes a last line that has no end: its writer was killed.
func (j *Journal) repair() error {
	st, err := j.file.Stat()
	if err != nil {
		return err
	}
	b := make([]byte, st.Size())
	if _, err := j.file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if end := int64(bytes.LastIndexByte(b, '\n') + 1); end < st.Size() {
		return j.file.Truncate(end)
	}
	return nil
}

// Remove removes the file and ends the journal.
func (j *Journal) Remove() error { return errors.Join(os.Remove(j.path), j.file.Close()) }

// Close ends the journal and leaves the file.
func (j *Journal) Close() error { return j.file.Close() }

// load reads a journal: what was not done yet, oldest first. A last line without
// its end is one that was being written when its process was killed: the change
// was not made.
func load(r io.Reader) (header, []item, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return header{}, nil, err
	}
	first, rest, whole := bytes.Cut(b, []byte("\n"))
	var h header
	if err := json.Unmarshal(first, &h); err != nil || !whole {
		return h, nil, fmt.Errorf("its first line is %q: no journal", strings.ToValidUTF8(string(first[:min(len(first), 80)]), "?"))
	}
	if h.Version != version {
		return h, nil, fmt.Errorf("it has the version %d, this agent knows %d", h.Version, version)
	}
	var items []item
	for n := 2; ; n++ {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return h, items, nil
		}
		rest = more
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Done == (e.Record != nil) {
			return h, nil, fmt.Errorf("line %d cannot be read: %v", n, err)
		}
		if e.Record != nil {
			items = append(items, item{e.ID, *e.Record})
			continue
		}
		for i := range items {
			if items[i].id == e.ID {
				items = append(items[:i], items[i+1:]...)
				break
			}
		}
	}
}
