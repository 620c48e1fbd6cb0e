package fmath

import "math"

const (
	ln2Hi  = 6.93147180369123816490e-01
	ln2Lo  = 1.90821492927058770002e-10
	log2e  = 1.44269504088896338700e+00
	ln10   = 2.30258509299404568402
	log10e = 0.43429448190325182765
)

// fma-free helpers: the conversion rounds the product before it is added.
func madd(a, b, c float64) float64 { return float64(a*b) + c }

// Log returns the natural logarithm of x (the method of FreeBSD's e_log.c:
// argument reduction to [√2/2, √2] and a minimax polynomial; error below 1 ulp).
// Log(0) = −Inf; a negative x gives NaN.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, ki := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f = float64(2 * f)
		ki--
	}
	f--
	k := float64(ki)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * madd(s4, madd(s4, madd(s4, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01), 6.666666666666735130e-01))
	t2 := float64(s4 * madd(s4, madd(s4, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01))
	r := t1 + t2
	hfsq := float64(0.5 * float64(f*f))
	return float64(k*ln2Hi) - ((hfsq - (float64(s*(hfsq+r)) + float64(k*ln2Lo))) - f)
}

// Exp returns e**x (FreeBSD's e_exp.c; error below 1 ulp). Results below the
// smallest normal number are flushed to 0.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < -708:
		return 0
	case x > 709.78:
		return math.Inf(1)
	case x > -0x1p-28 && x < 0x1p-28:
		return 1 + x
	}
	k := math.Floor(madd(x, log2e, 0.5))
	hi := x - float64(k*ln2Hi)
	lo := float64(k * ln2Lo)
	r := hi - lo
	t := float64(r * r)
	c := r - float64(t*madd(t, madd(t, madd(t, madd(t, 4.13813679705723846039e-08, -1.65339022054652515390e-06), 6.61375632143793436117e-05), -2.77777777770155933842e-03), 1.66666666666666019037e-01))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return math.Ldexp(y, int(k))
}

// expSteps are the powers of e that BelowExp begins with: e^(−i/16).
var expSteps = func() (t [16*46 + 1]float64) {
	for i := range t {
		t[i] = Exp(-float64(i) / 16)
	}
	return t
}()

// BelowExp reports whether u < Exp(x), for x in −46…0 mostly without evaluating
// it: with x = −i/16 + d, −1/16 < d ≤ 0, it lies between e^(−i/16)·(1+d) and
// e^(−i/16)·(1+d+d²/2), which differ by 0.2 % at most. The bounds are widened by
// far more than rounding can be off, so that the answer is always that of Exp.
func BelowExp(u, x float64) bool {
	const slack = 1e-14
	if u < float64((1+x)*(1-slack)) { // 1+x ≤ e^x
		return true
	}
	if i := int(-16 * x); x <= 0 && uint(i) < uint(len(expSteps)) {
		d := x + float64(i)/16
		low := float64(expSteps[i] * (1 + d))
		if u < float64(low*(1-slack)) {
			return true
		}
		if high := low + float64(float64(expSteps[i]*0.5)*float64(d*d)); u > float64(high*(1+slack)) {
			return false
		}
	}
	return u < Exp(x)
}

// Log10 returns the decimal logarithm of x.
func Log10(x float64) float64 { return float64(Log(x) * log10e) }

// Pow10 returns 10**x.
func Pow10(x float64) float64 { return Exp(float64(x * ln10)) }

// FromDB returns the power ratio of x decibels.
func FromDB(x float64) float64 { return Pow10(x / 10) }

// ToDB returns the decibels of the power ratio x.
func ToDB(x float64) float64 { return float64(10 * Log10(x)) }

// Pow returns x**y for positive x.
func Pow(x, y float64) float64 { return Exp(float64(y * Log(x))) }
