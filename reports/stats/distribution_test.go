package stats

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func single(x []float64) Blocks {
	b := make(Blocks, len(x))
	for i, v := range x {
		b[i] = []float64{v}
	}
	return b
}

// Almost fast: the same repetitions under about the same conditions.
var almost = Blocks{{100, 85, 20, 50}, {95, 60, 32, 50}, {160, 12, 40, 70}, {80, 60, 55, 85}, {140, 45, 33, 22}, {30, 85, 70, 60}}

// Expected values: scipy.stats.ks_2samp and mannwhitneyu (SciPy 1.10.1), method
// "exact". With one value a repetition, exchanging repetitions is exchanging
// values, and both tests are the classical ones.
func TestDistributionsAsSciPy(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29}
	d := CompareDistributions(single(x), single(y), false, 1)
	near(t, "U", MannWhitney(x, y), 31, 1e-15)
	near(t, "probability of more", d.MannWhitney.Statistic, 31.0/42, 1e-15)
	near(t, "its p", d.MannWhitney.P, 0.18065268065268064, 1e-12)
	near(t, "D", d.KolmogorovSmirnov.Statistic, 0.6904761904761905, 1e-12)
	near(t, "its p", d.KolmogorovSmirnov.P, 0.0675990675990676, 1e-12)
	if !d.MannWhitney.Exact || d.MannWhitney.A != 7 || d.MannWhitney.B != 6 {
		t.Errorf("%+v", d.MannWhitney)
	}

	tied, other := []float64{3, 1, 4, 1, 5, 9, 2, 6}, []float64{2, 7, 1, 8, 2, 8}
	near(t, "U with ties", MannWhitney(tied, other), 21, 1e-15)
	near(t, "D with ties", KolmogorovSmirnov(tied, other), 0.375, 1e-15)
	near(t, "U the other way", MannWhitney(other, tied), 8*6-21, 1e-15)

	// Too many exchanges to go through: drawn ones agree to about a hundredth.
	p := []float64{0.346, 0.822, 0.33, -1.303, 0.905, 0.446, -0.537, 0.581, 0.365, 0.294, 0.028, 0.547, -0.736, -0.163, -0.482, 0.599, 0.04, -0.292, -0.782, -0.257, 0.008, -0.276, 1.294, 1.007, -2.711, -1.889, -0.175, -0.422, 0.214, 0.217, 2.118, -1.112, -0.378, 2.043, 0.647, 0.663, -0.514, -1.648, 0.167, 0.109}
	q := []float64{-0.627, -0.083, 0.528, -0.345, 0.502, 0.695, 0.636, 0.094, 1.194, 1.491, 0.921, -0.218, 1.332, 0.099, 1.479, -0.472, 1.514, 0.58, -0.649, 0.286, 0.654, 0.873, -0.382, -0.507, 0.8, 0.133, 0.836, 1.36, -1.049, 0.854, 1.825, 0.302, -0.211, 1.352, 0.853}
	d = CompareDistributions(single(p), single(q), false, 7)
	near(t, "U of many", d.MannWhitney.Statistic*40*35, 482, 1e-12)
	near(t, "its p", d.MannWhitney.P, 0.0209, 0.006)
	near(t, "D of many", d.KolmogorovSmirnov.Statistic, 0.29642857142857143, 1e-12)
	near(t, "its p", d.KolmogorovSmirnov.P, 0.0595, 0.012)
	if d.MannWhitney.Exact || len(d.MannWhitney.Warnings) != 0 {
		t.Errorf("%+v", d.MannWhitney)
	}
	if again := CompareDistributions(single(p), single(q), false, 7); !reflect.DeepEqual(again, d) {
		t.Error("the same seed gave another result")
	}
}

// Expected values: a separate program that goes through all exchanges of whole
// repetitions with itertools and takes the statistics from SciPy 1.10.1.
func TestRepetitionsAreExchangedWhole(t *testing.T) {
	for _, c := range []struct {
		name        string
		a, b        Blocks
		paired      bool
		d, dP       float64
		more, moreP float64
	}{
		{"paired, alike", fast, almost, true, 0.125, 0.625, 0.5112847222222222, 0.3125},
		{"paired, different", fast, slow, true, 0.75, 0.03125, 0.9505208333333334, 0.03125},
		{"not paired, alike", fast, almost[:4], false, 0.10416666666666667, 0.9904761904761905, 0.48828125, 0.819047619047619},
		{"not paired, different", fast, slow, false, 0.75, 0.0021645021645021645, 0.9505208333333334, 0.0021645021645021645},
	} {
		got := CompareDistributions(c.a, c.b, c.paired, 1)
		near(t, c.name+": D", got.KolmogorovSmirnov.Statistic, c.d, 1e-12)
		near(t, c.name+": its p", got.KolmogorovSmirnov.P, c.dP, 1e-12)
		near(t, c.name+": probability of more", got.MannWhitney.Statistic, c.more, 1e-12)
		near(t, c.name+": its p", got.MannWhitney.P, c.moreP, 1e-12)
	}
	// One value of each repetition: scipy.stats.permutation_test, of samples.
	var x, y []float64
	for i := range fast {
		x, y = append(x, fast[i][0]), append(y, almost[i][0])
	}
	got := CompareDistributions(single(x), single(y), true, 1)
	near(t, "permutation_test of U", got.MannWhitney.P, 0.6875, 1e-12)
	near(t, "permutation_test of D", got.KolmogorovSmirnov.P, 1, 1e-12)
}

