package pipe

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// bursts counts the lengths of what the loss model loses in a row, and of what
// it lets through in a row: bursts[n] runs of n packets. The last run is left
// out, since the end of the feed cuts it.
func bursts(lost []bool) (loss, pass map[int]int) {
	loss, pass = map[int]int{}, map[int]int{}
	begin := 0
	for i := 1; i < len(lost); i++ {
		if lost[i] == lost[begin] {
			continue
		}
		if lost[begin] {
			loss[i-begin]++
		} else {
			pass[i-begin]++
		}
		begin = i
	}
	return loss, pass
}

// geometricFit is Pearson's X² of run lengths against the geometric law
// P(n) = (1−q)^(n−1)·q, with its degrees of freedom: one less than there are
// classes, since no parameter is estimated. A class is as many lengths in a row
// as it takes to expect a twentieth of the runs in it, and 20 (Cochran's rule asks
// for 5); the last holds all that are longer.
func geometricFit(runs map[int]int, q float64) (x2 float64, df, total int) {
	for _, k := range runs {
		total += k
	}
	least := max(20, float64(total)/20)
	left, tail := total, 1.0 // the runs of the lengths from n on, and P(length ≥ n)
	for n := 1; ; {
		first, p := tail, tail*q
		got := 0
		for ; float64(total)*(first-tail) < least && tail > 0; n++ {
			got += runs[n]
			tail -= p
			p *= 1 - q
		}
		if float64(total)*tail < least { // too little would be left: the last class
			want := float64(total) * first
			return x2 + (float64(left)-want)*(float64(left)-want)/want, df, total
		}
		want := float64(total) * (first - tail)
		x2 += (float64(got) - want) * (float64(got) - want) / want
		left -= got
		df++
	}
}

// chi2Bound is the value that X² with df degrees of freedom exceeds with the
// probability 0.001 (Wilson and Hilferty 1931; at most 2.3 % too large for df ≥ 2).
func chi2Bound(df int) float64 {
	const z = 3.0902
	f := 2 / (9 * float64(df))
	c := 1 - f + z*math.Sqrt(f)
	return float64(df) * c * c * c
}

// TestGilbertElliott: where the good state loses nothing and the bad one all,
// the lengths of bursts and of the gaps between them are geometric (Gilbert
// 1960), with the probabilities of leaving each state: tested by X² at the level
// 0.001. The loss rate lies in its interval of 99.9 %, for which the variance of
// the mean of a two-state chain is that of independent losses times
// (1+r)/(1−r), r = 1 − to-bad − to-good. The seeds are fixed: the outcome is the
// same at every run.
func TestGilbertElliott(t *testing.T) {
	const n, z = 400_000, 3.2905 // two-sided, 99.9 %
	for seed, l := range []Loss{
		{Bad: 1, ToBad: 0.01, ToGood: 0.25}, // bursts of 4, 3.85 % loss
		{Bad: 1, ToBad: 0.005, ToGood: 0.05},
		{Bad: 1, ToBad: 0.3, ToGood: 0.6},
		{Bad: 1, ToBad: 0.3, ToGood: 0.7}, // r = 0: no memory
	} {
		lost := losses(t, uint64(seed)+5, l, n)
		loss, pass := bursts(lost)
		for _, k := range []struct {
			what string
			runs map[int]int
			q    float64
		}{{"bursts", loss, float64(l.ToGood)}, {"gaps", pass, float64(l.ToBad)}} {
			x2, df, total := geometricFit(k.runs, k.q)
			if df < 2 {
				t.Fatalf("%+v: %d %s make %d classes: the test shows nothing", l, total, k.what, df+1)
			}
			if bound := chi2Bound(df); x2 > bound {
				t.Errorf("%+v: X² of the lengths of %d %s is %.1f with %d degrees of freedom, more than %.1f: not geometric with %g", l, total, k.what, x2, df, bound, k.q)
			}
			// The test has power: a law whose mean is a quarter off is refused.
			if x2, df, _ := geometricFit(k.runs, k.q/1.25); x2 < chi2Bound(df) {
				t.Errorf("%+v: the %s pass as geometric with %g, too (X² %.1f)", l, k.what, k.q/1.25, x2)
			}
		}
		checkLoss(t, l, lost, z)
	}
	// A bad state that loses half, a good one that loses a little.
	l := Loss{Good: 0.01, Bad: 0.5, ToBad: 0.05, ToGood: 0.2}
	if want := 0.8*0.01 + 0.2*0.5; math.Abs(l.Mean()-want) > 1e-12 {
		t.Errorf("Mean of %+v: %v, want %v", l, l.Mean(), want)
	}
	checkLoss(t, l, losses(t, 6, l, n), z)
}

// losses sends n packets through a pipe with a loss model.
func losses(t *testing.T, seed uint64, l Loss, n int) []bool {
	t.Helper()
	eng, p, c := build(t, seed, Config{Loss: l})
	feed(eng, p, 100, vtime.Microsecond, n)
	lost := make([]bool, n)
	for _, s := range c.drops {
		lost[s] = true
	}
	return lost
}

// checkLoss compares the share of the lost with the model's, within z standard
// deviations of a hidden two-state chain's mean: what is drawn in the states,
// m(1−m), and twice the covariances of the states, which fall by r a packet.
func checkLoss(t *testing.T, l Loss, lost []bool, z float64) {
	t.Helper()
	count := 0
	for _, x := range lost {
		if x {
			count++
		}
	}
	n, m := float64(len(lost)), l.Mean()
	bad := float64(l.ToBad) / float64(l.ToBad+l.ToGood)
	r := 1 - float64(l.ToBad) - float64(l.ToGood)
	step := float64(l.Bad - l.Good)
	variance := m*(1-m) + 2*step*step*bad*(1-bad)*r/(1-r)
	if got, ci := float64(count)/n, z*math.Sqrt(variance/n); math.Abs(got-m) > ci {
		t.Errorf("%+v: measured loss %.5f, want %.5f ± %.5f", l, got, m, ci)
	}
}
