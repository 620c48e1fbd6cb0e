package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/internal/procfs"
)

// Kinds with a meaning of their own. Every other kind announces a process of
// that sort ("agent", "emulator"), which carries the tag in its environment.
const (
	KindOwner = "owner" // the controller; first entry of every journal
	KindPID   = "pid"   // a process that was started; id = "PID:START"
	KindFile  = "file"  // a file; id = absolute path, whose base contains the tag
	KindDir   = "dir"   // a directory with all that is in it; likewise
	kindGone  = "gone"  // an entry's thing was removed; id = "KIND ID"
)

// Entry is one line of a journal.
type Entry struct {
	Kind string    `json:"kind"`
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	// Of the owner's entry only:
	Tag   string `json:"tag,omitempty"`
	Boot  string `json:"boot,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"` // clock ticks since boot
	Host  string `json:"host,omitempty"`
}

const suffix = ".journal"

// Journal is the record of one controller. Its methods are safe for concurrent
// use.
type Journal struct {
	tag  string
	path string

	mu      sync.Mutex
	file    *os.File
	pending []byte        // entries that are not written yet
	last    uint64        // number of the last entry
	synced  uint64        // entries up to this number are on disk
	busy    bool          // somebody syncs
	round   chan struct{} // closed when that sync has ended
	err     error         // of the first failure; a journal that failed stays failed
}

// DefaultDir is where journals live: $XDG_STATE_HOME/hopbed/journal, by default
// below ~/.local/state, or /var/lib/hopbed/journal for root. State survives a
// reboot, as the files named in it do.
func DefaultDir() (string, error) {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "hopbed", "journal"), nil
	}
	if os.Geteuid() == 0 && os.Getenv("HOPBED_ROOTLESS") == "" {
		return "/var/lib/hopbed/journal", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("journal: no place for it: %w (set XDG_STATE_HOME)", err)
	}
	return filepath.Join(home, ".local", "state", "hopbed", "journal"), nil
}

// NewTag returns a new ownership tag, unique to the campaign.
func NewTag() string {
	var b [10]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("journal: no randomness: " + err.Error()) // documented never to happen
	}
	return "hopbed-" + hex.EncodeToString(b[:])
}

// Open begins a journal in dir, which is made if need be. tag is the campaign's
// ownership tag (NewTag).
func Open(dir, tag string) (*Journal, error) {
	if len(tag) < 8 || strings.ContainsAny(tag, "/\x00\n") {
		return nil, fmt.Errorf("journal: %q is no ownership tag", tag)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, noPlace(err)
	}
	path := filepath.Join(dir, tag+suffix)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, noPlace(err)
	}
	j := &Journal{tag: tag, path: path, file: f}
	if err := j.begin(dir); err != nil {
		f.Close()
		os.Remove(path)
		return nil, noPlace(err)
	}
	return j, nil
}

// noPlace says what to do about a journal that cannot be written: without it
// nothing is created, because nothing could be removed again.
func noPlace(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("journal: %w: free some space, or set XDG_STATE_HOME to a folder that has some", err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("journal: %w: set XDG_STATE_HOME to a folder that you may write", err)
	}
	return fmt.Errorf("journal: %w", err)
}

