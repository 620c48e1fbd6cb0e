package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > tol*math.Max(1, math.Abs(want)) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

// Expected values: NumPy 1.24.2, numpy.quantile (method "linear") and mean.
func TestQuantilesAsNumPy(t *testing.T) {
	x := []float64{3.2, 0.1, 15.0, 7.7, 7.7, 120.5, 0.0, 42.0, 9.9}
	s := Sorted(x)
	for p, want := range map[float64]float64{0: 0, 0.05: 0.04, 0.25: 3.2, 0.5: 7.7, 0.75: 15, 0.9: 57.7, 1: 120.5} {
		near(t, fmt.Sprint("quantile ", p), Quantile(s, p), want, 1e-12)
	}
	sum := Summarise(x)
	if want := (Summary{N: 9, Min: 0, Q1: 3.2, Median: 7.7, Q3: 15, Max: 120.5, Mean: 22.9}); sum != want {
		t.Errorf("summary %+v, want %+v", sum, want)
	}
	near(t, "Jain", Jain(x), 0.282006729170314, 1e-12)
	if !reflect.DeepEqual(x, []float64{3.2, 0.1, 15.0, 7.7, 7.7, 120.5, 0.0, 42.0, 9.9}) {
		t.Error("the sample was changed")
	}
}

// By hand: (1+2+3+4)² / (4 × 30), equal shares, one for all, two of four.
func TestJain(t *testing.T) {
	near(t, "1..4", Jain([]float64{1, 2, 3, 4}), 100.0/120, 1e-15)
	near(t, "equal", Jain([]float64{5, 5, 5}), 1, 1e-15)
	near(t, "one has all", Jain([]float64{0, 0, 0, 9}), 0.25, 1e-15)
	near(t, "huge", Jain([]float64{1e300, 1e300, 0, 0}), 0.5, 1e-15)
	near(t, "all zero", Jain([]float64{0, 0}), math.NaN(), 0)
	near(t, "none", Jain(nil), math.NaN(), 0)
}

func TestEmptyAndSingle(t *testing.T) {
	if s := Summarise(nil); s.N != 0 || !math.IsNaN(s.Median) || !math.IsNaN(s.Mean) {
		t.Errorf("of nothing: %+v", s)
	}
	if s := Summarise([]float64{4}); s.Q1 != 4 || s.Median != 4 || s.Q3 != 4 || s.Mean != 4 {
		t.Errorf("of one: %+v", s)
	}
	if q := Quantile([]float64{1, math.Inf(1), math.Inf(1)}, 0.75); !math.IsInf(q, 1) {
		t.Errorf("between infinities: %v", q)
	}
}

