package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// Level is the confidence level of every interval.
const Level = 0.95

// Resamples is the number of bootstrap resamples where there are too many
// repetitions to go through all possible ones.
const Resamples = 9999

// maxExact is up to how many repetitions every possible resample is used, each
// with its probability, so that chance plays no part: 8 repetitions have
// C(15, 8) = 6435 different resamples.
const maxExact = 8

// Numbers of repetitions below which an interval carries a warning. With three
// or fewer, the extreme resample (one repetition drawn every time) alone has a
// probability above 2.5 %, so a 95 % interval is no more than the range; with
// fewer than ten, its coverage is well below what it says.
const (
	untrusted = 5
	coarse    = 10
)

// Estimate is a value with its confidence interval, if there can be one, and
// with what the reader must know about both.
type Estimate struct {
	Value       float64 // may be ±Inf (a ratio to 0) or NaN (no data)
	N           int     // repetitions that it rests on
	HasInterval bool
	Lo, Hi      float64 // the interval at Level; bounds may be +Inf
	Warnings    []string
}

// Contains reports whether the interval contains v.
func (e Estimate) Contains(v float64) bool { return e.HasInterval && e.Lo <= v && v <= e.Hi }

// Trusted reports whether there is an interval from enough repetitions to be
// shown without a caveat beside it.
func (e Estimate) Trusted() bool { return e.HasInterval && e.N >= untrusted }

func (e *Estimate) warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...))
}

// Bootstrap estimates a statistic of n repetitions with a bias-corrected and
// accelerated interval (Efron, JASA 82(397), 1987).
//
// The statistic gets the indices of repetitions, possibly repeated. Whole
// repetitions are resampled, because the flows of one repetition share its
// channel and are not independent. The seed decides the resamples where there
// are too many to use all.
func Bootstrap(n int, seed uint64, statistic func(repetitions []int) float64) Estimate {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	e := Estimate{N: n, Value: math.NaN()}
	if n == 0 {
		e.warn("no valid repetition: there is no value")
		return e
	}
	e.Value = statistic(all)
	switch {
	case n == 1:
		e.warn("1 repetition: no interval can be given")
		return e
	case math.IsNaN(e.Value):
		e.warn("the value is not defined: no interval can be given")
		return e
	case n < untrusted:
		e.warn("%d repetitions: the interval is not to be trusted", n)
	case n < coarse:
		e.warn("%d repetitions: the interval is coarse", n)
	}

	d, undefined := resample(n, seed, statistic)
	if undefined > 0 {
		e.warn("not defined in some resamples: the interval rests on the others")
	}
	if len(d) == 0 {
		return e
	}
	a, ok := acceleration(n, d[0].value > 0, statistic)
	if !ok {
		e.warn("the interval is corrected for bias only, because one repetition alone keeps the value from being 0 or not finite")
	}
	z0 := normalQuantile(d.below(e.Value))
	bound := func(p float64) float64 {
		z := z0 + normalQuantile(p)
		den := 1 - a*z
		if den <= 0 { // beyond the end of the accelerated scale
			return d.quantile(math.Copysign(0.5, a) + 0.5)
		}
		return d.quantile(normalCDF(z0 + z/den))
	}
	e.Lo, e.Hi, e.HasInterval = bound((1-Level)/2), bound((1+Level)/2), true
	return e
}

// distribution is a discrete distribution of the statistic, ascending.
type distribution []struct{ value, weight float64 }

// resample returns the bootstrap distribution, with weights that sum to 1, and
// the share of resamples in which the statistic is not defined.
func resample(n int, seed uint64, statistic func([]int) float64) (d distribution, undefined float64) {
	var total float64
	resamples(n, seed, func(idx []int, w float64) {
		v := statistic(idx)
		if math.IsNaN(v) {
			undefined += w
			return
		}
		d = append(d, struct{ value, weight float64 }{v, w})
		total += w
	})
	sort.SliceStable(d, func(i, j int) bool { return d[i].value < d[j].value })
	for i := range d {
		d[i].weight /= total
	}
	return d, undefined
}

// resamples calls add with each resample of n repetitions and its weight: every
// possible one, or Resamples drawn ones. The indices are add's until it returns.
func resamples(n int, seed uint64, add func(idx []int, weight float64)) {
	idx := make([]int, n)
	if n <= maxExact {
		everyResample(idx, 0, 0, math.Gamma(float64(n)+1)/math.Pow(float64(n), float64(n)), func(w float64) { add(idx, w) })
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0x686f706265640000)) // "hopbed"
	for range Resamples {
		for i := range idx {
			idx[i] = rng.IntN(n)
		}
		add(idx, 1.0/Resamples)
	}
}

// everyResample calls add once for each multiset of repetitions, idx being in
// ascending order, with its multinomial probability n!/(nⁿ·Πkᵢ!). pos is where
// the next choice goes, from the smallest repetition that may still be chosen,
// p the probability so far.
func everyResample(idx []int, pos, from int, p float64, add func(float64)) {
	n := len(idx)
	if pos == n {
		add(p)
		return
	}
	if from == n {
		return
	}
	fact := 1.0
	for k := 0; pos+k <= n; k++ { // repetition "from" is drawn k times
		if k > 0 {
			idx[pos+k-1] = from
			fact *= float64(k)
		}
		everyResample(idx, pos+k, from+1, p/fact, add)
	}
}

// below returns the probability of a value below v, values equal to v counting
// half. Rounding must not make a resample of all repetitions differ from them.
// The result is never quite 0 or 1, which would be no finite correction.
func (d distribution) below(v float64) float64 {
	var p float64
	for _, x := range d {
		switch {
		case x.value == v || math.Abs(x.value-v) <= 1e-12*math.Abs(v):
			p += x.weight / 2
		case x.value < v:
			p += x.weight
		}
	}
	const least = 0.5 / Resamples
	return math.Min(math.Max(p, least), 1-least)
}

// quantile returns the smallest value whose cumulative probability is at least
// p.
func (d distribution) quantile(p float64) float64 {
	var sum float64
	for _, x := range d {
		sum += x.weight
		if sum >= p-1e-12 {
			return x.value
		}
	}
	return d[len(d)-1].value
}

// acceleration is Efron's a, from the jackknife over repetitions. It is taken
// on the logarithm of a statistic that is always positive, because ratios and
// goodputs vary by factors; ok is false, and a 0, when it cannot be had.
func acceleration(n int, positive bool, statistic func([]int) float64) (a float64, ok bool) {
	jack := make([]float64, n)
	idx := make([]int, 0, n-1)
	for out := range n {
		idx = idx[:0]
		for i := range n {
			if i != out {
				idx = append(idx, i)
			}
		}
		jack[out] = statistic(idx)
		if math.IsNaN(jack[out]) || math.IsInf(jack[out], 0) {
			return 0, false
		}
		positive = positive && jack[out] > 0
	}
	if positive {
		for i, v := range jack {
			jack[i] = math.Log(v)
		}
	}
	mean := Mean(jack)
	var sq, cube float64
	for _, v := range jack {
		d := mean - v
		sq += d * d
		cube += d * d * d
	}
	if sq == 0 {
		return 0, true // no repetition matters: nothing to correct
	}
	return cube / (6 * math.Pow(sq, 1.5)), true
}

func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
