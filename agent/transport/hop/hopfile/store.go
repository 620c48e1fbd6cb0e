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

	mu   sync.Mutex
	busy map[string]bool // parts that are being written
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
	s := &store{root: root, keep: keep, busy: make(map[string]bool)}
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
		if !strings.HasPrefix(e.Name(), partPrefix) || !strings.HasSuffix(e.Name(), partSuffix) || s.busy[e.Name()] {
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

// open opens the part of a file, with what is there of it.
func (s *store) open(o *offer) (_ *part, err error) {
	if err := s.exists(o.Name); err != nil {
		return nil, err
	}
	if err := s.clean(); err != nil {
		return nil, err
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", o.Name, o.Size, o.Time))
	p := &part{s: s, key: fmt.Sprintf("%s%x%s", partPrefix, h[:12], partSuffix), hash: sha256.New()}
	s.mu.Lock()
	busy := s.busy[p.key]
	s.busy[p.key] = true
	s.mu.Unlock()
	if busy {
		return nil, errors.New("another transfer of it is under way")
	}
	defer func() {
		if err != nil {
			s.release(p.key)
		}
	}()
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

func (s *store) release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, key)
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
	p.s.release(p.key)
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
	defer p.s.release(p.key)
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