func TestECDF(t *testing.T) {
	got := NewECDF([]float64{2, 1, 2, 5})
	if want := (ECDF{X: []float64{1, 2, 5}, P: []float64{0.25, 0.75, 1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSumIgnoresOrder(t *testing.T) {
	up, down := make([]float64, 0, 2000), make([]float64, 0, 2000)
	for i := range 1000 {
		up = append(up, 0.1*float64(i), 1e12)
	}
	for i := range up {
		down = append(down, up[len(up)-1-i])
	}
	if Sum(up) != Sum(down) {
		t.Errorf("%v and %v", Sum(up), Sum(down))
	}
}

// Two sides of six repetitions with four flows each.
var (
	fast = Blocks{{120, 80, 15, 60}, {90, 70, 30, 55}, {200, 10, 44, 61}, {75, 66, 50, 90}, {150, 40, 35, 20}, {33, 81, 77, 64}}
	slow = Blocks{{3, 40, 0.5, 9}, {12, 2, 1, 30}, {25, 7, 0.2, 11}, {8, 19, 3, 5}, {60, 1, 2, 14}, {6, 9, 4, 0.1}}
)

// Expected values: a separate program in NumPy 1.24.2 and SciPy 1.10.1 that
// goes through all nⁿ ordered resamples (itertools.product), takes z0 and a by
// Efron's formulas with scipy.stats.norm, and reads the bounds from the sorted
// list.
func TestExactIntervals(t *testing.T) {
	for _, c := range []struct {
		n             int
		name          string
		value, lo, hi float64
	}{
		{4, "median", 63.5, 58, 70.5},
		{4, "ratio", 8.466666666666667, 6.444444444444445, 10.846153846153847},
		{4, "median ratio", 9.887362637362639, 5.833333333333333, 11.666666666666666},
		{5, "median", 60.5, 40, 68},
		{5, "ratio", 8.066666666666666, 4.444444444444445, 10.461538461538462},
		{5, "median ratio", 8.928571428571429, 4.6875, 11.666666666666666},
		{6, "median", 62.5, 42, 68},
		{6, "ratio", 9.615384615384615, 6.111111111111111, 12.8},
		{6, "median ratio", 9.887362637362639, 5.260416666666666, 12.883333333333333},
	} {
		var e Estimate
		switch c.name {
		case "median":
			e = MedianOf(fast[:c.n], 1)
		case "ratio":
			e = Ratio(fast[:c.n], slow[:c.n], 1, Median)
		case "median ratio":
			e = MedianRatio(fast[:c.n], slow[:c.n], 1, Median)
		}
		name := fmt.Sprintf("%s of %d repetitions", c.name, c.n)
		near(t, name, e.Value, c.value, 1e-12)
		near(t, name+": lower bound", e.Lo, c.lo, 1e-12)
		near(t, name+": upper bound", e.Hi, c.hi, 1e-12)
		if !e.HasInterval || e.N != c.n {
			t.Errorf("%s: %+v", name, e)
		}
	}
	neg := []float64{-3, 1.5, 0.25, 4, -0.5, 2}
	e := Bootstrap(6, 1, func(r []int) float64 {
		var s float64
		for _, i := range r {
			s += neg[i]
		}
		return s / float64(len(r))
	})
	near(t, "mean with negative values", e.Value, 0.7083333333333334, 1e-12)
	near(t, "its lower bound", e.Lo, -1.1666666666666667, 1e-12)
	near(t, "its upper bound", e.Hi, 2.3333333333333335, 1e-12)
}

// Expected values: scipy.stats.bootstrap (SciPy 1.10.1), method BCa, 999,999
// resamples, of the logarithm. Both sides resample at random, so the bounds
// agree to about a hundredth.
func TestSampledIntervalsAsSciPy(t *testing.T) {
	r := []float64{0.62, 1.84, 3.10, 0.95, 2.22, 5.71, 1.13, 0.40, 2.85, 1.97, 7.20, 1.05, 0.77, 3.66, 2.41, 1.58, 0.88, 4.92, 1.31, 2.07, 0.53, 6.05, 1.72, 2.60}
	s := []float64{1.1, 0.9, 2.0, 1.4, 1.3, 2.2, 0.8, 0.7, 1.9, 1.6, 2.8, 1.0, 0.6, 1.5, 2.1, 1.2, 0.9, 2.4, 1.7, 1.8, 0.5, 3.0, 1.1, 1.4}
	one := func(x []float64) Blocks {
		b := make(Blocks, len(x))
		for i, v := range x {
			b[i] = []float64{v}
		}
		return b
	}
	e := Bootstrap(len(r), 7, func(i []int) float64 { return Mean(one(r).All(i)) })
	near(t, "mean", e.Value, 2.3975, 1e-12)
	near(t, "mean: lower bound", e.Lo, 1.785, 0.012)
	near(t, "mean: upper bound", e.Hi, 3.28417, 0.012)
	e = Ratio(one(r), one(s), 7, Mean)
	near(t, "ratio", e.Value, 1.6027855153203345, 1e-12)
	near(t, "ratio: lower bound", e.Lo, 1.34791, 0.012)
	near(t, "ratio: upper bound", e.Hi, 1.89349, 0.012)
	if len(e.Warnings) != 0 {
		t.Errorf("24 repetitions warn: %v", e.Warnings)
	}

	if again := Ratio(one(r), one(s), 7, Mean); !reflect.DeepEqual(e, again) {
		t.Errorf("the same seed gave %+v and %+v", e, again)
	}
	if other := Ratio(one(r), one(s), 8, Mean); other.Lo == e.Lo && other.Hi == e.Hi {
		t.Error("the seed has no effect")
	}
}

// All resamples together have the probability 1, and each repetition is drawn
// once a resample on average.
func TestEveryResample(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 3, 3: 10, 5: 126, 8: 6435} {
		var sum float64
		count := 0
		mean := make([]float64, n)
		idx := make([]int, n)
		everyResample(idx, 0, 0, math.Gamma(float64(n)+1)/math.Pow(float64(n), float64(n)), func(p float64) {
			count++
			sum += p
			for _, i := range idx {
				mean[i] += p
			}
		})
		if count != want {
			t.Errorf("%d repetitions: %d resamples, want %d", n, count, want)
		}
		near(t, "probability", sum, 1, 1e-12)
		for _, m := range mean {
			near(t, "draws of a repetition", m, 1, 1e-12)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name     string
		e        Estimate
		interval bool
		want     string
	}{
		{"no repetition", MedianOf(nil, 1), false, "no valid repetition"},
		{"one", MedianOf(fast[:1], 1), false, "1 repetition: no interval"},
		{"three", MedianOf(fast[:3], 1), true, "3 repetitions: the interval is not to be trusted"},
		{"six", MedianOf(fast, 1), true, "6 repetitions: the interval is coarse"},
		{"no difference", Ratio(fast, fast, 1, Median), true, "interval includes 1"},
		{"divisor 0", Ratio(fast, Blocks{{0}, {0}, {0}, {0}, {0}, {0}}, 1, Median), true, "not finite"},
		{"0 over 0", Ratio(Blocks{{0}, {0}}, Blocks{{0}, {0}}, 1, Median), false, "not defined"},
		{"sometimes 0", Ratio(fast[:4], Blocks{{0}, {0}, {3}, {4}}, 1, Median), true, "corrected for bias only"},
	} {
		if c.e.HasInterval != c.interval || !strings.Contains(strings.Join(c.e.Warnings, "; "), c.want) {
			t.Errorf("%s: %+v, want a warning with %q", c.name, c.e, c.want)
		}
	}
	if e := Ratio(fast, Blocks{{0}, {0}, {0}, {0}, {0}, {0}}, 1, Median); !math.IsInf(e.Value, 1) {
		t.Errorf("a ratio to 0: %+v", e)
	}
}

// Pairing is what makes the interval narrow when good and bad repetitions are
// good and bad for both sides.
func TestPairingCounts(t *testing.T) {
	var a, b, shuffled Blocks
	for i := range 10 {
		level := math.Pow(2, float64(i))
		a = append(a, []float64{3 * level})
		b = append(b, []float64{level})
		shuffled = append(shuffled, []float64{math.Pow(2, float64((i*7+3)%10))})
	}
	paired := MedianRatio(a, b, 1, Median)
	if paired.Lo != 3 || paired.Hi != 3 {
		t.Errorf("the ratio is 3 in every repetition, the interval %v to %v", paired.Lo, paired.Hi)
	}
	if loose := MedianRatio(a, shuffled, 1, Median); loose.Hi-loose.Lo < 1 {
		t.Errorf("unpaired, the interval is %v to %v", loose.Lo, loose.Hi)
	}
}

// Two sides that both have nothing do not differ: dropping such a repetition
// would flatter whoever is ahead in the others.
func TestMedianRatioCountsNothingAgainstNothing(t *testing.T) {
	a := Blocks{{0, 0}, {20, 20}, {30, 30}, {40, 40}, {50, 50}}
	b := Blocks{{0, 0}, {10, 10}, {10, 10}, {10, 10}, {10, 10}}
	e := MedianRatio(a, b, 1, Median)
	if e.Value != 3 || e.N != 5 || !e.HasInterval { // of 1, 2, 3, 4, 5
		t.Errorf("%+v, want the median 3 of five ratios", e)
	}
	found := false
	for _, w := range e.Warnings {
		found = found || strings.Contains(w, "both sides are 0 in 1 of 5")
	}
	if !found {
		t.Errorf("no warning about it: %v", e.Warnings)
	}
}

func TestMedianDifference(t *testing.T) {
	a, b := Blocks{{3}, {5}, {9}, {4}, {8}}, Blocks{{1}, {4}, {2}, {5}, {3}}
	e := MedianDifference(a, b, 1, Sum) // 2, 1, 7, −1, 5
	near(t, "difference", e.Value, 2, 0)
	if !e.HasInterval || e.Lo < -1 || e.Hi > 7 || e.Lo > 2 || e.Hi < 2 || e.N != 5 {
		t.Errorf("interval %+v", e)
	}
	same := MedianDifference(a, a, 1, Sum)
	near(t, "no difference", same.Value, 0, 0)
	if !strings.Contains(strings.Join(same.Warnings, "; "), "includes 0") {
		t.Errorf("warnings %v", same.Warnings)
	}
}

// The error of the logarithm of a ratio of counts, against the spread that
// Poisson-distributed counts have when they are drawn.
func TestRatioOfCounts(t *testing.T) {
	c := RatioOfCounts(400, 2, 100, 1)
	near(t, "ratio of rates", math.Exp(c.Log), 2, 1e-12)
	near(t, "error", c.Error, math.Sqrt(0.0125), 1e-12)

	rng := rand.New(rand.NewPCG(1, 2))
	poisson := func(mean float64) float64 { // arrivals of rate 1 until mean
		n := -1.0
		for at := 0.0; at < mean; n++ {
			at += rng.ExpFloat64()
		}
		return n
	}
	var logs []float64
	for range 4000 {
		logs = append(logs, math.Log(poisson(60)/poisson(90)))
	}
	mean := Mean(logs)
	var sq float64
	for _, l := range logs {
		sq += (l - mean) * (l - mean)
	}
	near(t, "drawn spread", math.Sqrt(sq/float64(len(logs))), RatioOfCounts(60, 1, 90, 1).Error, 0.01)

	none := RatioOfCounts(0, 1, 0, 1)
	near(t, "nothing over nothing", none.Log, 0, 0)
	near(t, "its error", none.Error, 2, 1e-12)
	if few := RatioOfCounts(3, 1, 0, 1); few.Log < 1 || few.Log > 2*few.Error {
		t.Errorf("three events against none: %+v", few)
	}
	if many := RatioOfCounts(60, 1, 0, 1); many.Log < 2*many.Error {
		t.Errorf("sixty events against none: %+v", many)
	}
}
