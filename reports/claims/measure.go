package claims

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// Measure is how a value beside a published one is taken.
type Measure struct {
	Name string
	// About says what the value is, in the words of a report.
	About string
	// Neutral is the value at which there is nothing to be seen: 1 for a ratio of
	// equals, 0 for their difference, NaN where there is no such value. It decides
	// "same direction".
	Neutral float64
	// With names the parameters that the measure takes; others are mistakes.
	With []string
	// Take takes the value. An error of the type *NotTestableError says that this
	// campaign cannot have it; any other error is a fault.
	Take func(ctx context.Context, r *Request) (Sample, error)
}

// tables lists the measures: those of any paper, then one table for each. A name
// may be there once.
var tables = [][]Measure{general, hopNSDI09, hsdpaTCP, coopDEIM15, wlanFairness}

// Find returns the measure of a name, or nil.
func Find(name string) *Measure {
	for _, t := range tables {
		if i := slices.IndexFunc(t, func(m Measure) bool { return m.Name == name }); i >= 0 {
			return &t[i]
		}
	}
	return nil
}

// Names returns the names of all measures in the order of the tables.
func Names() []string {
	var out []string
	for _, t := range tables {
		for i := range t {
			out = append(out, t[i].Name)
		}
	}
	return out
}

// Sample is what a measure found: a statistic of whole repetitions, which are
// resampled for the interval because what happens within one is not independent.
type Sample struct {
	// N is the number of repetitions, or pairs of them.
	N int
	// Statistic is the value from these repetitions, 0 to N-1, possibly repeated.
	Statistic func(repetitions []int) float64
	// Seconds is the shortest measured interval that it rests on; 0 for not known.
	Seconds float64
	// Details say what stands behind the value, such as the values of both sides.
	Details []string
	// Warnings are about the pairing.
	Warnings []string
}

// MedianOf is the median over repetitions that have one value each.
func MedianOf(values []float64) Sample { return statisticOf(values, stats.Median) }

// MeanOf is the mean over repetitions that have one value each.
func MeanOf(values []float64) Sample { return statisticOf(values, stats.Mean) }

func statisticOf(values []float64, statistic func([]float64) float64) Sample {
	return Sample{N: len(values), Statistic: func(reps []int) float64 {
		x := make([]float64, len(reps))
		for i, r := range reps {
			x[i] = values[r]
		}
		return statistic(x)
	}}
}

// estimate is the value with its interval. neutral is the value of no difference.
func (s *Sample) estimate(neutral float64) stats.Estimate {
	if s.N == 0 {
		return stats.Estimate{}
	}
	e := stats.Bootstrap(s.N, Seed, s.Statistic)
	switch {
	case math.IsInf(e.Value, 0):
		e.Warnings = append(e.Warnings, "the value is not finite: its divisor is 0")
	case !math.IsNaN(neutral) && e.Contains(neutral):
		e.Warnings = append(e.Warnings, fmt.Sprintf("interval includes %g: a difference is not shown", neutral))
	}
	for _, w := range s.Warnings {
		if !slices.Contains(e.Warnings, w) {
			e.Warnings = append(e.Warnings, w)
		}
	}
	return e
}

// NotTestableError says why a campaign has no value for a measure.
type NotTestableError struct{ Because string }

func (e *NotTestableError) Error() string { return e.Because }

// NotTestable makes such an error.
func NotTestable(format string, args ...any) error {
	return &NotTestableError{fmt.Sprintf(format, args...)}
}

// Params are a measure's own parameters, as the paper's file has them.
type Params map[string]string

// Float returns a number, or what it is when not given.
func (p Params) Float(name string, otherwise float64) (float64, error) {
	s, ok := p[name]
	if !ok {
		return otherwise, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("the parameter %s is %q: want a number", name, s)
	}
	return v, nil
}

// Text returns a text, or what it is when not given.
func (p Params) Text(name, otherwise string) string {
	if s, ok := p[name]; ok {
		return s
	}
	return otherwise
}

