package celltrace

import (
	"math"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	tti = 2 * vtime.Millisecond // 3GPP TS 25.308

	// cqiDelay is the age in TTIs of the channel quality by which a block is sized.
	cqiDelay = 3
	// harqDelay is the least time in TTIs between the transmissions of a block: six
	// processes stop and wait (3GPP TS 25.308).
	harqDelay = 6
	// maxTransmissions is when the base station gives a block up; then the layer
	// above (RLC, acknowledged mode) sends it anew after rlcDelay TTIs.
	maxTransmissions = 4
	rlcDelay         = 50
)

// blockBits is the transport block of each CQI for terminals of categories 7 and
// 8 (3GPP TS 25.214, table 7B).
var blockBits = [31]int{0,
	137, 173, 233, 317, 377, 461, 650, 792, 931, 1262,
	1483, 1742, 2279, 2583, 3319, 3565, 4189, 4664, 5287, 5887,
	6554, 7168, 9719, 11418, 14411, 14411, 14411, 14411, 14411, 14411,
}

// cqi is what a terminal reports: the largest block that it would receive with an
// error rate of at most 10 % (Brouwer et al., ISSSTA 2004).
func cqi(sinr float64) int {
	return int(max(0, min(30, math.Floor(sinr/1.02+16.62))))
}

// errorRate is the block error rate of a CQI's block at a SINR in dB (Brouwer et
// al., ISSSTA 2004, solved for the error rate).
func errorRate(sinr float64, cqi int) float64 {
	c := float64(cqi)
	x := 2 * (sinr - float64(1.03*c) + 17.3) / (math.Sqrt(3) - fmath.Log10(c))
	if x > 40 {
		return 0
	}
	return fmath.Pow(fmath.Pow10(x)+1, -1/0.7)
}

// block is a transport block on its way.
type block struct {
	bits, cqi     int
	transmissions int
	energy        float64 // sum of the SINRs of its transmissions, linear
	ready         int     // TTI from which on it may be sent again
	received      bool
}

// link is the sender's and the receiver's side of hybrid ARQ: soft combining, and
// delivery in order.
type link struct {
	window []block // in order; the first is not yet received
	random *des.Stream
}

// again returns the first block that waits to be sent again at a TTI, or nil.
func (l *link) again(now int) *block {
	for i := range l.window {
		if b := &l.window[i]; !b.received && b.ready <= now {
			return b
		}
	}
	return nil
}

// add puts a new block behind the others.
func (l *link) add(b block) *block {
	l.window = append(l.window, b)
	return &l.window[len(l.window)-1]
}

// send transmits a block and returns the bits that can be delivered after it.
func (l *link) send(now int, b *block, sinr float64) int {
	b.transmissions++
	b.energy += fmath.FromDB(sinr)
	b.received = l.random.Float64() >= errorRate(fmath.ToDB(b.energy), b.cqi)
	b.ready = now + harqDelay
	if !b.received && b.transmissions == maxTransmissions {
		b.transmissions, b.energy, b.ready = 0, 0, now+rlcDelay
	}
	return l.take()
}

// take takes what has been received in order out of the window.
func (l *link) take() (bits int) {
	for len(l.window) > 0 && l.window[0].received {
		bits += l.window[0].bits
		l.window = l.window[1:]
	}
	return bits
}

// users is how many others have data: they come at random and stay for an
// exponential time.
type users struct {
	n             int
	comes, leaves float64 // probabilities in a TTI; leaves of each of them
	random        *des.Stream
}

func newUsers(mean float64, stay vtime.Duration, seed uint64) *users {
	u := &users{random: des.NewStream(seed, "celltrace/users")}
	if mean == 0 {
		return u
	}
	u.leaves = tti.Seconds() / stay.Seconds()
	u.comes = float64(mean * u.leaves)
	for t := u.random.Exp(); t < mean; t += u.random.Exp() { // a draw of Poisson's distribution
		u.n++
	}
	return u
}

func (u *users) step() {
	come, leave := u.random.Float64(), u.random.Float64()
	before := u.n
	if come < u.comes {
		u.n++
	}
	if leave < float64(u.leaves*float64(before)) {
		u.n--
	}
}

// Downlink returns the delivery opportunities of a downlink, 1,500 bytes each, in
// milliseconds since its begin, ascending; no more than length long, as
// netem/pipe's traces are.
func Downlink(c HSDPA, seed uint64, d vtime.Duration) ([]int64, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := length(d); err != nil {
		return nil, err
	}
	var (
		shadow  = newGaussMarkov(decay(tti, c.ShadowingTime), des.NewStream(seed, "celltrace/shadowing"))
		fast    = newFading(c.Doppler, seed)
		others  = newUsers(c.Others, c.Stay, seed)
		cut     = newOutages(c.Outages, seed)
		air     = link{random: des.NewStream(seed, "celltrace/errors")}
		reports [cqiDelay]int
		out     opportunities
		turn    int
	)
	for n := range int(d / tti) {
		sinr := float64(c.SINR) + float64(float64(c.Shadowing)*shadow.next()) + fmath.ToDB(fast.next())
		reported := reports[n%cqiDelay]
		reports[n%cqiDelay] = cqi(sinr)
		others.step()
		if turn++; turn > others.n {
			turn = 0
		}
		if turn != 0 || n < cqiDelay || cut.now(vtime.Duration(n)*tti) {
			continue
		}
		b := air.again(n)
		if b == nil {
			if reported == 0 {
				continue // out of range: nothing is sent
			}
			b = air.add(block{bits: blockBits[reported], cqi: reported})
		}
		out.deliver(vtime.Duration(n+1)*tti, air.send(n, b, sinr))
	}
	return out.ms, nil
}

// opportunities gathers delivered bits to opportunities.
type opportunities struct {
	ms   []int64
	bits int // delivered, and no whole opportunity yet
}

const opportunityBits = 1500 * 8

func (o *opportunities) deliver(at vtime.Duration, bits int) {
	for o.bits += bits; o.bits >= opportunityBits; o.bits -= opportunityBits {
		o.ms = append(o.ms, int64(at/vtime.Millisecond))
	}
}
