package wifi

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// link is what a transmission of one node means to one neighbour.
type link struct {
	to int32
	// decodes: the neighbour can decode data frames when nothing interferes.
	decodes bool
	// power is the received power in units of the channel, for signal and
	// interference; sense the same for carrier sense. Integers: sums of powers are
	// then exact, whatever the order in which frames begin and end.
	power, sense int64
	// prob is the delivery probability of data frames in the matrix model.
	prob float64
}

// powerUnit is the power that the unit of link.power refers to: the noise floor
// (log-distance) or the decoding threshold (disk, matrix). The largest power is
// 130 dB above it.
const powerUnit = 1 << 18

const maxPowerDB = 120

// Channel says who hears whom: received powers of all ordered pairs, thresholds
// and neighbour lists. It is immutable; any number of media may share it.
type Channel struct {
	n     int
	std   Standard
	phy   phy // of the MAC given to NewChannel; zero for matrices
	links [][]link
	// snr is the margin of every ordered pair in dB: above the noise
	// (log-distance) or above the decoding threshold.
	snr []float64

	// threshold: receptions succeed by comparing powers (disk, matrix) instead of
	// by error rates.
	threshold bool
	noise     int64
	senseAt   int64   // carrier sense is busy at this sum
	lockAt    int64   // no receiver locks below; 0 in the threshold models
	capture   float64 // ratio; +Inf = off
	noiseDBm  float64
}

// NewChannel computes the channel of nodes at pos. mac gives the standard and
// the data rate to which the sense threshold refers. The shadowing of a pair is
// drawn from the stream (seed, "shadow/i/j"), so that adding a node changes no
// other pair. mute are nodes without a radio: nobody hears them, they hear
// nobody, and their positions are of no matter.
func NewChannel(seed uint64, r Radio, mac MAC, pos []Position, mute ...int) (*Channel, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	p, err := newPHY(&mac)
	if err != nil {
		return nil, fmt.Errorf("channel: %w", err)
	}
	if len(pos) == 0 {
		return nil, fmt.Errorf("channel: no positions: want at least one node")
	}
	c := &Channel{n: len(pos), std: mac.Standard, phy: p, noiseDBm: float64(r.Noise), capture: math.Inf(1)}
	if r.Capture > 0 {
		c.capture = fmath.FromDB(float64(r.Capture))
	}
	c.links = make([][]link, c.n)
	c.snr = make([]float64, c.n*c.n)
	silent := make([]bool, c.n)
	for _, i := range mute {
		if i < 0 || i >= c.n {
			return nil, fmt.Errorf("channel: node %d of %d cannot be mute: want 0 to %d", i, c.n, c.n-1)
		}
		silent[i] = true
	}
	for i := range c.n {
		for j := range c.n {
			if silent[i] || silent[j] {
				c.snr[i*c.n+j] = math.Inf(-1)
			}
		}
	}
	if r.Range > 0 {
		c.disk(r, pos, silent)
		return c, nil
	}
	return c, c.logDistance(seed, r, pos, silent)
}

func (c *Channel) logDistance(seed uint64, r Radio, pos []Position, silent []bool) error {
	c.noise = powerUnit
	decode := c.phy.decodeRatio(c.phy.data)
	c.senseAt = units(fmath.ToDB(decode) + float64(r.Sense))
	c.lockAt = min(c.senseAt, units(fmath.ToDB(decode)))
	floor := float64(r.Floor)
	if floor == 0 {
		floor = float64(DefaultFloor)
	}
	floor = math.Min(floor, float64(r.Sense)+fmath.ToDB(decode))
	shadow := new(des.Stream)
	name := make([]byte, 0, 32)
	for i := range pos {
		for j := i + 1; j < len(pos); j++ {
			if silent[i] || silent[j] {
				continue
			}
			// Closer than the reference distance the formula has no meaning.
			d := math.Max(float64(pos[i].Distance(pos[j])), 1)
			loss := float64(r.ReferenceLoss) + float64(10*r.Exponent*fmath.Log10(d))
			if r.Shadowing > 0 {
				name = strconv.AppendInt(append(name[:0], "shadow/"...), int64(i), 10)
				name = strconv.AppendInt(append(name, '/'), int64(j), 10)
				shadow.Reseed(seed, string(name))
				loss += float64(float64(r.Shadowing) * shadow.Normal())
			}
			snr := float64(r.TxPower) - loss - c.noiseDBm
			if snr > maxPowerDB {
				return fmt.Errorf("channel: nodes %d and %d: signal %.0f dB above the noise, more than the %d dB that the medium represents: lower the transmit power or raise the reference loss", i, j, snr, maxPowerDB)
			}
			c.snr[i*c.n+j], c.snr[j*c.n+i] = snr, snr
		}
	}
	for i := range pos {
		for j := range pos {
			if i == j {
				continue
			}
			if snr := c.snr[i*c.n+j]; snr >= floor {
				p := units(snr)
				c.links[i] = append(c.links[i], link{to: int32(j), decodes: true, power: p, sense: p, prob: 1})
			}
		}
	}
	return nil
}

