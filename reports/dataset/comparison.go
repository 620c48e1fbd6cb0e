package dataset

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// Side is one side of a comparison: a campaign on its back end, or one
// transport of it.
type Side struct {
	Set       *Set
	Backend   string
	Transport string // "" for every transport that both sides have
	Label     string // the head of its columns
	Where     string // how the campaign is to be found: "campaign 3 of a.db"
}

// Comparison sets two sides beside each other, point by point.
type Comparison struct {
	A, B   Side
	Points []ComparedPoint
	// Judged tells that A is a model of what B is: the aims apply.
	Judged   bool
	Warnings []string
}

// ComparedPoint is one point of the matrix on both sides.
type ComparedPoint struct {
	Condition store.Params // the point without what names its transport
	Transport string       // "" when the sides are transports
	Flows     int          // of a repetition, the most of either side
	// Repetitions are those that both sides have, with equal seeds.
	Repetitions []int
	Quantities  []Compared     // those that either side has a value of
	PerFlow     *ComparedFlows // nil unless both sides have the same flows, and several
	Warnings    []string
	mixed       bool // the transports ran at once, each with flows of its own
}

// Compared is one quantity of a point on both sides.
type Compared struct {
	Quantity Quantity
	// A and B are medians over the paired repetitions, each with one value.
	A, B float64
	// Ratio is the median over repetitions of the paired ratio A/B, Difference
	// that of A−B. N is 0 where the quantity is not compared so.
	Ratio, Difference stats.Estimate
	Counts            *stats.CountRatio // events of all paired repetitions; nil where the value is no count

	Verdict Verdict
	Sure    bool   // the interval leaves no doubt about Met or Missed
	Why     string // what speaks against being sure, or how counts decided
}

// Name names the point, "" for the only one of its kind.
func (p *ComparedPoint) Name() string {
	name := p.Condition.String()
	if p.Transport != "" {
		if name != "" {
			name += ", "
		}
		name += p.Transport
	}
	return name
}

// Find returns a quantity of the point, or nil.
func (p *ComparedPoint) Find(q Quantity) *Compared {
	for i := range p.Quantities {
		if p.Quantities[i].Quantity == q {
			return &p.Quantities[i]
		}
	}
	return nil
}

// Has tells that some point has the quantity.
func (c *Comparison) Has(q Quantity) bool {
	for i := range c.Points {
		if c.Points[i].Find(q) != nil {
			return true
		}
	}
	return false
}

// Backends names the back ends that the numbers come from: "sim / netns", or
// "sim" when both sides are of it.
func (c *Comparison) Backends() string {
	if c.A.Backend == c.B.Backend {
		return c.A.Backend
	}
	return c.A.Backend + " / " + c.B.Backend
}

// model is the back end that models what the others have.
const model = "sim"

// CompareCampaigns compares two campaigns point by point: the model first, when
// one of them was run on it. Points are the same when their parameters and
// transport are, repetitions when their number and seed are. The seed decides
// the bootstrap's resamples.
func CompareCampaigns(ctx context.Context, a, b *Set, seed uint64) (*Comparison, error) {
	if b.Campaign.Backend == model && a.Campaign.Backend != model {
		a, b = b, a
	}
	c := &Comparison{
		A: Side{Set: a, Backend: a.Campaign.Backend}, B: Side{Set: b, Backend: b.Campaign.Backend},
		Judged: a.Campaign.Backend == model && b.Campaign.Backend != model,
	}
	c.A.Label, c.B.Label = c.A.Backend, c.B.Backend
	if c.A.Backend == c.B.Backend {
		c.A.Label, c.B.Label = a.Name(), b.Name()
	}
	c.A.Where, c.B.Where = a.Name(), b.Name()
	c.warnOfDifferences()
	alone := map[string]int{}
	for i := range a.Groups {
		ga := &a.Groups[i]
		if ga.Backend != c.A.Backend {
			continue
		}
		gb := b.lookup(c.B.Backend, ga.Condition)
		for j := range ga.Series {
			sa := &ga.Series[j]
			sb := gb.find(sa.Transport)
			if sb == nil {
				alone[c.A.Where]++
				continue
			}
			if err := c.add(ctx, ComparedPoint{Condition: ga.Condition, Transport: sa.Transport}, sa, sb, seed); err != nil {
				return nil, err
			}
		}
	}
	for i := range b.Groups {
		gb := &b.Groups[i]
		ga := a.lookup(c.A.Backend, gb.Condition)
		for j := range gb.Series {
			if gb.Backend == c.B.Backend && ga.find(gb.Series[j].Transport) == nil {
				alone[c.B.Where]++
			}
		}
	}
	for _, s := range []*Side{&c.A, &c.B} {
		if n := alone[s.Where]; n > 0 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s of %s %s no counterpart and %s not compared", CountOf(n, "point"), s.Where, Verb(n, "has", "have"), Verb(n, "is", "are")))
		}
	}
	return c, c.check()
}

