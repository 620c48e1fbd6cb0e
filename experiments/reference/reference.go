package reference

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/hopbed/hopbed/netem/vtime"
)

//go:embed *.yaml
var files embed.FS

// Tag says where a value comes from.
type Tag string

// The sources.
const (
	TagPaper   Tag = "P"  // the paper or page itself
	TagSlides  Tag = "SL" // slides about it
	TagDriver  Tag = "MW" // MadWifi's source
	TagDerived Tag = "D"  // derived here from P
	TagMemory  Tag = "M"  // from memory, unverified: never a threshold
	TagOurs    Tag = "R"  // a choice of ours where the source is silent
)

// Describe spells the tag out for readers of a report.
func (t Tag) Describe() string {
	switch t {
	case TagPaper:
		return "reported in the paper"
	case TagSlides:
		return "from slides about the paper"
	case TagDriver:
		return "from MadWifi's source"
	case TagDerived:
		return "derived from the paper"
	case TagMemory:
		return "from memory, unverified"
	case TagOurs:
		return "our choice: the paper gives no limit"
	}
	return "unknown source"
}

// Paper is everything that one publication reports.
type Paper struct {
	ID      string `yaml:"paper"`
	Title   string `yaml:"title"`
	Authors string `yaml:"authors"`
	Venue   string `yaml:"venue"`
	Testbed string `yaml:"testbed"`
	// Statements are what can be checked, in our words; claims make them exact.
	Statements  []Statement  `yaml:"statements"`
	Experiments []Experiment `yaml:"experiments"`
}

// Statement is one checkable statement of a paper.
type Statement struct {
	Number int    `yaml:"number"`
	Text   string `yaml:"text"`
}

// Experiment is one experiment of a paper.
type Experiment struct {
	Paper   *Paper  `yaml:"-"`
	ID      string  `yaml:"id"`
	Section string  `yaml:"section"`
	Title   string  `yaml:"title"`
	Setup   string  `yaml:"setup"`
	Runs    []Run   `yaml:"runs"` // the shipped experiments that make up ours
	Values  []Value `yaml:"values"`
	Claims  []Claim `yaml:"claims"`
}

// Run is one shipped experiment of a pack.
type Run struct {
	Experiment string         `yaml:"experiment"`
	Repeat     map[string]int `yaml:"repeat"` // repetitions by back end, where not the file's
	// Short are the changes, key and value as of --set, that make it short enough
	// to be run at every change of hopbed. Without any it is not run then.
	Short map[string]string `yaml:"short"`
}

// Value is one reported figure.
type Value struct {
	ID     string `yaml:"id"`
	Taken  `yaml:",inline"`
	Number *float64 `yaml:"value"` // nil where the source gives a direction only
	Text   string   `yaml:"text"`
	Unit   string   `yaml:"unit"` // ratio, kb/s, %
	Tag    Tag      `yaml:"tag"`
	About  string   `yaml:"about"`
}

// Taken says how the value of ours that stands beside a published one is taken:
// by a measure (reports/claims), of which transports at which points.
type Taken struct {
	Measure string            `yaml:"measure"` // empty for a value that is shown and not compared
	Of      string            `yaml:"of"`      // transport, or family: "tcp" is the first TCP of the experiment
	To      string            `yaml:"to"`      // what it is compared with
	Where   map[string]string `yaml:"where"`   // points of the matrix
	With    map[string]string `yaml:"with"`    // the measure's own parameters
	// Experiment is the shipped experiment that has the value, where the figure
	// runs several; the first otherwise.
	Experiment string `yaml:"experiment"`
}

// Claim is one part of a checkable statement: a value of ours and the limits
// within which the statement counts as reproduced.
type Claim struct {
	ID        string `yaml:"id"`
	Statement int    `yaml:"statement"` // the number of the statement that it belongs to
	Taken     `yaml:",inline"`

	AtLeast      *float64 `yaml:"at-least"`
	AtMost       *float64 `yaml:"at-most"`
	Above        *float64 `yaml:"above"`         // strictly
	AboveMeasure string   `yaml:"above-measure"` // strictly above another measure of the same points and transports

	Tag       Tag    `yaml:"tag"` // of the threshold
	Why       string `yaml:"why"`
	Published string `yaml:"published"` // id of the value beside which ours is shown; "experiment/id" for another experiment's
	Needs     Needs  `yaml:"needs"`
}