func (c *Channel) disk(r Radio, pos []Position, silent []bool) {
	c.threshold = true
	c.senseAt, c.lockAt = 1, 0
	for i := range pos {
		for j := range pos {
			if i == j || silent[i] || silent[j] {
				continue
			}
			d := math.Max(float64(pos[i].Distance(pos[j])), 1e-3)
			margin := math.Min(-float64(10*r.Exponent*fmath.Log10(d/float64(r.Range))), maxPowerDB)
			c.snr[i*c.n+j] = margin
			if d > float64(r.SenseRange) {
				continue
			}
			p := max(units(margin), 1)
			c.links[i] = append(c.links[i], link{to: int32(j), decodes: d <= float64(r.Range), power: p, sense: p, prob: 1})
		}
	}
}

// units converts decibels above the reference into integer power.
func units(db float64) int64 {
	return int64(math.Round(float64(fmath.FromDB(db) * powerUnit)))
}

// find returns the link from → to, nil when to does not notice from.
func (c *Channel) find(from, to int) (int, *link) {
	ls := c.links[from]
	lo, hi := 0, len(ls)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if int(ls[mid].to) < to {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(ls) && int(ls[lo].to) == to {
		return lo, &ls[lo]
	}
	return -1, nil
}

// N returns the number of nodes.
func (c *Channel) N() int { return c.n }

// Delivery returns the probability that one data frame with a packet of n bytes
// at the given rate, alone on the channel, is received at to: no
// retransmission, no ACK, no injected loss. A rate that the standard does not
// have gives 0. In the disk and matrix models it depends on the pair alone.
func (c *Channel) Delivery(from, to int, n vtime.Bytes, rate vtime.BitRate) float64 {
	_, l := c.find(from, to)
	if l == nil || !l.decodes {
		return 0
	}
	if c.threshold {
		return l.prob
	}
	md, err := modeOf(c.std, rate)
	if err != nil {
		return 0
	}
	g := float64(l.power) / float64(c.noise)
	if l.power < c.lockAt || g < c.phy.plcpMode(md).lock() {
		return 0
	}
	return c.phy.frameSuccess(md, c.phy.mpdu(n), g)
}

// Senses reports whether i's carrier sense hears a transmission of j alone.
func (c *Channel) Senses(i, j int) bool {
	_, l := c.find(j, i)
	return l != nil && l.sense >= c.senseAt
}

// Notices reports whether what i transmits does anything at j: is received, sensed,
// or interferes.
func (c *Channel) Notices(j, i int) bool {
	_, l := c.find(i, j)
	return l != nil
}

// RxPower returns the power of i's transmissions at j. In the disk and matrix
// models powers are relative to the decoding threshold, which is 0 dBm there.
func (c *Channel) RxPower(i, j int) vtime.DBm {
	return vtime.DBm(c.snr[i*c.n+j] + c.noiseDBm)
}

// SNR returns the signal-to-noise ratio of i's transmissions at j without
// interference; in the disk and matrix models the margin above the decoding
// threshold.
func (c *Channel) SNR(i, j int) vtime.Decibel { return vtime.Decibel(c.snr[i*c.n+j]) }
