package stats

import (
	"math"
	"sort"
)

// StarvedBelowBps is the goodput in bits per second under which a flow counts
// as starved. A choice of this project, fixed before any result was seen: it is
// less than a tenth of an equal share when 30 flows load a mesh at 11 Mb/s.
const StarvedBelowBps = 10_000

// Quantile returns the p-quantile, 0 ≤ p ≤ 1, of a sorted sample by linear
// interpolation between the order statistics at (n−1)p: definition 7 of Hyndman
// and Fan (The American Statistician 50(4), 1996), which R, NumPy and
// spreadsheets use by default. It returns NaN for an empty sample.
func Quantile(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 || math.IsNaN(p) {
		return math.NaN()
	}
	h := float64(n-1) * math.Min(math.Max(p, 0), 1)
	i := int(h)
	if i >= n-1 {
		return sorted[n-1]
	}
	lo, hi, frac := sorted[i], sorted[i+1], h-float64(i)
	if frac == 0 || lo == hi {
		return lo // also keeps ∞−∞ out of the interpolation
	}
	return lo + frac*(hi-lo)
}

// Sorted returns the sample in ascending order, leaving x as it is.
func Sorted(x []float64) []float64 {
	s := append([]float64(nil), x...)
	sort.Float64s(s)
	return s
}

// Median returns the 0.5-quantile, NaN for an empty sample.
func Median(x []float64) float64 { return Quantile(Sorted(x), 0.5) }

// Sum returns the sum, 0 for an empty sample.
func Sum(x []float64) float64 {
	// Kahan's compensation: the order of flows must not show in a digit.
	var sum, c float64
	for _, v := range x {
		y := v - c
		t := sum + y
		c = (t - sum) - y
		sum = t
	}
	return sum
}

// Mean returns the arithmetic mean, NaN for an empty sample.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return Sum(x) / float64(len(x))
}

// Jain returns Jain's fairness index (Σx)²/(n Σx²) of non-negative shares: 1
// when all are equal, 1/n when one has everything (Jain, Chiu, Hawe,
// DEC-TR-301, 1984). It is not defined, NaN, for an empty sample and when every
// share is 0.
func Jain(x []float64) float64 {
	var most float64
	for _, v := range x {
		most = math.Max(most, v)
	}
	if most == 0 {
		return math.NaN()
	}
	var sum, sq float64
	for _, v := range x {
		v /= most // so that no square overflows or vanishes
		sum += v
		sq += v * v
	}
	return sum * sum / (float64(len(x)) * sq)
}

// Summary describes one sample.
type Summary struct {
	N                        int
	Min, Q1, Median, Q3, Max float64 // Quantile's definition
	Mean                     float64
}

// Summarise describes a sample; every value is NaN when it is empty.
func Summarise(x []float64) Summary {
	s := Sorted(x)
	return Summary{
		N:   len(s),
		Min: Quantile(s, 0), Q1: Quantile(s, 0.25), Median: Quantile(s, 0.5), Q3: Quantile(s, 0.75), Max: Quantile(s, 1),
		Mean: Mean(s),
	}
}

// ECDF is an empirical distribution function: P[i] is the share of the sample
// that is ≤ X[i]. X ascends strictly.
type ECDF struct{ X, P []float64 }

// NewECDF returns the empirical distribution function of a sample.
func NewECDF(x []float64) ECDF {
	s := Sorted(x)
	var e ECDF
	for i, v := range s {
		if i+1 < len(s) && s[i+1] == v {
			continue
		}
		e.X = append(e.X, v)
		e.P = append(e.P, float64(i+1)/float64(len(s)))
	}
	return e
}
