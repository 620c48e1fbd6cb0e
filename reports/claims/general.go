package claims

import (
	"context"
	"fmt"
	"math"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// general are the measures that more than one paper has a use for. Of goodputs
// there are two kinds: the ratio of a statistic of the one transport's flows to
// that of the other's within a repetition, with the median over repetitions
// ("median-ratio"), and the same of the flows of all repetitions together
// ("pooled-median-ratio").
var general = func() []Measure {
	var out []Measure
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
		out = append(out, Measure{
			Name: s.name + "-ratio", Neutral: 1, About: "median over repetitions of the ratio of " + s.text,
			Take: func(_ context.Context, r *Request) (Sample, error) {
				p, err := r.Goodputs()
				if err != nil {
					return Sample{}, err
				}
				return RatioOf(&p, s.of), nil
			},
		}, Measure{
			Name: "pooled-" + s.name + "-ratio", Neutral: 1, About: "ratio of " + s.text,
			Take: paired(func(a, b stats.Blocks, reps []int) float64 { return s.of(a.All(reps)) / s.of(b.All(reps)) }),
		})
	}
	return append(out, Measure{
		Name: "jain", Neutral: math.NaN(), About: "Jain’s index of the flows’ goodputs, mean over repetitions",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			s, err := r.One()
			if err != nil {
				return Sample{}, err
			}
			var each []float64
			for i := range s.Reps {
				each = append(each, stats.Jain(s.Reps[i].Goodputs()))
			}
			return MeanOf(each), nil
		},
	}, Measure{
		Name: "jain-difference", About: "difference of Jain’s indices, mean over repetitions",
		Take: paired(func(a, b stats.Blocks, reps []int) float64 {
			d := make([]float64, len(reps))
			for i, r := range reps {
				d[i] = stats.Jain(a[r]) - stats.Jain(b[r])
			}
			return stats.Mean(d)
		}),
	})
}()

func quantile(q float64) func([]float64) float64 {
	return func(x []float64) float64 { return stats.Quantile(stats.Sorted(x), q) }
}

// RatioOf is the median over repetitions of the ratio of a statistic of the flows
// of each side within a repetition. A repetition in which both are 0 counts as no
// difference, with a warning: leaving it out would favour the side that is ahead
// elsewhere.
func RatioOf(p *dataset.Pairs, of func([]float64) float64) Sample {
	each := make([]float64, len(p.A))
	neither := 0
	for i := range each {
		a, b := of(p.A[i]), of(p.B[i])
		if each[i] = a / b; a == 0 && b == 0 {
			each[i] = 1
			neither++
		}
	}
	s := MedianOf(each)
	s.Seconds, s.Warnings = seconds(p), p.Warnings
	if neither > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("both sides are 0 in %d of %d repetitions: counted as no difference, ×1", neither, len(each)))
	}
	return s
}

// paired is a measure of the goodputs of Of and To in the repetitions that both
// have, in b/s.
func paired(statistic func(a, b stats.Blocks, reps []int) float64) func(context.Context, *Request) (Sample, error) {
	return func(_ context.Context, r *Request) (Sample, error) {
		p, err := r.Goodputs()
		if err != nil {
			return Sample{}, err
		}
		return Sample{N: len(p.A), Seconds: seconds(&p), Warnings: p.Warnings,
			Statistic: func(reps []int) float64 { return statistic(p.A, p.B, reps) }}, nil
	}
}

// seconds is the shortest measured interval of the pairs.
func seconds(p *dataset.Pairs) float64 {
	least := math.Inf(1)
	for i := range p.A {
		a, b := p.Reps(i)
		least = math.Min(least, math.Min(a.Run.DurationS, b.Run.DurationS))
	}
	return least
}
