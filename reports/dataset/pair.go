package dataset

import (
	"fmt"
	"sort"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// Pairs are the repetitions that two series have in common, block by block.
type Pairs struct {
	A, B        stats.Blocks // goodputs in b/s, or completion times in seconds
	Repetitions []int
	Warnings    []string
	a, b        []Rep // those repetitions
}

// Pair matches the repetitions of two series of a group. Two repetitions are a
// pair when they have the same number and the same seed, so that both met the
// same topology, flows and losses.
func Pair(a, b *Series) Pairs {
	return PairFlows(a, b, func(*store.Flow) bool { return true })
}

// PairFlows is Pair for the flows that are chosen.
func PairFlows(a, b *Series, choose func(*store.Flow) bool) Pairs {
	var p Pairs
	alone := 0
	other := map[int]*Rep{}
	for i := range b.Reps {
		other[b.Reps[i].Run.Repetition] = &b.Reps[i]
	}
	for i := range a.Reps {
		ra := &a.Reps[i]
		rb := other[ra.Run.Repetition]
		switch {
		case rb == nil:
			alone++
		case rb.Run.Seed != ra.Run.Seed:
			p.Warnings = append(p.Warnings, fmt.Sprintf("repetition %d of %s and %s had different seeds and is not compared", ra.Run.Repetition, a.Transport, b.Transport))
			delete(other, ra.Run.Repetition)
		default:
			p.A = append(p.A, chosen(ra, choose))
			p.B = append(p.B, chosen(rb, choose))
			p.Repetitions = append(p.Repetitions, ra.Run.Repetition)
			p.a, p.b = append(p.a, *ra), append(p.b, *rb)
			delete(other, ra.Run.Repetition)
		}
	}
	if alone += len(other); alone > 0 {
		what := fmt.Sprintf("%d repetitions of %s and %s have no valid partner and are not compared", alone, a.Transport, b.Transport)
		if alone == 1 {
			what = fmt.Sprintf("1 repetition of %s and %s has no valid partner and is not compared", a.Transport, b.Transport)
		}
		p.Warnings = append(p.Warnings, what)
	}
	return p
}

// Reps returns the repetitions of pair i.
func (p *Pairs) Reps(i int) (a, b *Rep) { return &p.a[i], &p.b[i] }

func chosen(r *Rep, choose func(*store.Flow) bool) []float64 {
	var x []float64
	for i := range r.Flows {
		if choose(&r.Flows[i]) {
			x = append(x, r.value(&r.Flows[i]))
		}
	}
	return x
}

// Ratios compare one series with another.
type Ratios struct {
	Transport, Baseline string
	Repetitions         int
	// Sized flows are compared by completion time, and the ratio is turned
	// round, time of the baseline over time of the transport: above 1 is faster
	// here as well. There is no Mean nor Aggregate of them (N is 0), since a
	// mean over flows that had not completed has no meaning.
	Sized bool
	// What those ratios are of Q1, Median and Q3, and of PerRepetition.
	Bounds             [3]Bound
	PerRepetitionBound Bound
	// Ratios of the quantiles, the mean and the sum over the flows of all
	// paired repetitions.
	Q1, Median, Q3, Mean, Aggregate stats.Estimate
	// PerRepetition is the median over repetitions of the ratio of medians
	// within a repetition, Each those ratios.
	PerRepetition stats.Estimate
	Each          []float64
	EachBound     []Bound // of those, for sized flows
	// Distributions test whether what the flows got has one distribution on both
	// sides, whole paired repetitions being exchanged.
	Distributions stats.Distributions
	Warnings      []string // about the pairing
}

// Compare estimates the ratios of a series to a baseline. The seed decides the
// bootstrap's resamples.
func Compare(a, b *Series, seed uint64) Ratios {
	p := Pair(a, b)
	r := Ratios{Transport: a.Transport, Baseline: b.Transport, Repetitions: len(p.A), Warnings: p.Warnings}
	r.Distributions = stats.CompareDistributions(p.A, p.B, true, seed)
	if r.Sized = len(a.Reps) > 0 && a.Reps[0].Sized; r.Sized {
		p.A, p.B = p.B, p.A
	}
	quantile := func(q float64) func([]float64) float64 {
		return func(x []float64) float64 { return stats.Quantile(stats.Sorted(x), q) }
	}
	r.Q1 = stats.Ratio(p.A, p.B, seed, quantile(0.25))
	r.Median = stats.Ratio(p.A, p.B, seed, stats.Median)
	r.Q3 = stats.Ratio(p.A, p.B, seed, quantile(0.75))
	if !r.Sized {
		r.Mean = stats.Ratio(p.A, p.B, seed, stats.Mean)
		r.Aggregate = stats.Ratio(aggregates(p.a), aggregates(p.b), seed, stats.Sum)
	}
	r.PerRepetition = stats.MedianRatio(p.A, p.B, seed, stats.Median)
	if r.Sized {
		r.Bounds = bounds(p.a, p.b)
		for i := range p.a {
			r.EachBound = append(r.EachBound, bounds(p.a[i:i+1], p.b[i:i+1])[1])
		}
		r.PerRepetitionBound = together(r.EachBound)
	}
	for i := range p.A {
		one := stats.Ratio(p.A[i:i+1], p.B[i:i+1], seed, stats.Median)
		r.Each = append(r.Each, one.Value)
	}
	return r
}

func aggregates(reps []Rep) stats.Blocks {
	b := make(stats.Blocks, len(reps))
	for i := range reps {
		b[i] = reps[i].Aggregates()
	}
	return b
}

// HopRow compares the flows of one hop count.
type HopRow struct {
	Hops   int
	Cells  []HopCell // one for each series of the group
	Flows  int       // of all series together
	Paired bool
}

// HopCell is one series' part of a HopRow.
type HopCell struct {
	Transport string
	Values    stats.Summary // goodputs in b/s, or completion times in seconds
	// Gain is the ratio of the medians to the baseline's (turned round for
	// completion times: above 1 is faster); N is 0 in the baseline's own cell.
	Gain  stats.Estimate
	Bound Bound // of Gain
	// AtLeast tells that the median completion time rests on flows that had not
	// completed.
	AtLeast bool
}

// ByHops describes the flows of a group by their hop count, with gains over
// the baseline, which may be nil.
func ByHops(g *Group, baseline *Series, seed uint64) []HopRow {
	counts := map[int]int{}
	for i := range g.Series {
		for _, f := range g.Series[i].Flows() {
			counts[f.Hops]++
		}
	}
	var hops []int
	for h := range counts {
		hops = append(hops, h)
	}
	sort.Ints(hops)
	var rows []HopRow
	for _, h := range hops {
		row := HopRow{Hops: h, Flows: counts[h], Paired: baseline != nil}
		has := func(f *store.Flow) bool { return f.Hops == h }
		for i := range g.Series {
			s := &g.Series[i]
			var x []float64
			for j := range s.Reps {
				x = append(x, chosen(&s.Reps[j], has)...)
			}
			cell := HopCell{Transport: s.Transport, Values: stats.Summarise(x)}
			if g.Sized {
				cell.AtLeast = Completions(withHops(s.Reps, h)).AtLeast[1]
			}
			if baseline != nil && s != baseline {
				p := PairFlows(s, baseline, has)
				over, under := withFlows(p.A, p.A, p.B), withFlows(p.B, p.A, p.B)
				if g.Sized {
					over, under = under, over
					cell.Bound = bounds(withHops(p.a, h), withHops(p.b, h))[1]
				}
				cell.Gain = stats.Ratio(over, under, seed, stats.Median)
			}
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// withFlows keeps the blocks of x in which both sides have flows: repetitions
// without a flow of this hop count say nothing about it and are no evidence.
func withFlows(x, a, b stats.Blocks) stats.Blocks {
	var out stats.Blocks
	for i := range x {
		if len(a[i]) > 0 && len(b[i]) > 0 {
			out = append(out, x[i])
		}
	}
	return out
}
