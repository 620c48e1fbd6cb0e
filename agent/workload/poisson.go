package workload

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// poisson is a Poisson process of messages: the distances of their moments are
// exponential with the mean Spec.Interval, the first one from the flow's start.
type poisson struct {
	at, stop vtime.Time
	interval float64 // mean, ns
	mean     float64 // size, bytes
	sizes    Sizes
	moments  *des.Stream
	lengths  *des.Stream
}

func newPoisson(spec Spec, start, stop vtime.Time) *poisson {
	return &poisson{at: start, stop: stop, interval: float64(spec.Interval), mean: float64(spec.Size), sizes: spec.Sizes,
		moments: des.NewStream(spec.Seed, "workload/poisson/moments"), lengths: des.NewStream(spec.Seed, "workload/poisson/sizes")}
}

func (p *poisson) next() (message, bool) {
	p.at = p.at.Add(vtime.Duration(float64(p.interval * p.moments.Exp())))
	if p.at >= p.stop {
		return message{}, false
	}
	return message{p.at, p.size()}, true
}

// The bounded Pareto distribution of sizes. Its least value in units of the mean
// follows from shape, bound and mean 1:
// l^a/(1−(l/h)^a) · a/(a−1) · (l^(1−a) − h^(1−a)) = 1.
const (
	paretoShape = 1.2
	paretoMost  = 1000
	paretoLeast = 0.20393255563230445
)

func (p *poisson) size() vtime.Bytes {
	x := p.mean
	switch p.sizes {
	case SizesExponential:
		x = float64(x * p.lengths.Exp())
	case SizesPareto:
		// F(x) = (1−(l/x)^a) / (1−(l/h)^a)
		u := float64(p.lengths.Float64() * (1 - fmath.Pow(paretoLeast/paretoMost, paretoShape)))
		x = float64(x*paretoLeast) / fmath.Pow(1-u, 1/paretoShape)
	}
	return max(1, vtime.Bytes(x+0.5))
}
