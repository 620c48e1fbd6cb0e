package celltrace

import (
	"math"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// gaussMarkov is a stationary Gaussian process of mean 0 and variance 1 whose
// correlation over one step is rho (Gudmundson, Electronics Letters 1991, has
// shadowing as one).
type gaussMarkov struct {
	rho, innovation float64
	x               float64
	random          *des.Stream
}

func newGaussMarkov(rho float64, random *des.Stream) *gaussMarkov {
	return &gaussMarkov{rho: rho, innovation: math.Sqrt(1 - float64(rho*rho)), x: random.Normal(), random: random}
}

// decay is the correlation over a step of a process that loses 1 − 1/e of it in
// the given time.
func decay(step, in vtime.Duration) float64 {
	if in == 0 {
		return 0
	}
	return fmath.Exp(-step.Seconds() / in.Seconds())
}

func (g *gaussMarkov) next() float64 {
	x := g.x
	g.x = float64(g.rho*g.x) + float64(g.innovation*g.random.Normal())
	return x
}

// branches are the paths, of equal mean power, that the receiver combines.
const branches = 2

// maxDoppler keeps two steps of the fading from being further apart than a
// quarter of a wavelength, where a first-order process no longer is one.
const maxDoppler = 120

// fading is Rayleigh fading of each branch: its in-phase and quadrature parts are
// Gauss–Markov processes with the correlation J0(2π·fd·T) that Clarke's model has
// after one step (Wang, Moayeri, IEEE Trans. Veh. Techn. 1995).
type fading struct{ parts [2 * branches]*gaussMarkov }

func newFading(doppler float64, seed uint64) *fading {
	if doppler == 0 {
		return nil
	}
	f := new(fading)
	random := des.NewStream(seed, "celltrace/fading")
	rho := bessel0(2 * math.Pi * doppler * tti.Seconds())
	for i := range f.parts {
		f.parts[i] = newGaussMarkov(rho, random)
	}
	return f
}

// next returns the power gain of one step; its mean is 1.
func (f *fading) next() float64 {
	if f == nil {
		return 1
	}
	sum := 0.0
	for _, p := range f.parts {
		x := p.next()
		sum += float64(x * x)
	}
	return sum / (2 * branches)
}

// bessel0 is J0(x) by its power series, for x up to π/2.
func bessel0(x float64) float64 {
	q := float64(x*x) / 4
	sum, term := 1.0, 1.0
	for k := 1.0; k < 12; k++ {
		term = float64(-term*q) / float64(k*k)
		sum += term
	}
	return sum
}

// outages is a walk through the outages; times ascend.
type outages struct {
	cfg      Outages
	random   *des.Stream
	from, to vtime.Duration // the one that is now, or the next
}

func newOutages(cfg Outages, seed uint64) *outages {
	o := &outages{cfg: cfg, random: des.NewStream(seed, "celltrace/outages")}
	o.draw()
	return o
}

func (o *outages) draw() {
	if o.cfg.Every > 0 {
		o.from = o.to + exponential(o.random, o.cfg.Every)
		o.to = o.from + exponential(o.random, o.cfg.Mean)
	}
}

func exponential(r *des.Stream, mean vtime.Duration) vtime.Duration {
	return vtime.Duration(float64(r.Exp() * float64(mean)))
}

// now reports whether the cell serves nobody at t.
func (o *outages) now(t vtime.Duration) bool {
	if o.cfg.Every == 0 {
		return false
	}
	for t >= o.to {
		o.draw()
	}
	return t >= o.from
}
