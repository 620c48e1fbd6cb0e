package claims

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// hopNSDI09 are the measures of "Block-switched Networks: A New Paradigm for
// Wireless Transport" (Li, Agrawal, Ganesan, Venkataramani, NSDI 2009). Those of
// sweeps are in sweep.go, those of single mechanisms in hop_mechanisms.go.
var hopNSDI09 = slices.Concat([]Measure{
	{
		Name: "cost-percent", About: "share of goodput that is lacking, in per cent, median over repetitions",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			p, err := r.Goodputs()
			if err != nil {
				return Sample{}, err
			}
			var each []float64
			for i := range p.A {
				each = append(each, 100*(1-stats.Sum(p.B[i])/stats.Sum(p.A[i])))
			}
			s := MedianOf(each)
			s.Seconds, s.Warnings = seconds(&p), p.Warnings
			return s, nil
		},
	},
	{
		Name: "mean-goodput-worst", Neutral: math.NaN(), With: []string{"share"},
		About: "mean goodput on the links on which the other is worst",
		Take:  worst(func(a, b []float64) float64 { return stats.Mean(a) / 1e3 }),
	},
	{
		Name: "mean-ratio-worst", Neutral: 1, With: []string{"share"},
		About: "ratio of the mean goodputs on the links on which the other is worst",
		Take:  worst(func(a, b []float64) float64 { return stats.Mean(a) / stats.Mean(b) }),
	},
	mix("mix-q1-ratio", "lower quartiles of goodput", quantile(0.25)),
	mix("mix-median-ratio", "median goodputs", stats.Median),
	mix("mix-q3-ratio", "upper quartiles of goodput", quantile(0.75)),
	mix("mix-mean-ratio", "mean goodputs", stats.Mean),
	{
		Name: "q1-gain-growth", Neutral: 1, With: []string{"variable", "short", "long"},
		About: "ratio of lower quartiles of goodput where the variable is long, over the same where it is short",
		Take:  gainGrowth,
	},
}, sweepMeasures, mechanismMeasures)

// worst is a measure of the flows of a share of the links, those on which To is
// worst; the goodputs of both are in b/s.
func worst(statistic func(a, b []float64) float64) func(context.Context, *Request) (Sample, error) {
	return func(_ context.Context, r *Request) (Sample, error) {
		share, err := r.With.Float("share", 0.2)
		if err != nil {
			return Sample{}, err
		}
		p, err := r.Goodputs()
		if err != nil {
			return Sample{}, err
		}
		return Sample{N: len(p.A), Seconds: seconds(&p), Warnings: p.Warnings, Statistic: func(reps []int) float64 {
			a, b := p.A.All(reps), p.B.All(reps)
			if len(a) != len(b) {
				return math.NaN() // a flow that could not be measured has no partner
			}
			order := indices(len(b))
			slices.SortStableFunc(order, func(i, j int) int {
				switch {
				case b[i] < b[j]:
					return -1
				case b[i] > b[j]:
					return 1
				}
				return 0
			})
			order = order[:max(1, int(math.Round(share*float64(len(order)))))]
			var wa, wb []float64
			for _, i := range order {
				wa, wb = append(wa, a[i]), append(wb, b[i])
			}
			return statistic(wa, wb)
		}}, nil
	}
}

// mix is the ratio of a statistic over points of the matrix, each of which counts
// as often as the parameter mix says: "2:3 3:1" is three of the point 2 to one of
// the point 3.
func mix(name, text string, statistic func([]float64) float64) Measure {
	return Measure{
		Name: name, Neutral: 1, With: []string{"variable", "mix"},
		About: "ratio of " + text + " over the points in the paper’s shares",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			weights, err := weightsOf(r.With.Text("mix", ""))
			if err != nil {
				return Sample{}, err
			}
			var all []dataset.Pairs
			var times []int
			for _, w := range weights {
				g, err := r.at(r.With.Text("variable", ""), w.value)
				if err != nil {
					return Sample{}, err
				}
				p, err := r.PairsAt(g)
				if err != nil {
					return Sample{}, err
				}
				all, times = append(all, p), append(times, w.times)
			}
			return together(all, func(reps []int) float64 {
				var a, b []float64
				for i := range all {
					for range times[i] {
						a, b = append(a, all[i].A.All(reps)...), append(b, all[i].B.All(reps)...)
					}
				}
				return statistic(a) / statistic(b)
			})
		},
	}
}

// at returns the only chosen point with a value of a variable.
func (r *Request) at(variable, value string) (*dataset.Group, error) {
	one := *r
	one.Where = map[string]string{variable: value}
	for k, v := range r.Where {
		one.Where[k] = v
	}
	return one.Group()
}

// together is a sample over several points whose repetitions are the same ones.
func together(all []dataset.Pairs, statistic func(reps []int) float64) (Sample, error) {
	s := Sample{Seconds: math.Inf(1), Statistic: statistic}
	for i := range all {
		p := &all[i]
		if i == 0 {
			s.N = len(p.A)
		} else if !slices.Equal(p.Repetitions, all[0].Repetitions) {
			return s, NotTestable("the points do not all have the same valid repetitions")
		}
		s.Seconds = math.Min(s.Seconds, seconds(p))
		s.Warnings = append(s.Warnings, p.Warnings...)
	}
	return s, nil
}

// weight is how often a point counts.
type weight struct {
	value string
	times int
}

func weightsOf(text string) ([]weight, error) {
	var out []weight
	for _, f := range strings.Fields(text) {
		value, times, _ := strings.Cut(f, ":")
		n, err := strconv.Atoi(times)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("the parameter mix has %q: want value:weight", f)
		}
		out = append(out, weight{value, n})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the parameter mix is missing")
	}
	return out, nil
}

func gainGrowth(_ context.Context, r *Request) (Sample, error) {
	var all []dataset.Pairs
	for _, end := range []string{"long", "short"} {
		g, err := r.at(r.With.Text("variable", ""), r.With.Text(end, ""))
		if err != nil {
			return Sample{}, err
		}
		p, err := r.PairsAt(g)
		if err != nil {
			return Sample{}, err
		}
		all = append(all, p)
	}
	q1 := quantile(0.25)
	gain := func(i int, reps []int) float64 { return q1(all[i].A.All(reps)) / q1(all[i].B.All(reps)) }
	s, err := together(all, func(reps []int) float64 { return gain(0, reps) / gain(1, reps) })
	if err != nil {
		return s, err
	}
	n := indices(s.N)
	s.Details = append(s.Details, fmt.Sprintf("×%.3g at %s, ×%.3g at %s", gain(0, n), r.With["long"], gain(1, n), r.With["short"]))
	return s, nil
}

// samplesOf calls f with every sample of the repetitions of a series.
func samplesOf(ctx context.Context, r *Request, s *dataset.Series, f func(rep int, smp *store.Sample)) error {
	for i := range s.Reps {
		err := r.Set.Store().Samples(ctx, s.Reps[i].Run.ID, func(smp *store.Sample) error {
			f(i, smp)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
