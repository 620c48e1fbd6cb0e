package agents

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/hopbed/hopbed/agent/about"
)

// Module is the module whose versions controller and agents must agree in.
const Module = "github.com/hopbed/hopbed"

// DirVariable is the environment variable that names a folder of agents.
const DirVariable = "HOPBED_AGENTS"

// FilePrefix begins the names of agents' files; the processor follows.
const FilePrefix = "hopbed-agent-"

// Binary is an agent's program, here.
type Binary struct {
	Arch   string // GOARCH
	Path   string
	Size   int64
	SHA256 string // of the whole file, hexadecimal
	// From says where it comes from ("built from source").
	From string
	// Static: it needs no C library on the node.
	Static bool
}

// Name is the file's name on a node: the same program has the same name.
func (b *Binary) Name() string { return FilePrefix + b.Arch + "-" + b.SHA256[:32] }

// Source has agents.
type Source interface {
	// Agent returns the program for a processor; an *Error of KindNoAgent says where
	// it was looked for and what to do.
	Agent(ctx context.Context, arch string) (*Binary, error)
}

// Finder is the Source of the hopbed program. Its methods may be called from several
// goroutines; each program is looked for once.
type Finder struct {
	// Dir is where agents are looked for first (files hopbed-agent-ARCH); with it
	// nothing else is tried. Empty: DirVariable.
	Dir string
	// Build makes agents from source; nil: by Go where it is installed.
	Build func(ctx context.Context, arch string) (path string, err error)
	// Exe is this program; empty: os.Executable.
	Exe string

	mu    sync.Mutex
	found map[string]*Binary
}

// Agent looks in Dir, beside the program and in the bin folder there, builds the
// agent where Go and the source are, and for this host's own processor takes the
// program itself.
func (f *Finder) Agent(ctx context.Context, arch string) (*Binary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.found[arch]; b != nil {
		return b, nil
	}
	b, err := f.find(ctx, arch)
	if err != nil {
		return nil, err
	}
	if f.found == nil {
		f.found = map[string]*Binary{}
	}
	f.found[arch] = b
	return b, nil
}

func (f *Finder) find(ctx context.Context, arch string) (*Binary, error) {
	if _, ok := targets[arch]; !ok {
		return nil, &Error{Kind: KindArchitecture, What: fmt.Sprintf("no agent can be made for the architecture %q", arch)}
	}
	name := FilePrefix + arch
	dir := f.Dir
	if dir == "" {
		dir = os.Getenv(DirVariable)
	}
	if dir != "" {
		b, err := Open(filepath.Join(dir, name), arch)
		if errors.Is(err, fs.ErrNotExist) {
			err = &Error{Kind: KindNoAgent, What: "no agent for " + arch, Because: fmt.Sprintf("there is no %s in %s", name, dir), Err: err,
				Do: "build it there: see `task agents`, or leave the folder out"}
		}
		return b, err
	}
	exe := f.Exe
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find agents: this program's own file: %w", err)
		}
	}
	var tried []string
	for _, dir := range []string{filepath.Dir(exe), filepath.Join(filepath.Dir(exe), "bin")} {
		b, err := Open(filepath.Join(dir, name), arch)
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
		tried = append(tried, fmt.Sprintf("no %s in %s", name, dir))
	}
	build := f.Build
	if build == nil {
		build = buildAgent
	}
	path, err := build(ctx, arch)
	var no *noBuild
	switch {
	case err == nil:
		b, err := Open(path, arch)
		if err == nil {
			b.From = "built from source"
		}
		return b, err
	case !errors.As(err, &no):
		return nil, &Error{Kind: KindNoAgent, What: "the agent for " + arch + " could not be built", Because: err.Error(), Err: err,
			Do: "put right what the compiler says, or give a folder with agents (--agents, " + DirVariable + ")"}
	}
	tried = append(tried, no.why)
	if arch == runtime.GOARCH && runtime.GOOS == "linux" {
		b, err := Open(exe, arch)
		if err == nil {
			b.From = "this program itself"
		}
		return b, err
	}
	return nil, &Error{Kind: KindNoAgent, What: "no agent for " + arch, Because: strings.Join(tried, ", "),
		Do: fmt.Sprintf("put %s beside hopbed (`task agents` builds it, releases carry it), or install Go beside the source, or give a folder with agents (--agents, %s)", name, DirVariable)}
}

// Open looks at a program: it must be one for Linux on this processor, and of this
// controller's version where both are known.
func Open(path, arch string) (*Binary, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := &Binary{Arch: arch, Path: path, From: path}
	h := sha256.New()
	if b.Size, err = io.Copy(h, file); err != nil {
		return nil, fmt.Errorf("agent for %s: %w", arch, err)
	}
	b.SHA256 = hex.EncodeToString(h.Sum(nil))
	e, err := elf.NewFile(file)
	if err != nil {
		return nil, &Error{Kind: KindArchitecture, What: path + " is no program for Linux", Because: err.Error(), Err: err, Do: "build it again: see `task agents`"}
	}
	t := targets[arch]
	if e.Machine != t.machine || e.ByteOrder != t.order || e.Class != t.class {
		return nil, &Error{Kind: KindArchitecture, What: path + " is no program for " + arch,
			Because: fmt.Sprintf("it is for %v, %v, %v", e.Machine, e.Class, e.Data), Do: "build it again: see `task agents`"}
	}
	b.Static = true
	for _, p := range e.Progs {
		b.Static = b.Static && p.Type != elf.PT_INTERP
	}
	if info, err := buildinfo.Read(file); err == nil && info.Main.Path == Module {
		own := about.Version()
		if v := info.Main.Version; v != "(devel)" && differ(v, own) {
			return nil, mismatch("", about.Identity{Version: v, Protocol: about.Own().Protocol}, path)
		}
	}
	return b, nil
}

// differ compares two versions; an unknown one differs from none. Uncommitted
// changes have no number: the protocol's version is what keeps them apart.
func differ(a, b string) bool {
	trim := func(v string) string { return strings.TrimSuffix(v, "+dirty") }
	return a != "" && b != "" && trim(a) != trim(b)
}

// mismatch is the error of an agent that does not fit this controller.
func mismatch(node string, got about.Identity, path string) *Error {
	return &Error{Kind: KindVersion, Node: node, What: "the agent does not fit this controller",
		Because: fmt.Sprintf("%s is %v, hopbed has version %q and protocol %d", path, got, about.Own().Version, about.Own().Protocol),
		Do:      "build both from the same source (`task build agents`), or take both from the same release"}
}