// CompareTransports compares two transports of one campaign point by point.
func CompareTransports(ctx context.Context, set *Set, a, b string, seed uint64) (*Comparison, error) {
	backend := set.Campaign.Backend
	side := func(t string) Side {
		return Side{Set: set, Backend: backend, Transport: t, Label: t, Where: set.Name()}
	}
	c := &Comparison{A: side(a), B: side(b)}
	for i := range set.Groups {
		g := &set.Groups[i]
		sa, sb := g.Find(a), g.Find(b)
		if g.Backend != backend || sa == nil || sb == nil {
			continue
		}
		p := ComparedPoint{Condition: g.Condition}
		if p.mixed = g.Mixed; p.mixed {
			p.Warnings = append(p.Warnings, "the transports ran at once and shared the channel: they met each other, not the same conditions")
		}
		if err := c.add(ctx, p, sa, sb, seed); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

// check refuses a comparison of nothing.
func (c *Comparison) check() error {
	if len(c.Points) == 0 {
		return fmt.Errorf("%s and %s have no point in common: compare campaigns of the same experiment, or two transports of one campaign", c.A.name(), c.B.name())
	}
	for i := range c.Points {
		if len(c.Points[i].Repetitions) > 0 {
			return nil
		}
	}
	seeds := ""
	if a, b := c.A.Set.Campaign.Seed, c.B.Set.Campaign.Seed; a != b {
		seeds = fmt.Sprintf(" (their seeds are %d and %d: run both with the same --seed)", a, b)
	}
	return fmt.Errorf("%s and %s have no valid repetition in common%s", c.A.name(), c.B.name(), seeds)
}

func (s *Side) name() string {
	if s.Transport != "" {
		return s.Transport + " of " + s.Where
	}
	return s.Where
}

// Name is how a campaign is called where several are spoken of.
func (s *Set) Name() string {
	name := fmt.Sprintf("campaign %d", s.Campaign.ID)
	if s.From != "" {
		name += " of " + s.From
	}
	return name
}

// lookup finds a group, nil when there is none.
func (s *Set) lookup(backend string, condition store.Params) *Group {
	for i := range s.Groups {
		if g := &s.Groups[i]; g.Backend == backend && g.Condition.Key() == condition.Key() {
			return g
		}
	}
	return nil
}

func (g *Group) find(transport string) *Series {
	if g == nil {
		return nil
	}
	return g.Find(transport)
}

// warnOfDifferences says what differs beside the back end.
func (c *Comparison) warnOfDifferences() {
	a, b := &c.A.Set.Campaign, &c.B.Set.Campaign
	warn := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	if a.FileSHA256 != b.FileSHA256 {
		warn("the experiments differ (file sha256 %.8s and %.8s): the ratios may come from that", a.FileSHA256, b.FileSHA256)
	}
	if a.Version != b.Version {
		warn("the campaigns were run by different versions of hopbed: %s and %s", a.Version, b.Version)
	}
	for _, s := range []*Side{&c.A, &c.B} {
		if s.Set.Campaign.Quick {
			warn("%s: %s", s.Where, QuickNotice)
		}
		if e := s.Set.Ending(); e != "" {
			warn("%s: %s", s.Where, e)
		}
	}
}

// add compares one point.
func (c *Comparison) add(ctx context.Context, p ComparedPoint, a, b *Series, seed uint64) error {
	pairs := Pair(a, b)
	p.Repetitions, p.Warnings = pairs.Repetitions, append(p.Warnings, pairs.Warnings...)
	var va, vb []*repValues
	for i := range pairs.a {
		ra, rb := &pairs.a[i], &pairs.b[i]
		p.Flows = max(p.Flows, len(ra.Flows), len(rb.Flows))
		x, err1 := c.A.Set.measure(ctx, a.Transport, ra)
		y, err2 := c.B.Set.measure(ctx, b.Transport, rb)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		va, vb = append(va, x), append(vb, y)
		if ra.Run.DurationS != rb.Run.DurationS {
			p.Warnings = append(p.Warnings, fmt.Sprintf("repetition %d was measured for %g s and %g s", ra.Run.Repetition, ra.Run.DurationS, rb.Run.DurationS))
		}
	}
	var warning string
	if p.PerFlow, warning = compareFlows(&pairs, seed); warning != "" && !p.mixed {
		p.Warnings = append(p.Warnings, warning)
	}
	if p.PerFlow != nil && c.Judged {
		p.PerFlow.judge()
	}
	for _, q := range quantities {
		k := Compared{Quantity: q.quantity}
		var xa, xb []float64
		var ba, bb stats.Blocks
		var ca, cb []count
		for i := range va {
			x, y := q.value(va[i]), q.value(vb[i])
			if x != x || y != y {
				continue // a repetition without the value on either side says nothing
			}
			xa, xb = append(xa, x), append(xb, y)
			ba, bb = append(ba, []float64{x}), append(bb, []float64{y})
			if q.count != nil {
				ca, cb = append(ca, q.count(va[i])), append(cb, q.count(vb[i]))
			}
		}
		if len(xa) == 0 {
			continue
		}
		k.A, k.B = stats.Median(xa), stats.Median(xb)
		if q.ratio {
			k.Ratio = stats.MedianRatio(ba, bb, seed, stats.Sum)
		}
		if q.difference {
			k.Difference = stats.MedianDifference(ba, bb, seed, stats.Sum)
		}
		if q.count != nil {
			k.Counts = ratioOf(ca, cb)
		}
		k.judge(c.Judged)
		if p.PerFlow != nil && (q.quantity == QuantityGoodput || q.quantity == QuantityCompletionTime) {
			p.PerFlow.qualify(&k)
		}
		p.Quantities = append(p.Quantities, k)
	}
	c.Points = append(c.Points, p)
	return nil
}
