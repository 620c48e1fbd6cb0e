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

// sweepMeasures are of goodput over the values of one variable.
var sweepMeasures = []Measure{
	{
		Name: "share-at", Neutral: 1, With: []string{"variable", "at", "base"},
		About: "goodput at one value of the variable over that at another, median over repetitions",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			w, err := sweepOf(r)
			if err != nil {
				return Sample{}, err
			}
			at, base := w.find(r.With.Text("at", "")), w.find(r.With.Text("base", ""))
			if at < 0 || base < 0 {
				return Sample{}, NotTestable("needs the points %s=%s and %s", w.variable, r.With["at"], r.With["base"])
			}
			each := make([]float64, w.n)
			for i := range each {
				each[i] = w.goodput[at][i] / w.goodput[base][i]
			}
			return w.sample(MedianOf(each)), nil
		},
	},
	{
		Name: "linear-fit-r2", Neutral: math.NaN(), With: []string{"variable", "from", "to"},
		About: "R² of a straight line through the mean goodputs over the variable",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			w, err := sweepOf(r)
			if err != nil {
				return Sample{}, err
			}
			from, err1 := r.With.Float("from", math.Inf(-1))
			to, err2 := r.With.Float("to", math.Inf(1))
			if err1 != nil || err2 != nil {
				return Sample{}, fmt.Errorf("%v %v", err1, err2)
			}
			if w = w.between(from, to); len(w.x) < 3 {
				return Sample{}, NotTestable("needs three points between %s=%g and %g, there are %d", w.variable, from, to, len(w.x))
			}
			return w.sample(Sample{N: w.n, Statistic: func(reps []int) float64 { return rSquared(w.x, w.means(reps)) }}), nil
		},
	},
	{
		Name: "loss-of-collapse", Neutral: math.NaN(), With: []string{"variable", "share"},
		About: "where the mean goodput falls below a tenth of that at the first point, by a line between the points about it",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			w, err := sweepOf(r)
			if err != nil {
				return Sample{}, err
			}
			share, err := r.With.Float("share", 0.1)
			if err != nil {
				return Sample{}, err
			}
			return w.sample(Sample{N: w.n, Statistic: func(reps []int) float64 { return crossing(w.x, w.means(reps), share) }}), nil
		},
	},
}

// sweep is the goodput of one transport over a variable, repetition by repetition.
type sweep struct {
	variable string
	values   []string
	x        []float64   // the values as numbers, ascending
	goodput  [][]float64 // by value and repetition: of the median flow, b/s
	n        int         // repetitions, the same at all values
	seconds  float64
}

// sweepOf reads the sweep of a request's transport over its parameter variable.
func sweepOf(r *Request) (*sweep, error) {
	w := &sweep{variable: r.With.Text("variable", ""), seconds: math.Inf(1)}
	var reps []int
	for _, g := range r.Groups() {
		value, ok := g.Condition[w.variable]
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimRight(value, "%abcdefghijklmnopqrstuvwxyz"), 64)
		if err != nil {
			return nil, NotTestable("the value %s=%s is no number", w.variable, value)
		}
		if slices.Contains(w.x, x) {
			return nil, NotTestable("there are several points with %s=%s", w.variable, value)
		}
		s, err := r.Series(g, r.Of)
		if err != nil {
			return nil, err
		}
		var have []int
		var of []float64
		for i := range s.Reps {
			have = append(have, s.Reps[i].Run.Repetition)
			of = append(of, stats.Median(s.Reps[i].Goodputs()))
			w.seconds = math.Min(w.seconds, s.Reps[i].Run.DurationS)
		}
		if reps != nil && !slices.Equal(reps, have) {
			return nil, NotTestable("the points do not all have the same valid repetitions")
		}
		reps = have
		at, _ := slices.BinarySearch(w.x, x)
		w.values, w.x, w.goodput = slices.Insert(w.values, at, value), slices.Insert(w.x, at, x), slices.Insert(w.goodput, at, of)
	}
	if w.n = len(reps); len(w.x) < 2 || w.n == 0 {
		return nil, NotTestable("needs valid runs at several values of %s", w.variable)
	}
	return w, nil
}

func (w *sweep) find(value string) int { return slices.Index(w.values, value) }

// between keeps the points whose value is in a range.
func (w *sweep) between(from, to float64) *sweep {
	out := &sweep{variable: w.variable, n: w.n, seconds: w.seconds}
	for i, x := range w.x {
		if from <= x && x <= to {
			out.values, out.x, out.goodput = append(out.values, w.values[i]), append(out.x, x), append(out.goodput, w.goodput[i])
		}
	}
	return out
}

func (w *sweep) means(reps []int) []float64 {
	out := make([]float64, len(w.x))
	for i := range out {
		for _, r := range reps {
			out[i] += w.goodput[i][r] / float64(len(reps))
		}
	}
	return out
}

// sample adds what stands behind a value: the goodputs beside that at the first
// point.
func (w *sweep) sample(s Sample) Sample {
	m := w.means(indices(w.n))
	var text []string
	for i := range m {
		text = append(text, fmt.Sprintf("%s: %.3g %%", w.values[i], 100*m[i]/m[0]))
	}
	s.Details = append(s.Details, "of the goodput at "+w.values[0]+": "+strings.Join(text, ", "))
	s.Seconds = w.seconds
	return s
}

// rSquared is the share of the variance of y that a straight line over x explains.
func rSquared(x, y []float64) float64 {
	mx, my := stats.Mean(x), stats.Mean(y)
	var sxx, sxy, syy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
		syy += (y[i] - my) * (y[i] - my)
	}
	return sxy * sxy / (sxx * syy)
}

// crossing is where y first falls below a share of its first value, +Inf where it
// does not.
func crossing(x, y []float64, share float64) float64 {
	limit := share * y[0]
	for i := 1; i < len(x); i++ {
		if y[i] < limit {
			return x[i-1] + (x[i]-x[i-1])*(y[i-1]-limit)/(y[i-1]-y[i])
		}
	}
	return math.Inf(1)
}

// oneGroupOf returns the only chosen point whose runs carried a transport beside
// other flows: its transport is then the value of the variable transport.
func (r *Request) oneGroupOf(transport string) (*dataset.Group, error) {
	var found []*dataset.Group
	for _, g := range r.Groups() {
		if t := g.Condition["transport"]; t == transport || family(t) == transport {
			found = append(found, g)
		}
	}
	if len(found) == 0 {
		return nil, NotTestable("needs %s, which was not run here%s", transport, r.where())
	}
	return found[0], nil
}
