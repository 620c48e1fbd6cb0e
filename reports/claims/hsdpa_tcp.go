package claims

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// hsdpaTCP are the measures of "TCP Congestion Control over HSDPA: An Experimental
// Evaluation" (De Cicco, Mascolo, arXiv 1212.1621). The flows of a run are one
// value: its total goodput, its share of retransmitted bytes, its timeouts, and
// the median of its senders' smoothed RTT.
var hsdpaTCP = []Measure{
	{Name: "rtt-ratio", Neutral: 1, About: "median over repetitions of the ratio of median RTTs (the senders’ smoothed RTT)",
		Take: medianRatioOf("ms", medianRTT)},
	{Name: "power-ratio", Neutral: 1, About: "median over repetitions of the ratio of goodput over median RTT",
		Take: medianRatioOf("kb/s per ms", goodputPerRTT)},
	{Name: "retransmission-ratio", Neutral: 1, About: "ratio of the shares of retransmitted bytes, all repetitions together",
		Take: ratioOfTotals(retransBytes, sentBytes, "%", 100)},
	{Name: "timeouts-ratio", Neutral: 1, About: "ratio of the numbers of retransmission timeouts, all repetitions together",
		Take: ratioOfTotals(timeoutsOf, once, "timeouts a run", 1)},
	{Name: "goodput-spread", Neutral: 1, About: "largest over smallest mean goodput of the variants",
		Take: spreadOf("Mb/s", func(_ context.Context, _ *Request, r *dataset.Rep) (float64, error) {
			return totalGoodput(r) / 1e6, nil
		}, stats.Mean)},
	{Name: "rtt-spread", Neutral: 1, About: "largest over smallest median RTT of the variants (median over repetitions)",
		Take: spreadOf("ms", medianRTT, stats.Median)},
}

// cellValue is a value of one repetition. An error of the type *NotTestableError
// says that there is none.
type cellValue func(ctx context.Context, r *Request, rep *dataset.Rep) (float64, error)

func totalGoodput(r *dataset.Rep) float64 {
	sum := 0.0
	for i := range r.Flows {
		sum += r.Flows[i].GoodputBps.V
	}
	return sum
}

