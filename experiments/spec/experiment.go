package spec

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Experiment is a file that was read and found valid: every point of its
// matrix decodes to a Config.
type Experiment struct {
	File   string // name for messages
	Source []byte // the text as read
	Quick  bool   // the quick block was applied: not for conclusions

	root   *node // the document, with quick and --set applied
	files  *files
	sets   []Assignment
	points []Point
}

// Assignment is one --set of the command line: a dotted path such as
// "radio.rate" or "flows.0.count" and its value in YAML.
type Assignment struct{ Key, Value string }

// Param is one matrix variable with the value that it has in a point, in its
// textual form.
type Param struct{ Name, Value string }

// Point is one combination of matrix values.
type Point struct {
	Index  int     // in file order: the last variable of the matrix runs fastest
	Params []Param // in file order
	Config *Config
}

// Load reads and checks an experiment file. The error is an *Errors when the
// file could be read but is wrong.
func Load(path string) (*Experiment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("experiment file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSources+1))
	if err != nil {
		return nil, fmt.Errorf("experiment file: %w", err)
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("folder of the experiment file: %w", err)
	}
	return parseIn(path, data, &files{open: Beside(folder), folder: folder})
}

// Parse checks an experiment that names no other file; name is used in messages
// only. The error is an *Errors.
func Parse(name string, data []byte) (*Experiment, error) { return ParseFiles(name, data, nil) }

// ParseFiles checks an experiment; name is used in messages only, open gives
// the files that the experiment names. The error is an *Errors.
func ParseFiles(name string, data []byte, open Files) (*Experiment, error) {
	return parseIn(name, data, &files{open: open})
}

func parseIn(name string, data []byte, f *files) (*Experiment, error) {
	r := &report{}
	e := &Experiment{File: name, Source: data, files: f}
	if e.root = parseTree(name, "", data, r); e.root == nil {
		return nil, r.err()
	}
	e.points = resolve(e.root, false, e.files, r)
	wired(e.root, e.points, r)
	// The quick variant is checked now, not when somebody asks for it.
	if q, _ := e.root.get("quick"); q != nil && len(r.problems) == 0 {
		if root := applyQuick(e.root, r); root != nil {
			resolve(root, true, e.files, r)
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return e, nil
}

// Points returns the points of the matrix in file order: at least one. The
// caller must not change them.
func (e *Experiment) Points() []Point { return e.points }

// Base returns the Config of the first point: for what no variable may change
// (name, title, reference, notes, repeat).
func (e *Experiment) Base() *Config { return e.points[0].Config }

// HasQuick reports whether the file declares a shortened variant.
func (e *Experiment) HasQuick() bool {
	q, _ := e.root.get("quick")
	return q != nil
}

// ApplyQuick replaces values by those of the file's quick block and marks the
// experiment. It is an error when the file has none.
func (e *Experiment) ApplyQuick() error {
	if !e.HasQuick() {
		return fmt.Errorf("%s has no quick block: run it in full, or add one such as quick: {repeat: 1, duration: 30s}", e.File)
	}
	return e.change(func(r *report) *node { return applyQuick(e.root, r) }, func() { e.Quick = true })
}

// Set replaces values by assignments of the command line, all or none, with
// the same checks as the file's own values. It comes after ApplyQuick, so that
// the command line has the last word.
func (e *Experiment) Set(as ...Assignment) error {
	return e.change(func(r *report) *node {
		root := e.root.clone()
		for _, a := range as {
			assign(root, a, r)
		}
		return root
	}, func() { e.sets = append(e.sets, as...) })
}

// change makes a new document and keeps it when it is valid.
func (e *Experiment) change(edit func(*report) *node, done func()) error {
	r := &report{}
	root := edit(r)
	var points []Point
	if len(r.problems) == 0 {
		points = resolve(root, true, e.files, r)
	}
	if err := r.err(); err != nil {
		return err
	}
	e.root, e.points = root, points
	done()
	return nil
}

// Files returns the files that the experiment names and that were read, by
// path: part of what a result came from.
func (e *Experiment) Files() []File { return e.files.list() }

// Sets returns the assignments made so far, in order, for the record.
func (e *Experiment) Sets() []Assignment { return e.sets }

// Label names a point by its parameters, "transport=hop block=1MiB"; the name
// of a point without variables is empty.
func (p Point) Label() string {
	var b strings.Builder
	for i, q := range p.Params {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(q.Name + "=" + q.Value)
	}
	return b.String()
}

// ParseAssignment splits "radio.rate=11mbit" of the command line.
func ParseAssignment(s string) (Assignment, error) {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return Assignment{}, fmt.Errorf("--set %q: want key=value, for example radio.rate=11mbit", s)
	}
	return Assignment{k, v}, nil
}

// RepetitionSeed returns the seed of one repetition (counted from 0) of an
// experiment: the same for all points, so that they meet the same conditions. It has 53 bits,
// so that it is exact in JSON and in SQLite.
func RepetitionSeed(base uint64, repetition int) uint64 {
	return mix(mix(base)+uint64(repetition)) >> 11
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection
// whose output bits each depend on every input bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
