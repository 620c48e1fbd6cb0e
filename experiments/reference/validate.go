package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// validate holds the data to the rules of this package. Its errors are mistakes
// in an embedded file, found by the tests.
func (p *Paper) validate() error {
	if p.ID == "" || p.Title == "" || p.Venue == "" || len(p.Experiments) == 0 {
		return fmt.Errorf("paper %q: id, title, venue and experiments are required", p.ID)
	}
	seen := map[string]bool{}
	once := func(kind, id string) error {
		if id == "" || seen[kind+id] {
			return fmt.Errorf("%s %q: ids must be given and differ", kind, id)
		}
		seen[kind+id] = true
		return nil
	}
	for i := range p.Experiments {
		e := &p.Experiments[i]
		if err := once("experiment ", e.ID); err != nil {
			return err
		}
		for j := range e.Values {
			if err := once("value "+e.ID+"/", e.Values[j].ID); err != nil {
				return err
			}
			if err := e.Values[j].validate(); err != nil {
				return fmt.Errorf("value %s/%s: %w", e.ID, e.Values[j].ID, err)
			}
		}
		for j := range e.Claims {
			if err := once("claim ", e.Claims[j].ID); err != nil {
				return err
			}
			if err := e.validateClaim(&e.Claims[j]); err != nil {
				return fmt.Errorf("claim %s: %w", e.Claims[j].ID, err)
			}
		}
	}
	return nil
}

var (
	sources    = []Tag{TagPaper, TagSlides, TagDriver, TagDerived, TagMemory}
	thresholds = []Tag{TagPaper, TagSlides, TagDriver, TagDerived, TagOurs} // not TagMemory
	units      = []string{"ratio", "kb/s", "Mb/s", "%", "ms", "s", "packets", "bytes", "points", "count"}
)

func (v *Value) validate() error {
	switch {
	case !slices.Contains(sources, v.Tag):
		return fmt.Errorf("the tag %q is not that of a source", v.Tag)
	case (v.Number == nil) == (v.Text == ""):
		return fmt.Errorf("want a value or a text")
	case v.Number != nil && (math.IsNaN(*v.Number) || math.IsInf(*v.Number, 0) || !slices.Contains(units, v.Unit)):
		return fmt.Errorf("value %v %q: want a finite number with one of the units %q", *v.Number, v.Unit, units)
	case v.About == "":
		return fmt.Errorf("says nothing about itself")
	}
	return nil
}

func (e *Experiment) validateClaim(c *Claim) error {
	switch {
	case !slices.Contains(thresholds, c.Tag):
		return fmt.Errorf("the tag %q cannot stand behind a threshold", c.Tag)
	case c.Measure == "":
		return fmt.Errorf("does not say by which measure our value is taken")
	case c.AboveMeasure != "" && (c.AtLeast != nil || c.AtMost != nil || c.Above != nil):
		return fmt.Errorf("is above another measure and has numbers as well")
	case c.AtLeast == nil && c.AtMost == nil && c.Above == nil && c.AboveMeasure == "":
		return fmt.Errorf("has no threshold")
	case c.AtLeast != nil && c.AtMost != nil && *c.AtLeast > *c.AtMost:
		return fmt.Errorf("at least %g and at most %g", *c.AtLeast, *c.AtMost)
	case c.Of == "":
		return fmt.Errorf("does not say of which transport")
	case len(e.Paper.Statements) > 0 && !slices.ContainsFunc(e.Paper.Statements, func(s Statement) bool { return s.Number == c.Statement }):
		return fmt.Errorf("the statement %d does not exist", c.Statement)
	case c.Experiment != "" && !slices.ContainsFunc(e.Runs, func(r Run) bool { return r.Experiment == c.Experiment }):
		return fmt.Errorf("is about %s, which %s does not run", c.Experiment, e.ID)
	case c.Why == "":
		return fmt.Errorf("does not say where its threshold comes from")
	}
	v, ok := e.Published(c)
	if !ok {
		return fmt.Errorf("the published value %q does not exist", c.Published)
	}
	if v.Tag == TagMemory && c.Tag != TagOurs {
		return fmt.Errorf("rests on %s, which is from memory", v.ID)
	}
	if c.Needs.Duration != "" {
		if _, err := vtime.ParseDuration(c.Needs.Duration); err != nil {
			return err
		}
	}
	return nil
}
