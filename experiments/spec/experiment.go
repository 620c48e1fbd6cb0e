package spec

import (
	"errors"
	"fmt"
	"strings"
)

// Experiment is a file that was read and found valid: every point of its
// matrix decodes to a Config.
type Experiment struct {
	File   string // name for messages
	Source []byte // the text as read
	Quick  bool   // the quick block was applied: not for conclusions

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
func Load(path string) (*Experiment, error) { return nil, errUnwritten }

// Parse checks an experiment; name is used in messages only. The error is an
// *Errors.
func Parse(name string, data []byte) (*Experiment, error) { return nil, errUnwritten }

// Points returns the points of the matrix in file order: at least one. The
// caller must not change them.
func (e *Experiment) Points() []Point { return e.points }

// Base returns the Config of the first point: for what no variable may change
// (name, title, reference, notes, repeat).
func (e *Experiment) Base() *Config { return e.points[0].Config }

// ApplyQuick replaces values by those of the file's quick block and marks the
// experiment. It is an error when the file has none.
func (e *Experiment) ApplyQuick() error { return errUnwritten }

// Set replaces values by assignments of the command line, all or none, with
// the same checks as the file's own values. It comes after ApplyQuick, so that
// the command line has the last word.
func (e *Experiment) Set(as ...Assignment) error { return errUnwritten }

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
// experiment: the same for all points, so that they meet the same conditions.
func RepetitionSeed(base uint64, repetition int) uint64 {
	return mix(mix(base) ^ mix(uint64(repetition)+1))
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection
// whose output bits each depend on every input bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

var errUnwritten = errors.New("spec: being written")
