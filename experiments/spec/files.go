package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/topology/interchange"
	"github.com/hopbed/hopbed/netem/celltrace"
	"github.com/hopbed/hopbed/netem/pipe"
)

// The bounds of the trace files that an experiment names.
const (
	MaxTrace      = 16 << 20 // bytes of one file
	MaxAllTraces  = 64 << 20 // bytes of all files
	maxTraceFiles = 1000
	traceTooLarge = "cut the trace: it repeats from its begin when it is at its end"
)

// Files gives the text of a file that an experiment names, by the path as it
// stands there. It need not read more than MaxTrace+1 bytes.
type Files func(path string) ([]byte, error)

// ErrUnread is what a Files returns for a file that is to be left unread.
var ErrUnread = errors.New("left unread")

// Unread leaves every file unread: an experiment can be looked at without
// them, but no network can be made from it.
func Unread(string) ([]byte, error) { return nil, ErrUnread }

// Beside reads files relative to a folder.
func Beside(folder string) Files {
	return func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, filepath.FromSlash(path))
		}
		// Before it is opened: to open a pipe waits until somebody writes to it.
		if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no plain file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, MaxTrace+1))
	}
}

// File is a file that an experiment names, as it was read.
type File struct {
	Path   string // as in the experiment
	SHA256 string // of its bytes, in hexadecimal
	Bytes  int
}

// files reads each file once for all points of an experiment.
type files struct {
	open Files
	// folder is that of the experiment file, absolute; "" where it has none.
	folder string
	got    map[named]*loaded
	total  int
	// made are generated traces, by their description.
	made map[PipeTrace]*pipe.Trace
}

// named is a file as one kind of input.
type named struct {
	path string
	kind fileKind
	// format is that of a topologyFile.
	format string
}

type fileKind int

const (
	capacityTrace fileKind = iota // delivery opportunities of a link
	transferTrace                 // messages of a flow
	inventoryFile                 // real nodes
	topologyFile                  // nodes and links, of another tool
)

type loaded struct {
	file      File
	trace     *pipe.Trace
	transfers []Transfer
	inventory *inventory.Inventory
	network   *interchange.Network
	err       error
}

// trace returns a file as a link's trace; nil without an error when it is left
// unread.
func (f *files) trace(path string) (*pipe.Trace, error) {
	l := f.load(named{path: path, kind: capacityTrace})
	return l.trace, l.err
}

// generated returns the trace of a model.
func (f *files) generated(t *PipeTrace) (*pipe.Trace, error) {
	of := *t
	of.Offset, of.RandomOffset, of.Capacity = 0, false, nil
	if got := f.made[of]; got != nil {
		return got, nil
	}
	if len(f.made) >= maxTraceFiles {
		return nil, fmt.Errorf("more than %d generated traces", maxTraceFiles)
	}
	ms, err := opportunities(t)
	if err != nil {
		return nil, err
	}
	made, err := pipe.NewTrace(ms)
	if err != nil {
		return nil, err
	}
	if f.made == nil {
		f.made = map[PipeTrace]*pipe.Trace{}
	}
	f.made[of] = made
	return made, nil
}

func opportunities(t *PipeTrace) ([]int64, error) {
	cut := celltrace.Outages{Every: t.OutageEvery, Mean: t.OutageMean}
	if t.Generate == EDCHTrace {
		c := celltrace.DefaultEDCH()
		c.Outages = cut
		return celltrace.Uplink(c, t.Seed, t.Length)
	}
	c := celltrace.DefaultHSDPA()
	c.SINR, c.Others, c.Outages = t.SINR, t.OtherUsers, cut
	return celltrace.Downlink(c, t.Seed, t.Length)
}

// transfers returns a file as a trace of messages, likewise.
func (f *files) transfers(path string) ([]Transfer, error) {
	l := f.load(named{path: path, kind: transferTrace})
	return l.transfers, l.err
}

func (f *files) load(n named) *loaded {
	l := f.got[n]
	if l == nil {
		l = f.read(n)
		if f.got == nil {
			f.got = map[named]*loaded{}
		}
		f.got[n] = l
	}
	return l
}

func (f *files) read(n named) *loaded {
	if f.open == nil {
		return &loaded{err: errors.New("cannot be read: this experiment is no file in a folder, so that there is nothing that the path is relative to")}
	}
	if len(f.got) >= maxTraceFiles {
		return &loaded{err: fmt.Errorf("more than %d trace files", maxTraceFiles)}
	}
	b, err := f.open(n.path)
	switch {
	case errors.Is(err, ErrUnread):
		return &loaded{}
	case err != nil:
		return &loaded{err: fmt.Errorf("cannot be read: %s", oneLine(err))}
	case len(b) > MaxTrace:
		return &loaded{err: fmt.Errorf("larger than %d MiB; %s", MaxTrace>>20, traceTooLarge)}
	}
	if f.total += len(b); f.total > MaxAllTraces {
		return &loaded{err: fmt.Errorf("with it, the traces are larger than %d MiB; %s", MaxAllTraces>>20, traceTooLarge)}
	}
	l := &loaded{}
	switch n.kind {
	case inventoryFile:
		if l.inventory, err = readInventory(n.path, b); err != nil {
			return &loaded{err: err}
		}
	case topologyFile:
		if l.network, err = interchange.Read(n.format, b); err != nil {
			return &loaded{err: fmt.Errorf("cannot be imported: %s", oneLine(placed(n.path, err)))}
		}
	case transferTrace:
		l.transfers, err = ReadTransfers(b)
	default:
		l.trace, err = pipe.ReadTrace(bytes.NewReader(b))
	}
	if err != nil {
		return &loaded{err: fmt.Errorf("is no trace: %s", oneLine(err))}
	}
	sum := sha256.Sum256(b)
	l.file = File{n.path, hex.EncodeToString(sum[:]), len(b)}
	return l
}

// oneLine keeps what an error quotes of a file or a path from driving a
// terminal.
func oneLine(err error) string {
	s := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, err.Error())
	const limit = 300
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// list returns what was read, by path.
func (f *files) list() []File {
	var out []File
	for _, l := range f.got {
		// A file that is a trace of both kinds, which none is meant to be, counts once.
		if l.file.Path != "" && !slices.Contains(out, l.file) {
			out = append(out, l.file)
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}
