package wifi

import (
	"github.com/hopbed/hopbed/netem/vtime"
)

// Channel says who hears whom: received powers of all ordered pairs, thresholds
// and neighbour lists. It is immutable; any number of media may share it.
type Channel struct {
	n int
}

// NewChannel computes the channel of nodes at pos. mac gives the standard and
// the data rate to which the sense threshold refers. The shadowing of a pair is
// drawn from the stream (seed, "shadow/i/j"), so that adding a node changes no
// other pair.
func NewChannel(seed uint64, r Radio, mac MAC, pos []Position) (*Channel, error) { panic("wip") }

// NewMatrixChannel builds a channel from explicit matrices, indexed [from][to].
// delivery is the probability that a data frame alone on the channel is
// received, whatever its length; control frames are received wherever it is
// above 0. sense says whether to's carrier sense hears from (nil: wherever
// delivery is above 0); interfere whether from's frames destroy what to receives
// at the same time (nil: wherever it senses or delivers). There is no capture.
func NewMatrixChannel(delivery [][]float64, sense, interfere [][]bool) (*Channel, error) {
	panic("wip")
}

// N returns the number of nodes.
func (c *Channel) N() int { return c.n }

// Delivery returns the probability that one data frame with a packet of n bytes
// at the given rate, alone on the channel, is received at to: no
// retransmission, no ACK. 0 for a rate that the standard does not have.
func (c *Channel) Delivery(from, to int, n vtime.Bytes, rate vtime.BitRate) float64 { panic("wip") }

// Senses reports whether i's carrier sense hears a transmission of j alone.
func (c *Channel) Senses(i, j int) bool { panic("wip") }

// RxPower returns the power of i's transmissions at j. In the disk and matrix
// models powers are relative to the decoding threshold, which is 0 dBm there.
func (c *Channel) RxPower(i, j int) vtime.DBm { panic("wip") }

// SNR returns the signal-to-noise ratio of i's transmissions at j without
// interference (disk and matrix models: the margin above the decoding
// threshold).
func (c *Channel) SNR(i, j int) vtime.Decibel { panic("wip") }
