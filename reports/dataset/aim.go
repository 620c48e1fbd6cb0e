package dataset

import (
	"fmt"
	"math"

	"github.com/hopbed/hopbed/reports/stats"
)

// Aim is how near to the kernel's the model's value of a quantity is meant to
// be: the ratio model/kernel within 1 ± Within.
type Aim struct {
	Quantity Quantity
	Within   float64
}

// Aims are the project's, fixed before any result was seen. Completion time is
// the goodput of flows of a fixed size.
var Aims = []Aim{{QuantityGoodput, 0.05}, {QuantityCompletionTime, 0.05}, {QuantityRetransmitted, 0.15}, {QuantityRTT, 0.15}}

// FlowAims say how alike the single flows of a point with several are meant to
// be, beside their sum: see FlowRule.
var FlowAims = struct{ Moved, Jain, Starved float64 }{0.10, 0.10, 0.10}

// FlowRule says when the flows of a point differ although their sum does not.
var FlowRule = fmt.Sprintf("Where a point has several flows, they must be alike, not only their sum; otherwise the verdict is “%s”. "+
	"At most %.0f %% may be another flow's on the other side (½ Σ |share A − share B|, the shares being averaged over the repetitions), or twice what the differences between repetitions explain by chance; "+
	"with one repetition, or where each has other flows, chance is not known and a difference not sure. "+
	"Jain's index may differ by %g and the share of starved flows by %g. "+
	"No flow may starve in all repetitions of one side while it has at least half of an equal share in all of the other.",
	FlowsDiffer, 100*FlowAims.Moved, FlowAims.Jain, FlowAims.Starved)

// AimFor returns the aim for a quantity; false when it is shown and not judged.
func AimFor(q Quantity) (Aim, bool) {
	for _, a := range Aims {
		if a.Quantity == q {
			return a, true
		}
	}
	return Aim{}, false
}

// countTolerance is how well a ratio of counts must be known to be taken at its
// word, where no aim says it.
const countTolerance = 0.15

// CountRule says when a ratio of counts is not judged.
var CountRule = fmt.Sprintf("A ratio of counts is “too few” when its Poisson error √(1/a + 1/b), a and b being the events of either side over all compared repetitions, exceeds %.0f %% (less than about %.0f events on either side), unless the sides differ by more than that and twice the error. A segment sent again counts as %d B.",
	100*countTolerance, math.Ceil(2/(countTolerance*countTolerance)), segmentBytes)

// Verdict says whether an aim is met.
type Verdict string

// The verdicts.
const (
	NotJudged   Verdict = ""             // there is no aim, or no value
	Met         Verdict = "met"          // the value is within the aim
	Missed      Verdict = "missed"       // it is not
	FlowsDiffer Verdict = "flows differ" // the sum is, but not the flows (FlowRule)
	TooFew      Verdict = "too few"      // the events are too few to tell (CountRule)
)

// judge decides the verdict of a value. Aims are for a model beside what it
// models; the rule of counts is for every comparison.
func (c *Compared) judge(aims bool) {
	aim, has := AimFor(c.Quantity)
	limit := countTolerance
	if has {
		limit = aim.Within
	}
	if c.Counts != nil && c.Ratio.N > 0 && c.judgeCounts(limit) {
		if c.Verdict != TooFew && !(aims && has) {
			c.Verdict, c.Sure = NotJudged, false
		}
		return
	}
	if !has || !aims || c.Ratio.N == 0 || math.IsNaN(c.Ratio.Value) {
		return
	}
	e := c.Ratio
	lo, hi := 1-limit, 1+limit
	inside := lo <= e.Value && e.Value <= hi
	c.Verdict = Missed
	if inside {
		c.Verdict = Met
	}
	switch {
	case !e.Trusted():
		c.Why = fmt.Sprintf("%d repetitions are too few for a sure interval", e.N)
		if e.N == 1 {
			c.Why = "one repetition has no interval"
		}
	case inside && (e.Lo < lo || e.Hi > hi), !inside && e.Lo <= hi && e.Hi >= lo:
		c.Why = "the interval reaches over the edge of the aim"
	case !inside && c.Counts != nil && math.Abs(c.Counts.Log)-2*c.Counts.Error <= math.Log(1+limit):
		c.Why = fmt.Sprintf("%.0f beside %.0f events: their ratio is not known better than ± %.0f %%", c.Counts.A, c.Counts.B, 100*c.Counts.Error)
	default:
		c.Sure = true
	}
}

// judgeCounts decides what the counts alone decide, and returns whether they do.
func (c *Compared) judgeCounts(limit float64) bool {
	n := c.Counts
	if n.A == 0 && n.B == 0 {
		c.Verdict, c.Sure, c.Why = Met, true, "none on either side"
		return true
	}
	if n.Error <= limit {
		return false
	}
	if math.Abs(n.Log)-2*n.Error > math.Log(1+limit) {
		c.Verdict, c.Sure, c.Why = Missed, true, fmt.Sprintf("%.0f beside %.0f events: few, and still too far apart for chance", n.A, n.B)
		return true
	}
	c.Verdict, c.Why = TooFew, fmt.Sprintf("%.0f beside %.0f events: their ratio is not known better than ± %.0f %%", n.A, n.B, 100*n.Error)
	return true
}

// Tally counts the verdicts of one quantity over the points of a comparison.
type Tally struct {
	Aim
	Met, Missed, FlowsDiffer, TooFew int
	Unsure                           int // of these, TooFew aside
}

// Tally sums up what became of the aims.
func (c *Comparison) Tally() []Tally {
	var out []Tally
	for _, a := range Aims {
		t := Tally{Aim: a}
		for i := range c.Points {
			q := c.Points[i].Find(a.Quantity)
			if q == nil {
				continue
			}
			switch q.Verdict {
			case Met:
				t.Met++
			case Missed:
				t.Missed++
			case FlowsDiffer:
				t.FlowsDiffer++
			case TooFew:
				t.TooFew++
			default:
				continue
			}
			if !q.Sure && q.Verdict != TooFew {
				t.Unsure++
			}
		}
		if t.Met+t.Missed+t.FlowsDiffer+t.TooFew > 0 {
			out = append(out, t)
		}
	}
	return out
}

// ratioOf compares the counts of paired repetitions; nil when either side was
// exposed to nothing.
func ratioOf(a, b []count) *stats.CountRatio {
	var ca, cb count
	for i := range a {
		ca.events += a[i].events
		ca.exposure += a[i].exposure
		cb.events += b[i].events
		cb.exposure += b[i].exposure
	}
	if ca.exposure <= 0 || cb.exposure <= 0 {
		return nil
	}
	r := stats.RatioOfCounts(ca.events, ca.exposure, cb.events, cb.exposure)
	return &r
}
