package hop

import "github.com/hopbed/hopbed/netem/vtime"

// A wire has one FIFO queue for both classes. Three things follow.
//
// A BSYN cannot overtake the data that it announces the end of, so it follows
// them at once, without waiting until they have left.
//
// Control stands behind the data that are in the queue already, so the queue
// is filled no further than the link needs (ahead), and its last places are
// left to control (reserve) where nobody else would take them.
//
// A round trip may be long beside the time that a block takes: the next block
// is announced while the last round of the one before is being answered. (On
// a radio the BSYN would take the air from the block that it waits for.)

// ahead is the number of packets that a wire's queue is kept filled with: as
// few as keep the link busy. The node does not know the link's rate, nor how
// late it learns of departures; so it grows the number when the queue ran empty
// although there was more to send, and takes back what was never needed. (The
// idea is that of dynamic queue limits, which Linux drivers use for their
// rings.) The link's delay plays no part: what is under way has left the queue.
type ahead struct {
	n       int
	limited bool       // it has kept a packet back since the last departure
	slack   int        // the fewest packets left in the queue by a departure …
	since   vtime.Time // … since then
}

const (
	mostAhead  = 64 // packets
	aheadHold  = vtime.Second
	mostSpared = 4 // packets of the queue that are left to control
)

// leastAhead is a txop's worth: what a flow's turn sends.
func (p *port) leastAhead(c *Config) int { return c.TxopPackets }

// reserve is the number of the queue's places that data leave to control.
func (p *port) reserve() int { return min(mostSpared, p.mac[Data].size/4) }

// shared reports whether others' packets stand in the queue, too.
func (p *port) shared(free int) bool { return p.mac[Data].size-free > p.mac[Data].waiting() }

// wireRoom reports whether a packet of the class may be given to the wire. What
// data leave to control in a queue that others fill, the others take: there data
// compete for every place.
func (p *port) wireRoom(free int, c Class) bool {
	spare, most := 0, p.ahead.n
	switch {
	case c == Control:
		most += p.reserve()
	case !p.shared(free):
		spare = p.reserve()
	}
	if free <= spare {
		return false
	}
	if p.mac[Data].waiting() >= most {
		p.ahead.limited = true
		return false
	}
	return true
}

// departed is called when packets have left the wire's queue.
func (p *port) departed(now vtime.Time, c *Config) {
	a, waiting := &p.ahead, p.mac[Data].waiting()
	if !a.limited {
		return
	}
	a.limited = false
	if waiting == 0 {
		a.n = min(2*a.n, mostAhead)
		a.slack, a.since = mostAhead, now
		return
	}
	if a.slack = min(a.slack, waiting); now.Sub(a.since) >= aheadHold {
		a.n = max(a.n-(a.slack-1), p.leastAhead(c))
		a.slack, a.since = mostAhead, now
	}
}