// A hundred flows of a repetition that all follow their channel are one
// observation: pooled, they would make anything significant.
func TestManyFlowsAreNoManyRepetitions(t *testing.T) {
	var a, b Blocks
	for rep := range 4 {
		var x, y []float64
		for f := range 100 {
			x = append(x, float64(10*rep)+float64(f)/100)
			y = append(y, float64(10*((rep+1)%4))+float64(f)/100+0.001)
		}
		a, b = append(a, x), append(b, y)
	}
	d := CompareDistributions(a, b, false, 1)
	if d.MannWhitney.P < 0.5 || d.KolmogorovSmirnov.P < 0.5 {
		t.Errorf("p %v and %v of the same four channels", d.MannWhitney.P, d.KolmogorovSmirnov.P)
	}
}

func TestTestsWarn(t *testing.T) {
	d := CompareDistributions(fast[:4], slow[:4], true, 1)
	near(t, "least p of four pairs", d.MannWhitney.Least, 0.125, 1e-12)
	if !strings.Contains(strings.Join(d.MannWhitney.Warnings, ""), "4 and 4 repetitions: p cannot be below 0.12") {
		t.Errorf("warnings %v", d.MannWhitney.Warnings)
	}
	d = CompareDistributions(fast, slow, false, 1)
	near(t, "least p of six and six", d.MannWhitney.Least, 2.0/924, 1e-9)
	if !strings.Contains(strings.Join(d.MannWhitney.Warnings, ""), "only a large difference") {
		t.Errorf("warnings %v", d.MannWhitney.Warnings)
	}
	d = CompareDistributions(nil, slow, false, 1)
	if !math.IsNaN(d.MannWhitney.P) || !strings.Contains(strings.Join(d.KolmogorovSmirnov.Warnings, ""), "no values") {
		t.Errorf("of nothing: %+v", d)
	}
}

// Expected values: a separate program that goes through all 5⁵ ordered resamples
// of repetitions in NumPy 1.24.2.
func TestBandOfCDF(t *testing.T) {
	b := BandOfCDF(fast[:5], 1)
	if !b.HasBand || !b.Trusted() || b.N != 5 {
		t.Fatalf("%+v", b)
	}
	for x, want := range map[float64][3]float64{20: {0.05, 0.15, 0.25}, 50: {0.25, 0.4, 0.6}, 90: {0.75, 0.85, 0.95}, 120: {0.8, 0.9, 1}} {
		found := false
		for k := range b.X {
			if b.X[k] != x {
				continue
			}
			found = true
			near(t, "lower bound", b.Lo[k], want[0], 1e-12)
			near(t, "share", b.P[k], want[1], 1e-12)
			near(t, "upper bound", b.Hi[k], want[2], 1e-12)
		}
		if !found {
			t.Errorf("no step at %v", x)
		}
	}

	open := BandOfCDF(Blocks{{1, math.Inf(1)}, {2, math.Inf(1)}}, 1)
	if last := len(open.X) - 1; open.X[last] != 2 || open.P[last] != 0.5 {
		t.Errorf("times that were not reached: %+v", open)
	}
	if !strings.Contains(strings.Join(open.Warnings, ""), "2 repetitions: the band is not to be trusted") || open.Trusted() {
		t.Errorf("warnings %v", open.Warnings)
	}
	if one := BandOfCDF(fast[:1], 1); one.HasBand || len(one.X) != 4 {
		t.Errorf("of one repetition: %+v", one)
	}
	if none := BandOfCDF(nil, 1); none.HasBand || len(none.X) != 0 {
		t.Errorf("of none: %+v", none)
	}

	var many []float64
	for i := range 5000 {
		many = append(many, float64(i))
	}
	if big := BandOfCDF(Blocks{many, many}, 1); len(big.X) != bandSteps || big.X[0] != 0 || big.X[bandSteps-1] != 4999 {
		t.Errorf("%d steps of 5000 values", len(big.X))
	}
}

// Expected values: scipy.stats.bootstrap (SciPy 1.10.1), method BCa, 199,999
// resamples: of a mean that may be negative, and of the logarithm of one that is
// not. Both sides resample at random, so the bounds agree to a few hundredths.
func TestBCaAsSciPy(t *testing.T) {
	mean := func(x []float64) Estimate {
		return Bootstrap(len(x), 3, func(i []int) float64 { return Mean(single(x).All(i)) })
	}
	e := mean([]float64{-3, 1.5, 0.25, 4, -0.5, 2, 7, -1, 0.5, 3, 2.2, -0.3})
	near(t, "mean", e.Value, 1.3041666666666665, 1e-12)
	near(t, "lower bound", e.Lo, 0.0375, 0.05)
	near(t, "upper bound", e.Hi, 2.908333, 0.03)
	e = mean([]float64{0.62, 1.84, 3.10, 0.95, 2.22, 5.71, 1.13, 0.40, 2.85, 1.97, 7.20, 1.05})
	near(t, "positive mean: lower bound", e.Lo, math.Exp(0.43664072557661415), 0.02)
	near(t, "positive mean: upper bound", e.Hi, math.Exp(1.3758230612525955), 0.02)
}
