package pipe

import (
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// lose draws the fate of one packet: two draws whatever the probabilities, so
// that runs that differ in the loss rate alone have comparable draws; none
// without a loss model.
func (p *Pipe) lose() bool {
	l := &p.cfg.Loss
	if *l == (Loss{}) {
		return false
	}
	move, hit := p.loss.Float64(), p.loss.Float64()
	if p.bad {
		p.bad = move >= float64(l.ToGood)
	} else {
		p.bad = move < float64(l.ToBad)
	}
	if p.bad {
		return hit < float64(l.Bad)
	}
	return hit < float64(l.Good)
}

// delay draws the propagation delay of one packet.
func (p *Pipe) delay() vtime.Duration {
	j := &p.cfg.Jitter
	d := p.cfg.Delay
	if j.Distribution == Constant || j.Spread == 0 {
		return d
	}
	var x float64 // in units of the spread
	switch j.Distribution {
	case Uniform:
		x = float64(2*p.jitter.Float64()) - 1
	case Normal:
		x = max(-4, min(4, p.jitter.Normal()))
	case Exponential:
		x = p.jitter.Exp()
	case Pareto:
		// Shape 3, scale 2/3: mean 1. The draw of 1 − u never is 0.
		x = float64(2.0/3.0) / fmath.Pow(1-p.jitter.Float64(), 1.0/3.0)
	}
	return max(0, d+vtime.Duration(float64(x*float64(j.Spread))))
}
