package des

import (
	"fmt"
	"math"
	"testing"
)

func TestStreamsArePinned(t *testing.T) {
	// Stored results are repeated from their seed: the streams must never change.
	for _, c := range []struct {
		seed  uint64
		name  string
		first uint64
	}{
		{0, "", 0x3aeff9ed94f7d27c}, {1, "", 0xf2f387bc82eb6a2b}, {0, "wifi/0/backoff", 0x870150059cbf09c9}, {math.MaxUint64, "shadow/1/2", 0xb8943e2566f09826},
	} {
		if got := NewStream(c.seed, c.name).Uint64(); got != c.first {
			t.Errorf("stream (%d, %q) begins with %#x, want %#x", c.seed, c.name, got, c.first)
		}
	}
}

// near lists streams that a weak seeding would make alike: consecutive seeds,
// seeds a multiple of splitmix64's increment apart, names that differ in one
// character, name and seed traded.
func near() map[string]*Stream {
	m := map[string]*Stream{}
	const gamma = 0x9e3779b97f4a7c15
	for i := uint64(0); i < 8; i++ {
		m[fmt.Sprintf("seed %d", i)] = NewStream(i, "a")
		m[fmt.Sprintf("seed gamma·%d", i+1)] = NewStream((i+1)*gamma, "a")
		m[fmt.Sprintf("name a%d", i)] = NewStream(0, fmt.Sprintf("a%d", i))
		m[fmt.Sprintf("name %d/1", i)] = NewStream(0, fmt.Sprintf("%d/1", i))
		m[fmt.Sprintf("name 1/%d", i)] = NewStream(0, fmt.Sprintf("1/%d/", i))
	}
	return m
}

func TestNearStreamsAreNotShiftedCopies(t *testing.T) {
	const n = 4096
	seen := map[uint64]string{}
	for name, s := range near() {
		for i := 0; i < n; i++ {
			v := s.Uint64()
			if other, dup := seen[v]; dup {
				t.Fatalf("value %d of %q occurs also in %q", i, name, other)
			}
			seen[v] = name
		}
	}
}

func TestNearStreamsAreUncorrelated(t *testing.T) {
	const n = 4096
	var names []string
	var draws [][]float64
	for name, s := range near() {
		d := make([]float64, n)
		for i := range d {
			d[i] = s.Float64() - 0.5
		}
		names = append(names, name)
		draws = append(draws, d)
	}
	// The correlation of independent uniform draws is normal with deviation 1/√n;
	// with 780 pairs 5.5 deviations are exceeded once in 30,000 such tests.
	for i := range draws {
		for j := 0; j < i; j++ {
			var dot float64
			for k := range draws[i] {
				dot += draws[i][k] * draws[j][k]
			}
			if c := dot * 12 / n; math.Abs(c) > 5.5/math.Sqrt(n) {
				t.Errorf("%q and %q correlate by %.4f", names[i], names[j], c)
			}
		}
	}
}

func TestIntNIsUniform(t *testing.T) {
	s := NewStream(1, "uniform")
	for _, n := range []int{1, 2, 7, 32, 1000} {
		const per = 2000
		count := make([]int, n)
		for i := 0; i < n*per; i++ {
			count[s.IntN(n)]++
		}
		chi2 := 0.0
		for _, c := range count {
			d := float64(c - per)
			chi2 += d * d / per
		}
		// χ² with n−1 degrees of freedom: mean n−1, deviation √(2(n−1)).
		if limit := float64(n-1) + 5*math.Sqrt(2*float64(n-1)); chi2 > limit {
			t.Errorf("IntN(%d): χ² %.1f above %.1f", n, chi2, limit)
		}
	}
}

func TestMoments(t *testing.T) {
	const n = 200000
	s := NewStream(2, "moments")
	for _, c := range []struct {
		name                 string
		draw                 func() float64
		mean, variance, m4sd float64 // m4sd: deviation of x²
	}{
		{"Float64", s.Float64, 0.5, 1.0 / 12, 0.3},
		{"Normal", s.Normal, 0, 1, math.Sqrt2},
		{"Exp", s.Exp, 1, 1, math.Sqrt(20)},
	} {
		var sum, sq float64
		for i := 0; i < n; i++ {
			x := c.draw()
			sum += x
			sq += x * x
		}
		mean := sum / n
		if d := math.Abs(mean - c.mean); d > 5*math.Sqrt(c.variance/n) {
			t.Errorf("%s: mean %.5f, want %.5f", c.name, mean, c.mean)
		}
		if d := math.Abs(sq/n - c.mean*c.mean - c.variance); d > 5*2*c.m4sd/math.Sqrt(n) {
			t.Errorf("%s: variance off by %.5f", c.name, d)
		}
	}
}

func TestNormalTails(t *testing.T) {
	const n = 1000000
	s := NewStream(4, "tails")
	var beyond [4]int
	for i := 0; i < n; i++ {
		x := math.Abs(s.Normal())
		for k := 1; k < 4; k++ {
			if x > float64(k) {
				beyond[k]++
			}
		}
	}
	for k, p := range []float64{1: 0.3173105, 2: 0.0455003, 3: 0.0026998} {
		if k == 0 {
			continue
		}
		if d := float64(beyond[k]) - n*p; math.Abs(d) > 5*math.Sqrt(n*p) {
			t.Errorf("share beyond %dσ: %.5f, want %.5f", k, float64(beyond[k])/n, p)
		}
	}
}

func TestPermIsUniform(t *testing.T) {
	s := NewStream(1, "perm")
	count := map[string]int{}
	const per = 1000
	for i := 0; i < 24*per; i++ {
		count[fmt.Sprint(s.Perm(4))]++
	}
	if len(count) != 24 {
		t.Fatalf("%d of 24 permutations occur", len(count))
	}
	for p, c := range count {
		if math.Abs(float64(c)-per) > 5*math.Sqrt(per) {
			t.Errorf("permutation %s occurs %d times of %d", p, c, per)
		}
	}
}

func TestBoolDrawsOnceWhateverP(t *testing.T) {
	a, b := NewStream(1, "bool"), NewStream(1, "bool")
	for i := 0; i < 100; i++ {
		if a.Bool(0) || !b.Bool(1) {
			t.Fatal("Bool(0) must be false, Bool(1) true")
		}
	}
	if a.Uint64() != b.Uint64() {
		t.Error("p changed the number of draws")
	}
}

func BenchmarkStream(b *testing.B) {
	s := NewStream(1, "bench")
	b.Run("Uint64", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			s.Uint64()
		}
	})
	b.Run("IntN32", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			s.IntN(32)
		}
	})
	b.Run("Normal", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			s.Normal()
		}
	})
}