// medianRTT is in milliseconds.
func medianRTT(ctx context.Context, r *Request, rep *dataset.Rep) (float64, error) {
	own := map[int]bool{}
	for i := range rep.Flows {
		own[rep.Flows[i].Flow] = true
	}
	from, to := rep.Run.WarmupS*1e6, (rep.Run.WarmupS+rep.Run.DurationS)*1e6
	var ms []float64
	err := r.Set.Store().Samples(ctx, rep.Run.ID, func(s *store.Sample) error {
		if t := float64(s.TUs); own[s.Flow] && s.Side == store.SideSrc && s.SRTTUs.OK && s.SRTTUs.V > 0 && t >= from && t <= to {
			ms = append(ms, float64(s.SRTTUs.V)/1e3)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if len(ms) == 0 {
		return 0, NotTestable("repetition %d of %s has no samples of the RTT", rep.Run.Repetition, rep.Run.Transport)
	}
	return stats.Median(ms), nil
}

// goodputPerRTT is goodput over RTT.
func goodputPerRTT(ctx context.Context, r *Request, rep *dataset.Rep) (float64, error) {
	rtt, err := medianRTT(ctx, r, rep)
	return totalGoodput(rep) / 1e3 / rtt, err
}

// flowCount is a number of one flow, if it is known.
type flowCount func(*store.Flow) (float64, bool)

func retransBytes(f *store.Flow) (float64, bool) { return float64(f.RetransBytes.V), f.RetransBytes.OK }
func sentBytes(f *store.Flow) (float64, bool)    { return float64(f.SentBytes.V), f.SentBytes.OK }
func timeoutsOf(f *store.Flow) (float64, bool)   { return float64(f.Timeouts.V), f.Timeouts.OK }
func once(*store.Flow) (float64, bool)           { return 1, true }

// sumOf sums a count over the flows of a repetition.
func sumOf(rep *dataset.Rep, what flowCount) (float64, error) {
	sum := 0.0
	for i := range rep.Flows {
		v, ok := what(&rep.Flows[i])
		if !ok {
			return 0, NotTestable("repetition %d of %s did not count it", rep.Run.Repetition, rep.Run.Transport)
		}
		sum += v
	}
	return sum, nil
}

// medianRatioOf is the median over the pairs of repetitions of the ratio of a value.
func medianRatioOf(unit string, value cellValue) func(context.Context, *Request) (Sample, error) {
	return func(ctx context.Context, r *Request) (Sample, error) {
		p, err := r.Goodputs()
		if err != nil {
			return Sample{}, err
		}
		a, b := make([]float64, len(p.A)), make([]float64, len(p.A))
		ratios := make([]float64, len(p.A))
		for i := range p.A {
			ra, rb := p.Reps(i)
			if a[i], err = value(ctx, r, ra); err != nil {
				return Sample{}, err
			}
			if b[i], err = value(ctx, r, rb); err != nil {
				return Sample{}, err
			}
			ratios[i] = a[i] / b[i]
		}
		s := MedianOf(ratios)
		s.Seconds, s.Warnings = seconds(&p), p.Warnings
		s.Details = []string{fmt.Sprintf("%.4g and %.4g %s", stats.Median(a), stats.Median(b), unit)}
		return s, nil
	}
}

// ratioOfTotals is the ratio of what over per, summed over the repetitions: few
// events in one of them make no ratio of their own.
func ratioOfTotals(what, per flowCount, unit string, factor float64) func(context.Context, *Request) (Sample, error) {
	return func(_ context.Context, r *Request) (Sample, error) {
		p, err := r.Goodputs()
		if err != nil {
			return Sample{}, err
		}
		sums := make([][4]float64, len(p.A)) // what, per of A; what, per of B
		for i := range p.A {
			ra, rb := p.Reps(i)
			for k, c := range []struct {
				rep  *dataset.Rep
				what flowCount
			}{{ra, what}, {ra, per}, {rb, what}, {rb, per}} {
				if sums[i][k], err = sumOf(c.rep, c.what); err != nil {
					return Sample{}, err
				}
			}
		}
		sides := func(reps []int) (a, b float64) {
			var s [4]float64
			for _, i := range reps {
				for k := range s {
					s[k] += sums[i][k]
				}
			}
			return s[0] / s[1], s[2] / s[3]
		}
		a, b := sides(indices(len(sums)))
		return Sample{N: len(sums), Seconds: seconds(&p), Warnings: p.Warnings,
			Details: []string{fmt.Sprintf("%.3g and %.3g %s", a*factor, b*factor, unit)},
			Statistic: func(reps []int) float64 {
				a, b := sides(reps)
				return a / b
			}}, nil
	}
}

// spreadOf is the largest over the smallest of a family's variants, each of which is
// a statistic over the repetitions that all variants have.
func spreadOf(unit string, value cellValue, statistic func([]float64) float64) func(context.Context, *Request) (Sample, error) {
	return func(ctx context.Context, r *Request) (Sample, error) {
		g, err := r.Group()
		if err != nil {
			return Sample{}, err
		}
		if g.Sized || g.Mixed {
			return Sample{}, NotTestable("it is about transports that had the link to themselves, with flows that do not end")
		}
		var names []string
		var reps []map[int]*dataset.Rep
		for i := range g.Series {
			s := &g.Series[i]
			if family(s.Transport) != r.Of || len(s.Reps) == 0 {
				continue
			}
			byNumber := map[int]*dataset.Rep{}
			for j := range s.Reps {
				byNumber[s.Reps[j].Run.Repetition] = &s.Reps[j]
			}
			names, reps = append(names, s.Transport), append(reps, byNumber)
		}
		if len(names) < 2 {
			return Sample{}, NotTestable("needs two variants of %s, there are %d", r.Of, len(names))
		}
		var shared []int
		least := math.Inf(1)
		for n, rep := range reps[0] {
			if !slices.ContainsFunc(reps, func(m map[int]*dataset.Rep) bool { return m[n] == nil || m[n].Run.Seed != rep.Run.Seed }) {
				shared = append(shared, n)
				least = min(least, rep.Run.DurationS)
			}
		}
		slices.Sort(shared)
		values := make([][]float64, len(names)) // by variant, then repetition
		for v := range names {
			for _, n := range shared {
				x, err := value(ctx, r, reps[v][n])
				if err != nil {
					return Sample{}, err
				}
				values[v] = append(values[v], x)
			}
		}
		of := func(reps []int) []float64 {
			out := make([]float64, len(values))
			for v := range values {
				x := make([]float64, len(reps))
				for i, r := range reps {
					x[i] = values[v][r]
				}
				out[v] = statistic(x)
			}
			return out
		}
		s := Sample{N: len(shared), Seconds: least, Statistic: func(reps []int) float64 {
			x := of(reps)
			return slices.Max(x) / slices.Min(x)
		}}
		if s.N > 0 {
			var each []string
			for v, x := range of(indices(s.N)) {
				each = append(each, fmt.Sprintf("%s %.4g", strings.TrimPrefix(names[v], r.Of+"/"), x))
			}
			s.Details = []string{strings.Join(each, ", ") + " " + unit}
		}
		if missing := len(reps[0]) - len(shared); missing > 0 {
			s.Warnings = []string{fmt.Sprintf("%d repetitions are not there for every variant and are left out", missing)}
		}
		return s, nil
	}
}
