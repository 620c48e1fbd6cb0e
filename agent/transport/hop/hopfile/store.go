package hopfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// store is the folder that files come to.
type store struct {
	root *os.Root // nothing outside is ever touched, whatever links there are
	keep time.Duration
	// silence is how long nothing may come of a transfer before another one of the
	// same file goes on with its part: most often, its sender was killed.
	silence time.Duration

	mu   sync.Mutex
	busy map[string]*part // that are being written
}

type writeFile = *os.File

const (
	partPrefix = ".hopbed-"
	partSuffix = ".part"
)

func openStore(dir string, keep time.Duration) (*store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	s := &store{root: root, keep: keep, busy: make(map[string]*part)}
	return s, s.clean()
}

func (s *store) close() { _ = s.root.Close() }

// clean removes parts that nobody has gone on with.
func (s *store) clean() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("folder %s: %w", s.root.Name(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), partPrefix) || !strings.HasSuffix(e.Name(), partSuffix) || s.busy[e.Name()] != nil {
			continue
		}
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() && (s.keep < 0 || time.Since(i.ModTime()) > s.keep) {
			_ = s.root.Remove(e.Name())
		}
	}
	return nil
}

// checkName refuses what is not the plain name of a file in a folder.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > 200:
		return fmt.Errorf("its name has %d bytes, 1 to 200 are allowed", len(name))
	case strings.HasPrefix(name, "."):
		return fmt.Errorf("the name %q is that of a hidden file", name)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '/' || r == '\\' }),
		!filepath.IsLocal(name) || runtime.GOOS == "windows" && strings.ContainsAny(name, `<>:"|?*`):
		return fmt.Errorf("the name %q is not that of a file in a folder", name)
	}
	return nil
}

// exists reports whether there is a file of the name.
func (s *store) exists(name string) error {
	if _, err := s.root.Lstat(name); err == nil {
		return fmt.Errorf("there is a file %q already, and nothing is overwritten", name)
	}
	return nil
}

// enter notes that a part is being written. Of another transfer that writes it,
// it waits for a sign of life.
func (s *store) enter(p *part) error {
	begun := time.Now()
	p.gone = make(chan struct{})
	for {
		s.mu.Lock()
		other := s.busy[p.key]
		if other == nil {
			p.heard.Store(begun.UnixNano())
			s.busy[p.key] = p
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		at := time.Unix(0, other.heard.Load())
		if at.After(begun) {
			return errors.New("another transfer of it is under way")
		}
		left := s.silence - time.Since(at)
		if left <= 0 {
			if !other.whole.Load() {
				other.taken.Store(true)
				other.abort()
			}
			left = s.silence // it ends at once, unless a disk holds it up
		}
		t := time.NewTimer(left)
		select {
		case <-other.gone:
		case <-t.C:
		}
		t.Stop()
	}
}

// open opens the part of a file, with what is there of it. abort ends the transfer
// that it is for.
func (s *store) open(o *offer, abort func()) (_ *part, err error) {
	if err := s.exists(o.Name); err != nil {
		return nil, err
	}
	if err := s.clean(); err != nil {
		return nil, err
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", o.Name, o.Size, o.Time))
	p := &part{s: s, key: fmt.Sprintf("%s%x%s", partPrefix, h[:12], partSuffix), hash: sha256.New(), abort: abort}
	if err := s.enter(p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.release(p)
		}
	}()
	if err := s.exists(o.Name); err != nil { // the other transfer was complete
		return nil, err
	}
	if i, err := s.root.Lstat(p.key); err == nil && !i.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is in the way", p.key)
	}
	if p.file, err = s.root.OpenFile(p.key, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if p.have, err = io.Copy(p.hash, p.file); err == nil && (o.Size < 0 || p.have > o.Size) {
		err = p.restart()
	}
	if err != nil {
		_ = p.file.Close()
		return nil, err
	}
	return p, nil
}

// release notes that a part is not written any more.
func (s *store) release(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, p.key)
	close(p.gone)
}

// restart begins with nothing.
func (p *part) restart() error {
	p.have = 0
	p.hash.Reset()
	if p.file == nil {
		return nil
	}
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

// close keeps what has come, if it is to be kept.
func (p *part) close() {
	if p.file == nil {
		return
	}
	_ = p.file.Close()
	if p.s.keep < 0 || p.have == 0 {
		_ = p.s.root.Remove(p.key)
	}
	p.file = nil
	p.s.release(p)
}

// discard throws away what has come.
func (p *part) discard() {
	if p.file != nil {
		_ = p.restart()
	}
}

// finish gives the whole file its name, unless another has it by now.
func (p *part) finish(o *offer) error {
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.file.Sync(), p.file.Close())
	p.file = nil
	defer p.s.release(p)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	root := p.s.root
	if o.Time != 0 {
		t := time.Unix(o.Time, 0)
		_ = root.Chtimes(p.key, t, t) // some file systems keep none
	}
	// A link fails where the name exists; a rename would replace it.
	err = root.Link(p.key, o.Name)
	switch {
	case err == nil:
		return root.Remove(p.key)
	case errors.Is(err, fs.ErrExist):
		return errors.Join(p.s.exists(o.Name), err)
	}
	// A file system without links: take the name first, then replace what was
	// made for it.
	f, err := root.OpenFile(o.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), root.Rename(p.key, o.Name))
}
