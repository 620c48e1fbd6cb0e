package tc

import (
	"math"
	"sync"

	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// netem draws a delay as mean + spread × table[random]/8192, from a table of
// 16-bit integers (NETEM_DIST_SCALE, NETEM_DIST_MAX of linux/pkt_sched.h).
const (
	distScale = 8192
	distSize  = 16384
)

// A table is a distribution of package pipe's, by its quantiles.
type table pipe.Distribution

// unit is the spread that 1 stands for in the table: more than 1 where the
// distribution reaches further than the four units that 16 bits have.
func (d table) unit() float64 {
	switch pipe.Distribution(d) {
	case pipe.Exponential:
		return 3 // reaches 12 means: the 10.4 of the last quantile
	case pipe.Pareto:
		return 6 // reaches 24 means: the 21.3 of the last quantile
	}
	return 1
}

// spread is what netem is told as jitter.
func (d table) spread(s vtime.Duration) vtime.Duration {
	if pipe.Distribution(d) == pipe.Constant {
		return 0
	}
	x := float64(float64(s) * d.unit())
	if x >= math.MaxInt64 {
		return math.MaxInt64
	}
	return vtime.Duration(math.Round(x))
}

// quantile is the value below which a share u of the draws of package pipe lie,
// in spreads.
func (d table) quantile(u float64) float64 {
	switch pipe.Distribution(d) {
	case pipe.Uniform:
		return 2*u - 1
	case pipe.Normal:
		return max(-4, min(4, math.Sqrt2*math.Erfinv(2*u-1)))
	case pipe.Exponential:
		return -math.Log1p(-u)
	case pipe.Pareto: // shape 3, mean 1
		return (2.0 / 3.0) / fmath.Pow(1-u, 1.0/3.0)
	}
	return 0
}

var tables [pipe.Pareto + 1]struct {
	once   sync.Once
	values []int16
}

// values is the table for the kernel. It is never nil: a netem that has a table
// keeps it until it is given another one.
func (d table) values() []int16 {
	t := &tables[d]
	t.once.Do(func() {
		t.values = make([]int16, distSize)
		for i := range t.values {
			x := d.quantile((float64(i) + 0.5) / distSize)
			t.values[i] = int16(max(math.MinInt16, min(math.MaxInt16, math.Round(x/d.unit()*distScale))))
		}
	})
	return t.values
}

// twoPoints is the distribution in which a share of the packets has one spread and
// the others have none. It holds packets back in place of netem's own reordering,
// which lets the others pass at the head of its queue: those that come at once
// then leave in the opposite order. The share is rounded to 1/16,384, and not to 0.
func twoPoints(held vtime.Fraction) []int16 {
	t := make([]int16, distSize)
	n := max(1, int(math.Round(float64(held)*distSize)))
	for i := range n {
		t[i] = distScale
	}
	return t
}