func (j *Journal) begin(dir string) error {
	// The lock ends with the process, however it ends. It says "alive" across PID
	// namespaces, where a process id would not.
	if err := unix.Flock(int(j.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	boot, err := procfs.BootID()
	if err != nil {
		return err
	}
	start, err := procfs.StartTime(os.Getpid())
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := j.append(Entry{Kind: KindOwner, ID: "controller", Tag: j.tag, Boot: boot, PID: os.Getpid(), Start: start, Host: host}); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return err
	}
	return nil
}

// Tag is the ownership tag.
func (j *Journal) Tag() string { return j.tag }

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

// Record notes what is about to be created and returns when the entry is on
// disk. Entries recorded at the same time share one sync. A KindPID entry is
// only written: the process is found by its tag even without it.
func (j *Journal) Record(kind, id string) error {
	if err := j.append(Entry{Kind: kind, ID: id}); err != nil {
		return noPlace(err)
	}
	return nil
}

// Gone notes that a recorded thing has been removed.
func (j *Journal) Gone(kind, id string) error { return j.Record(kindGone, kind+" "+id) }

func (j *Journal) append(e Entry) error {
	e.At = time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if j.file == nil {
		return os.ErrClosed
	}
	j.pending = append(j.pending, line...)
	j.last++
	if e.Kind == KindPID || e.Kind == kindGone {
		if !j.busy { // else it goes with the next round
			j.err = j.write()
		}
		return j.err
	}
	// One of those who wait syncs for all that is pending then; who comes later
	// waits for the next round.
	for n := j.last; j.synced < n && j.err == nil; {
		if j.busy {
			round := j.round
			j.mu.Unlock()
			<-round
			j.mu.Lock()
			continue
		}
		j.lead()
	}
	return j.err
}

// lead writes and syncs what is pending, with the lock released meanwhile.
func (j *Journal) lead() {
	if j.file == nil {
		j.err = os.ErrClosed
		return
	}
	upTo, f := j.last, j.file
	if j.err = j.write(); j.err != nil {
		return
	}
	j.busy, j.round = true, make(chan struct{})
	j.mu.Unlock()
	err := f.Sync()
	j.mu.Lock()
	j.busy = false
	close(j.round)
	if j.err = err; err == nil {
		j.synced = upTo
	}
}

func (j *Journal) write() error {
	b := j.pending
	j.pending = nil
	_, err := j.file.Write(b)
	return err
}

// MkdirTemp makes a directory below parent ("" = the system's) whose name
// carries the tag, recorded before it exists.
func (j *Journal) MkdirTemp(parent, what string) (string, error) {
	path, err := j.tempName(parent, what)
	if err != nil {
		return "", err
	}
	if err := j.Record(KindDir, path); err != nil {
		return "", err
	}
	return path, os.Mkdir(path, 0o700)
}

// CreateTemp makes a file likewise.
func (j *Journal) CreateTemp(parent, what string) (*os.File, error) {
	path, err := j.tempName(parent, what)
	if err != nil {
		return nil, err
	}
	if err := j.Record(KindFile, path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

func (j *Journal) tempName(parent, what string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("journal: no randomness: " + err.Error()) // documented never to happen
	}
	return filepath.Join(parent, j.tag+"-"+what+"-"+hex.EncodeToString(b[:])), nil
}

// Close ends the journal after an orderly clean-up: it removes what is left of
// the campaign by the same means as Clean, and the file if nothing is left. The
// error lists what could not be removed; the file then stays for `hopbed
// clean`. A journal that could not be written any more names everything that
// exists: what it could not announce was not made.
func (j *Journal) Close() error {
	j.mu.Lock()
	f := j.file
	j.file = nil
	j.mu.Unlock()
	if f == nil {
		return nil
	}
	defer f.Close() // the lock is held until the end
	entries, err := read(j.path)
	if err != nil {
		return err
	}
	c, err := clean(j.path, entries, cleanWithin)
	if err != nil {
		return err
	}
	if len(c.Left) > 0 {
		return fmt.Errorf("journal %s: left behind: %s", j.path, strings.Join(c.Left, "; "))
	}
	return nil
}

// read parses a journal. A last line that was cut by a crash is ignored: what
// it announces was not created.
func read(path string) ([]Entry, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var entries []Entry
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		b = rest
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			if !whole || len(b) == 0 {
				break
			}
			return nil, fmt.Errorf("journal %s: line %d cannot be read: %w (damaged: remove the file once no hopbed process is left)", path, len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 || entries[0].Kind != KindOwner {
		return nil, fmt.Errorf("journal %s: %w: it does not begin with its owner (damaged: remove the file once no hopbed process is left)", path, io.ErrUnexpectedEOF)
	}
	return entries, nil
}
