package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Kinds of artefacts in the database.
const (
	KindPackets = "pcapng"
	KindEvents  = "events"
)

// Wanted says which files the runs of a plan shall leave.
type Wanted struct {
	Packets string      // path of the capture, "" for none
	Events  string      // path of the event log, "" for none
	SnapLen vtime.Bytes // of each packet in the capture; 0 = all
	// At names the interfaces in the capture, or Everywhere; none: the air, and
	// where flows leave their sources by wires.
	At []string
	// Keep are other files of the command, which are never replaced: the
	// experiment, what it reads, the database, the report.
	Keep []string
	// Overwrite replaces files that exist.
	Overwrite bool
}

// Files are the files of a plan's runs. A nil Files wants none.
type Files struct {
	want           Wanted
	runs, backends int
	experiment     string

	mu sync.Mutex
	// left are the files of invalid attempts by the path of the valid one's.
	left map[string][]string
}

// New returns the files of a plan that is carried out on so many back ends; nil
// if none are wanted.
func New(w Wanted, p *plan.Plan, backends int) *Files {
	if w.Packets == "" && w.Events == "" {
		return nil
	}
	return &Files{want: w, runs: len(p.Runs), backends: backends, experiment: p.Experiment.Base().Name, left: map[string][]string{}}
}

func (f *Files) names() (out []string) {
	for _, n := range []string{f.want.Packets, f.want.Events} {
		if n != "" {
			out = append(out, n)
		}
	}
	return out
}

// Place reports what would keep the files from being written: a folder that does
// not exist or cannot be written, two files of one name.
func (f *Files) Place() error {
	if f == nil {
		return nil
	}
	if a, b := f.want.Packets, f.want.Events; a != "" && b != "" && Same(a, b) {
		return fmt.Errorf("the capture %s and the event log %s are the same file: name two files", a, b)
	}
	for _, n := range f.names() {
		switch {
		case n == "-":
			return errors.New("-: captures and event logs go to files, standard output has the results: name a file")
		case strings.HasSuffix(n, partSuffix):
			return fmt.Errorf("%s: files that end in %s are those of unfinished runs: name another", n, partSuffix)
		}
		dir := filepath.Dir(n)
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return fmt.Errorf("%s: the folder %s does not exist: make it first", n, dir)
		}
		if st, err := os.Stat(n); err == nil && !st.Mode().IsRegular() {
			return fmt.Errorf("%s is no ordinary file: name one", n)
		}
		probe, err := os.CreateTemp(dir, ".hopbed-*")
		if err != nil {
			return fmt.Errorf("%s: the folder cannot be written: %w", n, cause(err))
		}
		if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
	}
	return nil
}

// Fits reports an interface that is to be captured and that a scenario does not
// have.
func (f *Files) Fits(s *plan.Scenario) error {
	if f == nil {
		return nil
	}
	return (&backend.Capture{At: f.at(s)}).Check(s)
}

// Check reports a file that exists and must not be replaced, before any of the
// runs on a back end is begun.
func (f *Files) Check(runs []plan.Run, backend string) error {
	if f == nil {
		return nil
	}
	for _, r := range runs {
		for _, n := range f.names() {
			path := f.path(n, r, backend)
			for _, k := range f.want.Keep {
				if Same(path, k) || Same(path+partSuffix, k) {
					return fmt.Errorf("%s is a file of this command itself, which a capture must not replace: name another", path)
				}
			}
			if f.want.Overwrite {
				continue
			}
			if err := absent(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Same says whether two paths lead to one file, be it there or not.
func Same(a, b string) bool {
	if x, err := os.Stat(a); err == nil {
		y, err := os.Stat(b)
		return err == nil && os.SameFile(x, y)
	}
	return filepath.Base(a) == filepath.Base(b) && sameFolder(filepath.Dir(a), filepath.Dir(b))
}

func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func absent(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s exists: name another file, remove it, or replace it with --overwrite", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", path, cause(err))
	}
	return nil
}

// cause is an error without the name of a temporary file.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
