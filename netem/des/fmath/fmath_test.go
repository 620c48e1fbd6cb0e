package fmath

import (
	"hash/fnv"
	"math"
	"testing"
)

// ulps is the distance of a and b in units of the last place.
func ulps(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a-b) / math.Abs(math.Nextafter(b, math.Inf(1))-b)
}

func TestAgainstStandardLibrary(t *testing.T) {
	// The standard library is within 1 ulp of the true value. Pow10 loses what the
	// rounded product x·ln 10 loses; Erfc promises 1e-12, that is 4500 ulp.
	for _, c := range []struct {
		name      string
		f, want   func(float64) float64
		from, to  float64
		limitUlps float64
	}{
		{"Log", Log, math.Log, 1e-300, 1e300, 2},
		{"Log near 1", Log, math.Log, 0.5, 2, 2},
		{"Exp", Exp, math.Exp, -700, 700, 2},
		{"Exp near 0", Exp, math.Exp, -1, 1, 2},
		{"Log10", Log10, math.Log10, 1e-30, 1e30, 3},
		{"Pow10", Pow10, func(x float64) float64 { return math.Pow(10, x) }, -15, 15, 100},
		{"Erfc", Erfc, math.Erfc, -5, 1.9, 4000},
		{"Erfc tail", Erfc, math.Erfc, 1.9, 26, 4000},
	} {
		worst, at := 0.0, 0.0
		for i := 0; i <= 20000; i++ {
			x := c.from + (c.to-c.from)*float64(i)/20000
			if c.from > 0 && c.to/c.from > 1e3 { // geometric
				x = math.Exp(math.Log(c.from) + (math.Log(c.to)-math.Log(c.from))*float64(i)/20000)
			}
			if u := ulps(c.f(x), c.want(x)); u > worst {
				worst, at = u, x
			}
		}
		if worst > c.limitUlps {
			t.Errorf("%s: %.1f ulp off at %v (limit %v)", c.name, worst, at, c.limitUlps)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Log(0)", Log(0), -inf}, {"Log(+Inf)", Log(inf), inf}, {"Log(1)", Log(1), 0},
		{"Exp(0)", Exp(0), 1}, {"Exp(-Inf)", Exp(-inf), 0}, {"Exp(-1000)", Exp(-1000), 0}, {"Exp(1000)", Exp(1000), inf},
		{"Erfc(0)", Erfc(0), 1}, {"Erfc(30)", Erfc(30), 0}, {"Erfc(-30)", Erfc(-30), 2}, {"Q(0)", Q(0), 0.5},
		{"FromDB(0)", FromDB(0), 1}, {"ToDB(1)", ToDB(1), 0}, {"NormalQuantile(½)", NormalQuantile(0.5), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	if !math.IsNaN(Log(-1)) || !math.IsNaN(Exp(math.NaN())) {
		t.Error("Log(-1) and Exp(NaN) must be NaN")
	}
}

func TestNormalQuantileInvertsQ(t *testing.T) {
	for _, p := range []float64{1e-12, 1e-6, 0.001, 0.07, 0.075, 0.3, 0.5, 0.8, 0.925, 0.999} {
		if got := Q(-NormalQuantile(p)); math.Abs(got-p) > 1e-12*p+1e-15 {
			t.Errorf("P(X ≤ quantile(%v)) = %v", p, got)
		}
	}
}

// TestBitsAreEqualEverywhere pins the results to the bit. It must pass on every
// architecture, also where the compiler may fuse multiplications and additions
// (arm64, ppc64le, s390x, riscv64, GOAMD64=v3).
func TestBitsAreEqualEverywhere(t *testing.T) {
	h := fnv.New64a()
	add := func(x float64) {
		b := math.Float64bits(x)
		h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24), byte(b >> 32), byte(b >> 40), byte(b >> 48), byte(b >> 56)})
	}
	for i := 1; i < 5000; i++ {
		x := float64(i) / 257
		add(Log(x))
		add(Exp(-x))
		add(Exp(x))
		add(Log10(x))
		add(Pow10(x - 10))
		add(Erfc(x - 3))
		add(Pow(x, 3.3))
		add(NormalQuantile(float64(i) / 5000))
	}
	if got, want := h.Sum64(), uint64(0x6dbe970350f0d2fd); got != want {
		t.Errorf("hash of results %#x, want %#x", got, want)
	}
}

// BelowExp must answer as Exp does, above all beside e**x itself and beside the
// bounds that it begins with.
func TestBelowExpIsExp(t *testing.T) {
	n := 0
	check := func(u, x float64) {
		n++
		if got, want := BelowExp(u, x), u < Exp(x); got != want {
			t.Fatalf("BelowExp(%v, %v) = %v, want %v", u, x, got, want)
		}
	}
	var xs []float64
	for i := 0; i < 20000; i++ {
		xs = append(xs, -50*float64(i)/20000, -math.Ldexp(1, -i%1080))
	}
	for i := 0; i <= 16*47; i++ {
		x := -float64(i) / 16
		xs = append(xs, x, math.Nextafter(x, 0), math.Nextafter(x, -1e3))
	}
	xs = append(xs, 0, math.Copysign(0, -1), 1e-9, 0.5, 3, -700, -1e6, -1e300, math.Inf(-1), math.Inf(1), math.NaN())
	for _, x := range xs {
		e := Exp(x)
		for u, k := e, 0; k < 4; k++ {
			check(u, x)
			u = math.Nextafter(u, 2)
		}
		check(math.Nextafter(e, -1), x)
		for _, f := range []float64{1e-15, 1e-14, 2e-14, 1e-12, 1e-4, 1e-3, 0.01, 0.5} {
			check(e*(1-f), x)
			check(e*(1+f), x)
		}
		check(0, x)
		check(1, x)
		check(1-0x1p-53, x)
	}
	if n < 100_000 {
		t.Errorf("only %d pairs", n)
	}
}