// Needs is what a campaign must have before the claim says anything.
type Needs struct {
	Radio      string         `yaml:"radio"`      // "building" or empty
	Placements map[string]int `yaml:"placements"` // by back end
	Duration   string         `yaml:"duration"`
}

// MeasuredInterval returns the duration that the claim needs, 0 for any.
func (n Needs) MeasuredInterval() vtime.Duration {
	d, err := vtime.ParseDuration(n.Duration)
	if err != nil {
		return 0
	}
	return d
}

// Limits writes the thresholds for people: "≥ 1.2 and ≤ 1.6".
func (c *Claim) Limits() string {
	var s []string
	if c.AtLeast != nil {
		s = append(s, fmt.Sprintf("≥ %g", *c.AtLeast))
	}
	if c.AtMost != nil {
		s = append(s, fmt.Sprintf("≤ %g", *c.AtMost))
	}
	if c.Above != nil {
		s = append(s, fmt.Sprintf("> %g", *c.Above))
	}
	if c.AboveMeasure != "" {
		s = append(s, "> "+c.AboveMeasure)
	}
	return strings.Join(s, " and ")
}

// Holds reports whether a value of ours is within the numeric limits. A claim
// against another metric has none: compare with that metric.
func (c *Claim) Holds(v float64) bool {
	switch {
	case math.IsNaN(v):
		return false
	case c.AtLeast != nil && v < *c.AtLeast:
		return false
	case c.AtMost != nil && v > *c.AtMost:
		return false
	case c.Above != nil && v <= *c.Above:
		return false
	}
	return true
}

// Published returns the value beside which a claim's result is shown.
func (e *Experiment) Published(c *Claim) (*Value, bool) {
	exp, id := e, c.Published
	if other, rest, ok := strings.Cut(id, "/"); ok {
		id = rest
		if exp = e.Paper.experiment(other); exp == nil {
			return nil, false
		}
	}
	for i := range exp.Values {
		if exp.Values[i].ID == id {
			return &exp.Values[i], true
		}
	}
	return nil, false
}

func (p *Paper) experiment(id string) *Experiment {
	for i := range p.Experiments {
		if p.Experiments[i].ID == id {
			return &p.Experiments[i]
		}
	}
	return nil
}

var load = sync.OnceValues(func() ([]*Paper, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var papers []*Paper
	for _, n := range names {
		b, err := files.ReadFile(n)
		if err != nil {
			return nil, err
		}
		p, err := parse(n, b)
		if err != nil {
			return nil, err
		}
		papers = append(papers, p)
	}
	return papers, nil
})

func parse(name string, b []byte) (*Paper, error) {
	p := &Paper{}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("reference values %s: %w", name, err)
	}
	for i := range p.Experiments {
		p.Experiments[i].Paper = p
	}
	if err := p.validate(); err != nil {
		return nil, fmt.Errorf("reference values %s: %w", name, err)
	}
	return p, nil
}

// ExperimentOf is the shipped experiment that has a value of the figure; "" where
// none is run for it.
func (e *Experiment) ExperimentOf(t *Taken) string {
	if t.Experiment != "" || len(e.Runs) == 0 {
		return t.Experiment
	}
	return e.Runs[0].Experiment
}

// Find returns a paper by its id.
func Find(paper string) (*Paper, error) {
	papers, err := load()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, p := range papers {
		if p.ID == paper {
			return p, nil
		}
		known = append(known, p.ID)
	}
	return nil, fmt.Errorf("there is no paper %q; there are %s", paper, strings.Join(known, ", "))
}

// Papers returns all papers, by id. The caller must not change them.
func Papers() ([]*Paper, error) { return load() }

// Lookup finds an experiment by "paper/experiment", as an experiment file's key
// reference names it.
func Lookup(ref string) (*Experiment, error) {
	papers, err := load()
	if err != nil {
		return nil, err
	}
	paper, id, _ := strings.Cut(ref, "/")
	var known []string
	for _, p := range papers {
		for i := range p.Experiments {
			if p.ID == paper && p.Experiments[i].ID == id {
				return &p.Experiments[i], nil
			}
			known = append(known, p.ID+"/"+p.Experiments[i].ID)
		}
	}
	return nil, fmt.Errorf("there are no published values for %q; there are for %s", ref, strings.Join(known, ", "))
}
