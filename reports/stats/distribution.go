package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// maxPermutations is up to how many ways of exchanging the sides all are gone
// through; of more, Resamples are drawn.
const maxPermutations = 10_000

// KolmogorovSmirnov returns D, the largest distance between the empirical
// distribution functions of two samples, 0 to 1; NaN when one is empty.
func KolmogorovSmirnov(x, y []float64) float64 { return distance(Sorted(x), Sorted(y)) }

// distance is D of sorted samples.
func distance(x, y []float64) float64 {
	if len(x) == 0 || len(y) == 0 {
		return math.NaN()
	}
	var d float64
	for i, j := 0, 0; i < len(x) && j < len(y); {
		v := math.Min(x[i], y[j])
		for i < len(x) && x[i] == v {
			i++
		}
		for j < len(y) && y[j] == v {
			j++
		}
		d = math.Max(d, math.Abs(float64(i)/float64(len(x))-float64(j)/float64(len(y))))
	}
	return d
}

// MannWhitney returns U of x over y: the number of pairs in which the value of x
// is the greater one, equal ones counting half. U divided by the number of pairs is
// the probability that a value of x exceeds one of y. NaN when a sample is empty.
func MannWhitney(x, y []float64) float64 { return exceeding(Sorted(x), Sorted(y)) }

// exceeding is U of sorted samples.
func exceeding(x, y []float64) float64 {
	if len(x) == 0 || len(y) == 0 {
		return math.NaN()
	}
	var u float64
	less, upTo := 0, 0 // values of y below x[i]; those not above it
	for _, v := range x {
		for less < len(y) && y[less] < v {
			less++
		}
		for upTo < len(y) && y[upTo] <= v {
			upTo++
		}
		u += float64(less) + float64(upTo-less)/2
	}
	return u
}

// Test is the test of the hypothesis that two sides have one distribution.
type Test struct {
	// Statistic is D of Kolmogorov and Smirnov, or of Mann and Whitney the
	// probability that a value of the first side exceeds one of the second
	// (1/2: neither is ahead).
	Statistic float64
	// P is the probability of a statistic at least as far from "no difference"
	// as this one, if which side is which had been decided by chance: share of
	// the exchanges of whole repetitions that give one. It is neither the
	// probability that the sides are alike nor a measure of how much they
	// differ. NaN where there is no statistic.
	P float64
	// Least is the smallest P that so few repetitions can give.
	Least float64
	A, B  int // repetitions of each side
	// Exact tells that every exchange was gone through; else Resamples drawn ones
	// were, and the sides as they are count as one more (Phipson and Smyth,
	// Stat. Appl. Genet. Mol. Biol. 9(1), 2010).
	Exact    bool
	Warnings []string
}

// Distributions are both tests of two sides.
type Distributions struct{ KolmogorovSmirnov, MannWhitney Test }

