package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/transport/bundle"
)

// The names of files: a bundle's sequence number, and one that is being written.
const (
	suffix  = ".bundle"
	partial = ".part"
)

// Dir is a directory of bundles. Its methods may be called by several goroutines,
// those that concern one bundle by one at a time.
type Dir struct{ path string }

// Open makes the directory if there is none.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("storage of bundles: %w", err)
	}
	return &Dir{path: path}, nil
}

func (d *Dir) file(seq uint64) string {
	return filepath.Join(d.path, fmt.Sprintf("%020d%s", seq, suffix))
}

// piece bounds what is written or read at once, in bytes.
const piece = 256 << 10

// Write stores a bundle durably and returns its payload as a part of the file.
func (d *Dir) Write(seq uint64, e *bundle.Encoded) (bundle.Content, error) {
	name := d.file(seq)
	if err := write(name+partial, e); err != nil {
		return nil, errors.Join(err, remove(name+partial))
	}
	if err := os.Rename(name+partial, name); err != nil {
		return nil, errors.Join(err, remove(name+partial))
	}
	if err := d.sync(); err != nil {
		return nil, err
	}
	return &file{name: name, at: int64(e.PayloadAt()), n: e.Bundle().Payload.Len()}, nil
}

func write(name string, e *bundle.Encoded) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var buf []byte
	for off := 0; off < e.Len(); off += piece {
		if buf, err = e.Append(buf[:0], off, min(piece, e.Len()-off)); err != nil {
			return err
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	return f.Sync()
}

// sync makes what was renamed or removed durable.
func (d *Dir) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove deletes a bundle. A crash soon after may bring it back: then it is sent
// once more, and the next hop knows it.
func (d *Dir) Remove(seq uint64) error { return remove(d.file(seq)) }

// Load calls f for every bundle, in the order of their numbers, with its length in
// octets; payloads are read from the files when they are needed. Files that are
// damaged or were not completed are removed and counted.
func (d *Dir) Load(f func(b *bundle.Bundle, size int)) (damaged int, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return 0, fmt.Errorf("storage of bundles: %w", err)
	}
	var seqs []uint64
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), suffix)
		seq, err := strconv.ParseUint(base, 10, 64)
		switch {
		case ok && err == nil:
			seqs = append(seqs, seq)
		case strings.HasSuffix(e.Name(), suffix+partial):
			damaged++
			if err := remove(filepath.Join(d.path, e.Name())); err != nil {
				return damaged, err
			}
		}
	}
	slices.SortFunc(seqs, cmp.Compare)
	for _, seq := range seqs {
		name := d.file(seq)
		data, err := os.ReadFile(name)
		if err != nil {
			return damaged, fmt.Errorf("storage of bundles: %w", err)
		}
		b, err := bundle.Decode(data)
		if err != nil || b.Created.Seq != seq {
			damaged++
			if err := remove(name); err != nil {
				return damaged, err
			}
			continue
		}
		b.Payload = &file{name: name, at: int64(b.Encode().PayloadAt()), n: b.Payload.Len()}
		f(b.Detached(), len(data))
	}
	return damaged, nil
}

// file is a payload in a file.
type file struct {
	name string
	at   int64
	n    int
}

// Len implements bundle.Content.
func (f *file) Len() int { return f.n }

// Append implements bundle.Content.
func (f *file) Append(dst []byte, off, n int) ([]byte, error) {
	h, err := os.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	if _, err := h.ReadAt(dst[at:], f.at+int64(off)); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return dst, nil
}
