package workload

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
)

// zipf draws ranks 1…n with probabilities proportional to rank^−s, by rejection
// and inversion (Hörmann and Derflinger, Rejection-Inversion to Generate Variates
// from Monotone Discrete Distributions, ACM TOMACS 1996): no table, and a bounded
// mean number of draws for every n and s ≥ 0.
type zipf struct {
	n, s    float64
	x1, xn  float64 // bounds of the inverted integral
	squeeze float64
}

func newZipf(n int, s float64) *zipf {
	z := &zipf{n: float64(n), s: s}
	z.x1 = z.integral(1.5) - 1
	z.xn = z.integral(z.n + 0.5)
	z.squeeze = 2 - z.inverse(z.integral(2.5)-z.hat(2))
	return z
}

// hat is x^−s.
func (z *zipf) hat(x float64) float64 { return fmath.Exp(float64(-z.s * fmath.Log(x))) }

// integral is that of hat from 1 to x: (x^(1−s) − 1)/(1−s), or log x for s = 1.
func (z *zipf) integral(x float64) float64 {
	l := fmath.Log(x)
	return float64(l * expm1Over(float64((1-z.s)*l)))
}

// inverse inverts integral.
func (z *zipf) inverse(y float64) float64 {
	t := max(-1, float64(y*(1-z.s))) // below −1 by rounding only
	return fmath.Exp(float64(y * log1pOver(t)))
}

// expm1Over returns (e^t − 1)/t, continuous at 0.
func expm1Over(t float64) float64 {
	if t > -1e-4 && t < 1e-4 { // the fourth term is below 1e-13
		return 1 + float64(t/2*(1+float64(t/3*(1+t/4))))
	}
	return (fmath.Exp(t) - 1) / t
}

// log1pOver returns log(1+t)/t, continuous at 0.
func log1pOver(t float64) float64 {
	if t > -1e-4 && t < 1e-4 {
		return 1 - float64(t*(0.5-float64(t*(1.0/3-t/4))))
	}
	return fmath.Log(1+t) / t
}

// rank draws one.
func (z *zipf) rank(from *des.Stream) int {
	for {
		u := z.xn + float64(from.Float64()*(z.x1-z.xn))
		x := z.inverse(u)
		k := min(max(1, float64(int(x+0.5))), z.n)
		if k-x <= z.squeeze || u >= z.integral(k+0.5)-z.hat(k) {
			return int(k)
		}
	}
}