// CompareDistributions tests whether all values of one side and of the other have
// one distribution, by exchanging whole repetitions between the sides: the flows
// of one repetition share its channel, and the usual tables, which take every
// value for independent of the others, would call anything significant.
//
// Where block i of one side and block i of the other met the same conditions
// (paired), each repetition's blocks are exchanged with each other or not; else
// all blocks are dealt out anew. The seed decides the exchanges where there are
// too many to go through.
func CompareDistributions(a, b Blocks, paired bool, seed uint64) Distributions {
	if paired {
		mustPair(a, b)
	}
	p := &permuted{a: sortedBlocks(a), b: sortedBlocks(b)}
	d, u := p.statistics()
	out := Distributions{
		Test{Statistic: d, P: math.NaN(), Least: math.NaN(), A: len(a), B: len(b)},
		Test{Statistic: u, P: math.NaN(), Least: math.NaN(), A: len(a), B: len(b)},
	}
	tests := []*Test{&out.KolmogorovSmirnov, &out.MannWhitney}
	if math.IsNaN(d) {
		for _, t := range tests {
			t.Warnings = append(t.Warnings, "a side has no values: there is no test")
		}
		return out
	}
	far := []float64{d, math.Abs(u - 0.5)}
	count, as := 0, [2]int{}
	add := func() {
		count++
		d, u := p.statistics()
		for i, v := range []float64{d, math.Abs(u - 0.5)} {
			if v >= far[i]-1e-12 { // rounding must not make an equal one smaller
				as[i]++
			}
		}
	}
	ways, exact := p.ways(paired), true
	switch {
	case ways > maxPermutations:
		exact = false
		p.drawn(paired, seed, add)
	case paired:
		p.everySwap(add)
	default:
		p.everyDeal(add)
	}
	for i, t := range tests {
		t.Exact = exact
		t.P = float64(as[i]) / float64(count)
		t.Least = leastP(ways, paired || len(a) == len(b))
		if !exact {
			t.P = float64(as[i]+1) / float64(count+1)
			t.Least = 1 / float64(count+1)
		}
		switch {
		case t.Least > 1-Level:
			t.Warnings = append(t.Warnings, fmt.Sprintf("%d and %d repetitions: p cannot be below %.2g, whatever the difference", len(a), len(b), t.Least))
		case len(a) < coarse || len(b) < coarse:
			t.Warnings = append(t.Warnings, fmt.Sprintf("%d and %d repetitions: only a large difference can be shown", len(a), len(b)))
		}
	}
	return out
}

// leastP is the share of the most extreme exchanges: with as many on both sides,
// the one with all exchanged is as far from no difference.
func leastP(ways float64, mirrored bool) float64 {
	if mirrored {
		return math.Min(1, 2/ways)
	}
	return 1 / ways
}

func sortedBlocks(b Blocks) Blocks {
	out := make(Blocks, len(b))
	for i := range b {
		out[i] = Sorted(b[i])
	}
	return out
}

// permuted are the blocks as they are dealt out now.
type permuted struct {
	a, b   Blocks
	xs, ys []float64
}

func (p *permuted) statistics() (d, u float64) {
	p.xs, p.ys = join(p.xs, p.a), join(p.ys, p.b)
	pairs := float64(len(p.xs)) * float64(len(p.ys))
	return distance(p.xs, p.ys), exceeding(p.xs, p.ys) / pairs
}

func join(into []float64, b Blocks) []float64 {
	into = into[:0]
	for _, x := range b {
		into = append(into, x...)
	}
	slices.Sort(into)
	return into
}

// ways is the number of exchanges.
func (p *permuted) ways(paired bool) float64 {
	if paired {
		return math.Pow(2, float64(len(p.a)))
	}
	n, m := float64(len(p.a)), float64(len(p.b))
	ln := func(v float64) float64 { l, _ := math.Lgamma(v + 1); return l }
	return math.Round(math.Exp(ln(n+m) - ln(n) - ln(m)))
}

func (p *permuted) swap(i int) { p.a[i], p.b[i] = p.b[i], p.a[i] }

// everySwap exchanges the blocks of each set of repetitions.
func (p *permuted) everySwap(add func()) {
	n := len(p.a)
	for set := range 1 << n {
		for i := range n {
			if set>>i&1 == 1 {
				p.swap(i)
			}
		}
		add()
		for i := range n {
			if set>>i&1 == 1 {
				p.swap(i)
			}
		}
	}
}

// everyDeal deals all blocks out in every way.
func (p *permuted) everyDeal(add func()) {
	all := append(append(Blocks(nil), p.a...), p.b...)
	var deal func(from, a, b int)
	deal = func(from, a, b int) {
		if from == len(all) {
			add()
			return
		}
		if a < len(p.a) {
			p.a[a] = all[from]
			deal(from+1, a+1, b)
		}
		if b < len(p.b) {
			p.b[b] = all[from]
			deal(from+1, a, b+1)
		}
	}
	deal(0, 0, 0)
}

