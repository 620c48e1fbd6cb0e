package workload

import (
	"strconv"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The sizes of a server's objects, in units of the body's median (Barford and
// Crovella 1998, table 1: lognormal body with µ = 9.357 and σ = 1.318, Pareto
// tail of shape 1.1 for the 7 % beyond 133 KB).
const (
	bodySigma  = 1.318
	bodyShare  = 0.93
	tailShape  = 1.1
	tailFrom   = 11.49    // 133,000 / e^9.357
	bodyAtTail = 0.968021 // of the lognormal distribution lies below tailFrom
)

// catalog knows the sizes of a server's objects. A size is drawn from a stream of
// its object, so that no table of them is needed.
type catalog struct {
	seed   uint64
	median float64 // of the body, bytes
	most   float64
	draw   des.Stream
}

// bodyQuantile returns the size, in units of the median, below which the share u
// of the body lies.
func bodyQuantile(u float64) float64 {
	return fmath.Exp(float64(bodySigma * fmath.NormalQuantile(float64(u*bodyAtTail))))
}

// newCatalog chooses the median so that the mean of all sizes, none of which
// is larger than most, is the given one.
func newCatalog(seed uint64, mean, most vtime.Bytes) *catalog {
	// The body at equally likely points; the tail has a closed form.
	const points = 1024
	var body [points]float64
	for i := range body {
		body[i] = bodyQuantile((float64(i) + 0.5) / points)
	}
	meanOf := func(median, most float64) float64 {
		sum := 0.0
		for _, q := range body {
			sum += min(float64(median*q), most)
		}
		return float64(bodyShare*sum)/points + float64((1-bodyShare)*tailMean(float64(median*tailFrom), most))
	}
	c := &catalog{seed: seed, most: float64(most)}
	lo, hi := 0.0, float64(1e6*c.most)
	for range 100 {
		c.median = (lo + hi) / 2
		if meanOf(c.median, c.most) < float64(mean) {
			lo = c.median
		} else {
			hi = c.median
		}
	}
	return c
}

// tailMean is the mean of min(X, most), where X is Pareto's from the given value
// on.
func tailMean(from, most float64) float64 {
	if from >= most {
		return most
	}
	return float64(from * (1 + (1-fmath.Pow(from/most, tailShape-1))/(tailShape-1)))
}

// size returns the size of the object with the given rank.
func (c *catalog) size(rank int) vtime.Bytes {
	var name [40]byte
	c.draw.Reseed(c.seed, string(strconv.AppendInt(append(name[:0], "workload/web/object/"...), int64(rank), 10)))
	u := c.draw.Float64()
	var x float64
	if u < bodyShare {
		// The half step keeps the quantile's argument off 0.
		x = float64(c.median * bodyQuantile(float64(u+0x1p-54)/bodyShare))
	} else {
		x = float64(c.median*tailFrom) / fmath.Pow((1-u)/(1-bodyShare), 1/tailShape)
	}
	return max(1, vtime.Bytes(min(x, c.most)+0.5))
}
