package render

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// Published is one published figure or checkable statement to stand beside our
// results.
type Published struct {
	ID       string   // "hop-nsdi09/load30/median-ratio"
	Text     string   // what the source says, in one sentence
	Value    *float64 // as published; nil when the statement has no number
	Unit     string   // "×", "kb/s", "" …
	Source   string   // where it is published, with the source tag
	Metric   Metric   // how our value is taken; "" when this experiment has none
	Subject  string   // transport, e.g. "hop"
	Baseline string   // transport compared with, e.g. "tcp/cubic"; "" for the report's baseline
	// Threshold is what our value must fulfil to match; nil when the figure
	// depends on the place where it was measured, and only the direction can be
	// compared.
	Threshold *Threshold
	// MinRepetitions and MinDurationS are what the statement needs to be
	// testable.
	MinRepetitions int
	MinDurationS   float64
	// NotTestable says why this experiment cannot test the statement, if so.
	NotTestable string
}

// Threshold is a range for our value.
type Threshold struct {
	Min, Max *float64
	Source   string // where the threshold comes from
}

// String writes "≥ 10", "≤ 0.1" or "1.2 to 1.6".
func (t *Threshold) String() string {
	n := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	switch {
	case t == nil || t.Min == nil && t.Max == nil:
		return ""
	case t.Max == nil:
		return "≥ " + n(*t.Min)
	case t.Min == nil:
		return "≤ " + n(*t.Max)
	}
	return n(*t.Min) + " to " + n(*t.Max)
}

func (t *Threshold) holds(v float64) bool {
	return (t.Min == nil || v >= *t.Min) && (t.Max == nil || v <= *t.Max)
}

// Metric names how our value beside a published one is taken.
type Metric string

// metrics is the table of what can stand beside a published figure. Each takes
// a subject and a baseline; neutral is the value at which they do not differ.
var metrics = map[Metric]struct {
	text    string
	neutral float64
	take    func(subject, baseline *dataset.Series, seed uint64) stats.Estimate
}{
	"placement-median-ratio": {"median over repetitions of the ratio of median goodputs", 1, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		return dataset.Compare(s, b, seed).PerRepetition
	}},
	"median-ratio": {"ratio of median goodputs", 1, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		return dataset.Compare(s, b, seed).Median
	}},
	"q1-ratio": {"ratio of lower quartiles of goodput", 1, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		return dataset.Compare(s, b, seed).Q1
	}},
	"q3-ratio": {"ratio of upper quartiles of goodput", 1, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		return dataset.Compare(s, b, seed).Q3
	}},
	"mean-ratio": {"ratio of mean goodputs", 1, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		return dataset.Compare(s, b, seed).Mean
	}},
	// With the same flows on both sides, the ratio of aggregates is that of
	// the means.
	"aggregate-ratio": {"ratio of aggregate goodputs", 1, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		p := dataset.Pair(s, b)
		return stats.Ratio(p.A, p.B, seed, stats.Sum)
	}},
	"jain-difference": {"difference of Jain's indices, mean over repetitions", 0, func(s, b *dataset.Series, seed uint64) stats.Estimate {
		p := dataset.Pair(s, b)
		return stats.Bootstrap(len(p.A), seed, func(reps []int) float64 {
			d := make([]float64, len(reps))
			for i, r := range reps {
				d[i] = stats.Jain(p.A[r]) - stats.Jain(p.B[r])
			}
			return stats.Mean(d)
		})
	}},
}

// Verdict is the outcome of a comparison with a published figure.
type Verdict string

// The verdicts.
const (
	Matches       Verdict = "matches"
	SameDirection Verdict = "same direction"
	Differs       Verdict = "differs"
	NotTestable   Verdict = "not testable"
)

// Claim is a published figure beside ours.
type Claim struct {
	Published
	Verdict Verdict
	Why     string         // the reason of the verdict
	Ours    stats.Estimate // N is 0 when there is no value
	How     string         // how our value is taken
	Against string         // the transport compared with
}

// judge sets a published figure beside the results of a group.
func judge(p Published, g *dataset.Group, baseline string, quick bool, seed uint64) Claim {
	c := Claim{Published: p, Verdict: NotTestable, Against: p.Baseline}
	if p.NotTestable != "" {
		c.Why = p.NotTestable
		return c
	}
	m, ok := metrics[p.Metric]
	if !ok {
		c.Why = "this experiment has no value for it"
		if p.Metric != "" {
			c.Why = fmt.Sprintf("hopbed does not know the metric %q", p.Metric)
		}
		return c
	}
	c.How = m.text
	if c.Against == "" {
		c.Against = baseline
	}
	s, b := g.Find(p.Subject), g.Find(c.Against)
	if s == nil || b == nil {
		c.Why = fmt.Sprintf("needs %s and %s; one of them was not run here", p.Subject, c.Against)
		return c
	}
	c.Ours = m.take(s, b, seed)
	var seconds = math.Inf(1)
	for i := range s.Reps {
		seconds = math.Min(seconds, s.Reps[i].Run.DurationS)
	}
	switch {
	case c.Ours.N == 0:
		c.Why = "no valid pair of repetitions"
		return c
	case quick:
		c.Why = dataset.QuickNotice
		return c
	case math.IsNaN(c.Ours.Value):
		c.Why = "our value is not defined"
		return c
	case c.Ours.N < p.MinRepetitions:
		c.Why = fmt.Sprintf("needs %d repetitions, there are %d", p.MinRepetitions, c.Ours.N)
		return c
	case seconds < p.MinDurationS:
		c.Why = fmt.Sprintf("needs runs of %g s, these have %g s", p.MinDurationS, seconds)
		return c
	}
	c.Verdict, c.Why = verdict(&c, m.neutral)
	return c
}

func verdict(c *Claim, neutral float64) (Verdict, string) {
	v := c.Ours.Value
	if t := c.Threshold; t != nil && t.holds(v) {
		why := "our value is " + t.String()
		if c.Ours.HasInterval && !(t.holds(c.Ours.Lo) && t.holds(c.Ours.Hi)) {
			why += ", but its interval reaches beyond"
		}
		return Matches, why
	}
	// Which side of "no difference" the source is on.
	var up, down bool
	switch t := c.Threshold; {
	case c.Value != nil:
		up, down = *c.Value > neutral, *c.Value < neutral
	case t != nil && t.Min != nil && *t.Min >= neutral:
		up = true
	case t != nil && t.Max != nil && *t.Max <= neutral:
		down = true
	}
	why := "no threshold: it depends on the place where it was measured"
	if c.Threshold != nil {
		why = "our value is not " + c.Threshold.String()
	}
	if up && v > neutral || down && v < neutral {
		return SameDirection, why
	}
	return Differs, why
}