// Request is what a measure is asked: of which campaign, points and transports.
type Request struct {
	Set *dataset.Set
	// Of and To are transports or their families: "tcp" is the first TCP of the
	// campaign. To is empty where nothing is compared.
	Of, To string
	// Where chooses points of the matrix by their variables; all others may have
	// any value.
	Where map[string]string
	With  Params
}

// Groups returns the chosen points of the campaign on its own back end, in the
// order of the plan.
func (r *Request) Groups() []*dataset.Group {
	var out []*dataset.Group
	for i := range r.Set.Groups {
		if g := &r.Set.Groups[i]; g.Backend == r.Set.Campaign.Backend && r.chosen(g) {
			out = append(out, g)
		}
	}
	return out
}

func (r *Request) chosen(g *dataset.Group) bool {
	for name, value := range r.Where {
		if g.Condition[name] != value {
			return false
		}
	}
	return true
}

// Group returns the only chosen point.
func (r *Request) Group() (*dataset.Group, error) {
	switch all := r.Groups(); len(all) {
	case 1:
		return all[0], nil
	case 0:
		return nil, NotTestable("no point of this campaign is as the statement wants%s", r.where())
	default:
		return nil, NotTestable("it is about one point, and this campaign has %d%s", len(all), r.where())
	}
}

func (r *Request) where() string {
	var s []string
	for name, value := range r.Where {
		s = append(s, name+"="+value)
	}
	if len(s) == 0 {
		return ""
	}
	slices.Sort(s)
	return " with " + strings.Join(s, ", ")
}

// Series returns a transport of a point, by its name or its family. The family
// "best-other" is the transport that is no variant of Of's family and has the
// highest median goodput.
func (r *Request) Series(g *dataset.Group, transport string) (*dataset.Series, error) {
	if s := g.Find(transport); s != nil {
		return s, nil
	}
	if transport == bestOther {
		return r.bestOther(g)
	}
	for i := range g.Series {
		if family(g.Series[i].Transport) == transport {
			return &g.Series[i], nil
		}
	}
	return nil, NotTestable("needs %s, which was not run here", transport)
}

const bestOther = "best-other"

func family(transport string) string {
	f, _, _ := strings.Cut(transport, "/")
	return f
}

func (r *Request) bestOther(g *dataset.Group) (best *dataset.Series, err error) {
	var most float64
	for i := range g.Series {
		s := &g.Series[i]
		if family(s.Transport) == family(r.Of) {
			continue
		}
		if m := stats.Median(s.Blocks().All(indices(len(s.Reps)))); best == nil || m > most {
			best, most = s, m
		}
	}
	if best == nil {
		return nil, NotTestable("needs a transport beside %s, and none was run here", r.Of)
	}
	return best, nil
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// One returns the series of Of at the only chosen point.
func (r *Request) One() (*dataset.Series, error) {
	g, err := r.Group()
	if err != nil {
		return nil, err
	}
	return r.Series(g, r.Of)
}

// Goodputs pairs the repetitions of Of and To at the only chosen point, whose
// flows are compared by goodput.
func (r *Request) Goodputs() (dataset.Pairs, error) {
	g, err := r.Group()
	if err != nil {
		return dataset.Pairs{}, err
	}
	return r.PairsAt(g)
}

// PairsAt is Goodputs at a given point.
func (r *Request) PairsAt(g *dataset.Group) (dataset.Pairs, error) {
	switch {
	case g.Sized:
		return dataset.Pairs{}, NotTestable("it is about goodputs, and these flows have a fixed size")
	case g.Mixed:
		return dataset.Pairs{}, NotTestable("the transports ran at once and shared the channel")
	}
	a, err := r.Series(g, r.Of)
	if err != nil {
		return dataset.Pairs{}, err
	}
	b, err := r.Series(g, r.To)
	if err != nil {
		return dataset.Pairs{}, err
	}
	p := dataset.Pair(a, b)
	if len(p.A) == 0 {
		return p, NotTestable("no valid pair of repetitions of %s and %s", a.Transport, b.Transport)
	}
	return p, nil
}