func (p *permuted) drawn(paired bool, seed uint64, add func()) {
	rng := rand.New(rand.NewPCG(seed, 0x7065726d75746564)) // "permuted"
	all := append(append(Blocks(nil), p.a...), p.b...)
	for range Resamples {
		if paired {
			for i := range p.a {
				if rng.IntN(2) == 1 {
					p.swap(i)
				}
			}
		} else {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			copy(p.a, all[:len(p.a)])
			copy(p.b, all[len(p.a):])
		}
		add()
	}
}

// CDFBand is an empirical distribution function with its uncertainty: at each X
// the share of the values that are not above it, and its interval at Level.
type CDFBand struct {
	X, P, Lo, Hi []float64
	HasBand      bool
	N            int // repetitions
	Warnings     []string
}

// Trusted reports whether there is a band from enough repetitions to be shown
// without a caveat.
func (c *CDFBand) Trusted() bool { return c.HasBand && c.N >= untrusted }

// bandSteps bounds the places at which a band is computed.
const bandSteps = 128

// BandOfCDF estimates the distribution of all values of all repetitions, with a
// band by the percentile bootstrap over whole repetitions. The band holds at each
// place by itself, not at all places at once. Values of +Inf are ones that are
// beyond every place, such as completion times that were not reached: they count,
// and are no place.
func BandOfCDF(b Blocks, seed uint64) CDFBand {
	c := CDFBand{N: len(b)}
	var all []float64
	for _, x := range b {
		all = append(all, x...)
	}
	c.X = places(all)
	// below[r][k]: values of repetition r that are ≤ X[k].
	below := make([][]float64, len(b))
	for r, x := range b {
		s := Sorted(x)
		below[r] = make([]float64, len(c.X))
		for k, at := range c.X {
			below[r][k] = float64(sort.Search(len(s), func(i int) bool { return s[i] > at }))
		}
	}
	share := func(k int, reps []int) float64 {
		var n, total float64
		for _, r := range reps {
			n += below[r][k]
			total += float64(len(b[r]))
		}
		return n / total
	}
	every := make([]int, len(b))
	for i := range every {
		every[i] = i
	}
	for k := range c.X {
		c.P = append(c.P, share(k, every))
	}
	var e Estimate
	switch n := len(b); {
	case n == 0 || len(all) == 0:
		e.warn("no values: there is no distribution")
	case n == 1:
		e.warn("1 repetition: no band can be given")
	case n < untrusted:
		e.warn("%d repetitions: the band is not to be trusted", n)
	case n < coarse:
		e.warn("%d repetitions: the band is coarse", n)
	}
	c.Warnings = e.Warnings
	if len(b) < 2 || len(c.X) == 0 {
		return c
	}
	// Shares take few values: their weights are gathered by value, which is far
	// faster than sorting every resample at every place.
	weights := make([]map[float64]float64, len(c.X))
	for k := range weights {
		weights[k] = map[float64]float64{}
	}
	var sum float64
	resamples(len(b), seed, func(reps []int, w float64) {
		if math.IsNaN(share(0, reps)) {
			return // of repetitions without a value
		}
		sum += w
		for k := range c.X {
			weights[k][share(k, reps)] += w
		}
	})
	if sum == 0 {
		return c
	}
	c.HasBand = true
	for k := range c.X {
		var d distribution
		for v, w := range weights[k] {
			d = append(d, struct{ value, weight float64 }{v, w / sum})
		}
		sort.Slice(d, func(i, j int) bool { return d[i].value < d[j].value })
		c.Lo, c.Hi = append(c.Lo, d.quantile((1-Level)/2)), append(c.Hi, d.quantile((1+Level)/2))
	}
	return c
}

// places are at most bandSteps of the finite values, ascending, the extreme ones
// among them.
func places(values []float64) []float64 {
	var finite []float64
	for _, v := range Sorted(values) {
		if !math.IsInf(v, 0) && !math.IsNaN(v) && (len(finite) == 0 || v != finite[len(finite)-1]) {
			finite = append(finite, v)
		}
	}
	if len(finite) <= bandSteps {
		return finite
	}
	out := make([]float64, bandSteps)
	for i := range out {
		out[i] = finite[i*(len(finite)-1)/(bandSteps-1)]
	}
	return out
}
