package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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

// Threshold is a range for our value: at least Min, above Above, at most Max,
// as far as each is given.
type Threshold struct {
	Min, Above, Max *float64
	Source          string // where the threshold comes from
}

// String writes "≥ 10", "> 0" or "≥ 1.2 and ≤ 1.6".
func (t *Threshold) String() string {
	if t == nil {
		return ""
	}
	var s []string
	for _, limit := range []struct {
		sign string
		v    *float64
	}{{"≥", t.Min}, {">", t.Above}, {"≤", t.Max}} {
		if limit.v != nil {
			s = append(s, limit.sign+" "+strconv.FormatFloat(*limit.v, 'g', 4, 64))
		}
	}
	return strings.Join(s, " and ")
}

func (t *Threshold) holds(v float64) bool {
	return (t.Min == nil || v >= *t.Min) && (t.Above == nil || v > *t.Above) && (t.Max == nil || v <= *t.Max)
}

// Metric names how our value beside a published one is taken: "S-ratio" and
// "placement-S-ratio" for a statistic S of the goodputs (median, q1, q3, mean,
// aggregate), the latter being the median over repetitions of the ratio within
// each; or "jain-difference".
type Metric string

// metric is how a value is taken from a subject and a baseline; neutral is the
// value at which they do not differ.
type metric struct {
	text    string
	neutral float64
	take    func(p dataset.Pairs) stats.Estimate
}

var metrics = func() map[Metric]metric {
	quantile := func(q float64) func([]float64) float64 {
		return func(x []float64) float64 { return stats.Quantile(stats.Sorted(x), q) }
	}
	m := map[Metric]metric{
		"jain-difference": {"difference of Jain’s indices, mean over repetitions", 0, jainDifference},
	}
	for _, s := range []struct {
		name, text string
		of         func([]float64) float64
	}{
		{"median", "median goodputs", stats.Median},
		{"q1", "lower quartiles of goodput", quantile(0.25)},
		{"q3", "upper quartiles of goodput", quantile(0.75)},
		{"mean", "mean goodputs", stats.Mean},
		{"aggregate", "aggregate goodputs", stats.Sum},
	} {
		m[Metric(s.name+"-ratio")] = metric{"ratio of " + s.text, 1, func(p dataset.Pairs) stats.Estimate {
			return stats.Ratio(p.A, p.B, BootstrapSeed, s.of)
		}}
		m[Metric("placement-"+s.name+"-ratio")] = metric{"median over repetitions of the ratio of " + s.text, 1, func(p dataset.Pairs) stats.Estimate {
			return stats.MedianRatio(p.A, p.B, BootstrapSeed, s.of)
		}}
	}
	return m
}()

func jainDifference(p dataset.Pairs) stats.Estimate {
	return stats.Bootstrap(len(p.A), BootstrapSeed, func(reps []int) float64 {
		d := make([]float64, len(reps))
		for i, r := range reps {
			d[i] = stats.Jain(p.A[r]) - stats.Jain(p.B[r])
		}
		return stats.Mean(d)
	})
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
func judge(p Published, g *dataset.Group, baseline string, quick bool) Claim {
	c := Claim{Published: p, Verdict: NotTestable, Against: p.Baseline}
	if p.NotTestable != "" {
		c.Why = p.NotTestable
		return c
	}
	switch {
	case g.Sized:
		c.Why = "it is about goodputs, and these flows have a fixed size"
		return c
	case g.Mixed:
		c.Why = "the transports ran at once and shared the channel"
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
	c.Ours = m.take(dataset.Pair(s, b))
	seconds := math.Inf(1)
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
	case p.Value == nil && p.Threshold.String() == "":
		c.Why = "the source gives no number to compare with"
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
	case t == nil:
	case t.Min != nil && *t.Min >= neutral, t.Above != nil && *t.Above >= neutral:
		up = true
	case t.Max != nil && *t.Max <= neutral:
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
