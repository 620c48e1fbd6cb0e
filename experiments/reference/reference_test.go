package reference

import (
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func TestTheHeadline(t *testing.T) {
	e, err := Lookup("hop-nsdi09/load30")
	if err != nil {
		t.Fatal(err)
	}
	if e.Paper.ID != "hop-nsdi09" || !strings.Contains(e.Paper.Title, "Block-switched") || e.Section != "5.3" {
		t.Errorf("%+v", e)
	}
	var c *Claim
	for i := range e.Claims {
		if e.Claims[i].Measure == "median-ratio" {
			c = &e.Claims[i]
		}
	}
	if c == nil {
		t.Fatal("no claim about the median")
	}
	v, ok := e.Published(c)
	if !ok || *v.Number != 90 || v.Tag != TagPaper || c.Tag != TagOurs || c.Limits() != "≥ 10" {
		t.Errorf("published %+v, claim %+v", v, c)
	}
	if c.Needs.Placements["netns"] != 5 || c.Needs.Placements["sim"] != 12 || c.Needs.MeasuredInterval() != 300*vtime.Second {
		t.Errorf("needs %+v", c.Needs)
	}
	for v, want := range map[float64]bool{9.99: false, 10: true, 90: true, math.NaN(): false} {
		if c.Holds(v) != want {
			t.Errorf("Holds(%v) = %v", v, !want)
		}
	}
}

func TestAllPapersAreSound(t *testing.T) {
	papers, err := Papers()
	if err != nil {
		t.Fatal(err)
	}
	values, claims := 0, 0
	for _, p := range papers {
		for i := range p.Experiments {
			e := &p.Experiments[i]
			values += len(e.Values)
			claims += len(e.Claims)
			if got, err := Lookup(p.ID + "/" + e.ID); err != nil || got != e {
				t.Errorf("Lookup(%s/%s) = %v, %v", p.ID, e.ID, got, err)
			}
			for j := range e.Claims {
				if v, ok := e.Published(&e.Claims[j]); !ok || v.About == "" || e.Claims[j].Limits() == "" {
					t.Errorf("claim %s: published %v, limits %q", e.Claims[j].ID, v, e.Claims[j].Limits())
				}
			}
		}
	}
	if values < 15 || claims < 10 {
		t.Errorf("%d values and %d claims only", values, claims)
	}
}

func TestLookupOfWhatIsNotThere(t *testing.T) {
	for _, ref := range []string{"", "hop-nsdi09", "hop-nsdi09/load31", "x/load30"} {
		if _, err := Lookup(ref); err == nil || !strings.Contains(err.Error(), "hop-nsdi09/load30") {
			t.Errorf("Lookup(%q): %v", ref, err)
		}
	}
}

// TestRulesAreHeld: files that break a rule of the package are refused.
func TestRulesAreHeld(t *testing.T) {
	const good = `paper: x
title: T
venue: V
experiments:
  - id: e
    values: [{id: v, measure: jain, of: hop, value: 1, unit: ratio, tag: TAG, about: a}]
    claims: [{id: c, measure: jain, of: hop, at-least: 1, tag: CTAG, published: PUB, why: w}]
`
	with := func(tag, ctag, pub string) []byte {
		return []byte(strings.NewReplacer("CTAG", ctag, "TAG", tag, "PUB", pub).Replace(good))
	}
	if _, err := parse("x", with("P", "R", "v")); err != nil {
		t.Fatalf("a sound file is refused: %v", err)
	}
	for _, c := range []struct {
		name string
		text []byte
		want string
	}{
		{"a threshold from memory", with("P", "M", "v"), "cannot stand behind a threshold"},
		{"a threshold on a remembered value", with("M", "P", "v"), "from memory"},
		{"unknown tag", with("Q", "R", "v"), "not that of a source"},
		{"our own tag on a published value", with("R", "R", "v"), "not that of a source"},
		{"nothing published", with("P", "R", "w"), "does not exist"},
		{"another experiment's value that is not there", with("P", "R", "f/v"), "does not exist"},
		{"unknown key", append(with("P", "R", "v"), "vnue: V\n"...), "vnue"},
		{"no threshold", []byte(strings.Replace(string(with("P", "R", "v")), "at-least: 1, ", "", 1)), "no threshold"},
		{"no measure", []byte(strings.Replace(string(with("P", "R", "v")), "measure: jain, of: hop, at", "of: hop, at", 1)), "by which measure"},
		{"no transport", []byte(strings.Replace(string(with("P", "R", "v")), "of: hop, at", "at", 1)), "which transport"},
		{"not a number", []byte(strings.Replace(string(with("P", "R", "v")), "value: 1,", "value: .nan,", 1)), "finite"},
	} {
		if _, err := parse("x", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
