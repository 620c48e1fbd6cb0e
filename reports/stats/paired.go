package stats

import "math"

// Blocks are the values of a number of repetitions, one block for each. In a
// comparison, block i of one side and block i of the other met the same
// conditions.
type Blocks [][]float64

// All returns the values of the chosen blocks together.
func (b Blocks) All(repetitions []int) []float64 {
	var x []float64
	for _, r := range repetitions {
		x = append(x, b[r]...)
	}
	return x
}

// MedianOf estimates the median over all values of all repetitions.
func MedianOf(b Blocks, seed uint64) Estimate {
	return Bootstrap(len(b), seed, func(r []int) float64 { return Median(b.All(r)) })
}

// Ratio estimates stat(a)/stat(b), where stat is taken over all values of all
// repetitions, and resamples repetitions of both sides together: a lucky
// placement is lucky for both. It panics when the sides are not paired.
func Ratio(a, b Blocks, seed uint64, stat func([]float64) float64) Estimate {
	mustPair(a, b)
	e := Bootstrap(len(a), seed, func(r []int) float64 { return divide(stat(a.All(r)), stat(b.All(r))) })
	return judgeRatio(e)
}

// MedianRatio estimates the median over repetitions of stat(a)/stat(b) within
// each repetition. A repetition in which both are 0 counts as no difference,
// with a warning: leaving it out would favour the side that is ahead elsewhere.
func MedianRatio(a, b Blocks, seed uint64, stat func([]float64) float64) Estimate {
	mustPair(a, b)
	each := make([]float64, len(a))
	neither := 0
	for i := range a {
		x, y := stat(a[i]), stat(b[i])
		if each[i] = divide(x, y); x == 0 && y == 0 {
			each[i] = 1
			neither++
		}
	}
	e := Bootstrap(len(a), seed, func(r []int) float64 {
		x := make([]float64, len(r))
		for i, j := range r {
			if math.IsNaN(each[j]) {
				return math.NaN()
			}
			x[i] = each[j]
		}
		return Median(x)
	})
	if neither > 0 {
		e.warn("both sides are 0 in %d of %d repetitions: counted as no difference, ×1", neither, len(a))
	}
	return judgeRatio(e)
}

// MedianDifference estimates the median over repetitions of stat(a)−stat(b)
// within each repetition.
func MedianDifference(a, b Blocks, seed uint64, stat func([]float64) float64) Estimate {
	mustPair(a, b)
	each := make([]float64, len(a))
	for i := range a {
		each[i] = stat(a[i]) - stat(b[i])
	}
	e := Bootstrap(len(a), seed, func(r []int) float64 {
		x := make([]float64, len(r))
		for i, j := range r {
			x[i] = each[j]
		}
		return Median(x)
	})
	if e.Contains(0) {
		e.warn("interval includes 0: a difference is not shown")
	}
	return e
}

// CountRatio compares two counts of rare events, such as losses or time-outs.
type CountRatio struct {
	A, B float64 // events
	// Log is the logarithm of the ratio of the rates A/exposure and B/exposure,
	// Error its standard error √(1/A + 1/B), as if the events were independent
	// (Poisson). Losses come in bursts: it is a lower bound.
	Log, Error float64
}

// RatioOfCounts compares a events per unit of exposure with b. Where either
// count is 0, half an event is added to both (Haldane, Ann. Hum. Genet. 20,
// 1956; Anscombe, Biometrika 43, 1956), so that the error says how little is
// known. The exposures must be positive.
func RatioOfCounts(a, exposureA, b, exposureB float64) CountRatio {
	c := CountRatio{A: a, B: b}
	if a == 0 || b == 0 {
		a, b = a+0.5, b+0.5
	}
	c.Log = math.Log(a / exposureA * exposureB / b)
	c.Error = math.Sqrt(1/a + 1/b)
	return c
}

func mustPair(a, b Blocks) {
	if len(a) != len(b) {
		panic("stats: the sides of a ratio have different repetitions")
	}
}

// divide is a/b, +Inf for a positive value over 0 and NaN for 0/0.
func divide(a, b float64) float64 {
	if b == 0 && a > 0 {
		return math.Inf(1)
	}
	return a / b
}

func judgeRatio(e Estimate) Estimate {
	switch {
	case math.IsInf(e.Value, 0):
		e.warn("the ratio is not finite: its divisor is 0")
	case e.Contains(1):
		e.warn("interval includes 1: a difference is not shown")
	}
	return e
}
