package fmath

import "math"

// Erfc returns the complementary error function. For |x| below 2 it sums the
// Taylor-like series of erf (Abramowitz, Stegun 7.1.6), beyond it evaluates the
// continued fraction of erfc (7.1.14) backwards; relative error below 1e-12.
func Erfc(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x < 0:
		return 2 - Erfc(-x)
	case x > 26.5: // below the smallest normal number
		return 0
	}
	const invSqrtPi = 0.56418958354775628695
	x2 := float64(x * x)
	if x < 2 {
		// erf(x) = 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1)); all terms positive.
		term, sum := x, x
		for n := 1; n < 80; n++ {
			term = float64(term*2*x2) / float64(2*n+1)
			sum += term
			if term < float64(sum*1e-17) {
				break
			}
		}
		return 1 - float64(float64(2*invSqrtPi*Exp(-x2))*sum)
	}
	f := x
	for k := 120; k >= 1; k-- {
		f = x + float64(0.5*float64(k))/f
	}
	return float64(Exp(-x2)*invSqrtPi) / f
}

// Q returns the tail of the standard normal distribution, P(X > x).
func Q(x float64) float64 { return float64(0.5 * Erfc(float64(x*(math.Sqrt2/2)))) }

func poly(x float64, c ...float64) float64 {
	s := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		s = madd(s, x, c[i])
	}
	return s
}

// NormalQuantile returns x with P(X ≤ x) = p for the standard normal
// distribution, 0 < p < 1 (Wichura, Algorithm AS 241, PPND16, Applied
// Statistics 37, 1988; relative accuracy about 1e-16).
func NormalQuantile(p float64) float64 {
	q := p - 0.5
	if q >= -0.425 && q <= 0.425 {
		r := 0.180625 - float64(q*q)
		return float64(q*poly(r, 3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3)) /
			poly(r, 1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3)
	}
	r := p
	if q > 0 {
		r = 1 - p
	}
	r = math.Sqrt(-Log(r))
	var x float64
	if r <= 5 {
		r -= 1.6
		x = poly(r, 1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504, 1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4) /
			poly(r, 1, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9)
	} else {
		r -= 5
		x = poly(r, 6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 2.96560571828504891230e-1, 2.65321895266123886260e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7) /
			poly(r, 1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15)
	}
	if q < 0 {
		return -x
	}
	return x
}
