package workload

import "github.com/hopbed/hopbed/netem/vtime"

// message is one message of a schedule. Ready is vtime.Never where no schedule
// knows it (web).
type message struct {
	ready vtime.Time
	size  vtime.Bytes
}

// schedule makes the messages of a flow one after the other, in the order in
// which they become ready; ok is false at its end.
type schedule interface {
	next() (m message, ok bool)
}

// newSchedule returns the schedule of a valid spec with messages, for a flow
// that runs in [start, stop).
func newSchedule(spec Spec, start, stop vtime.Time) schedule {
	switch spec.Kind {
	case Poisson:
		return newPoisson(spec, start, stop)
	case Trace:
		return &trace{left: spec.Transfers, start: start, stop: stop}
	case VoIP:
		return newVoIP(spec, start, stop)
	case Web:
		if spec.Role == Requests {
			return requests{spec.Web.Request}
		}
		return responses{newPages(spec)}
	}
	panic("workload: " + string(spec.Kind) + " has no messages")
}

// cursor is a place in a schedule: at the message cur, unless that has ended.
type cursor struct {
	from  schedule
	cur   message
	ok    bool
	k     int         // number of cur
	begin vtime.Bytes // where cur begins in the flow's stream
	piece int         // number of the block that cur begins with
}

func newCursor(spec Spec, start, stop vtime.Time) cursor {
	c := cursor{from: newSchedule(spec, start, stop)}
	c.cur, c.ok = c.from.next()
	return c
}

// step goes to the next message, counting blocks of at most block bytes where
// block is not 0.
func (c *cursor) step(block vtime.Bytes) {
	c.begin += c.cur.size
	if block > 0 {
		c.piece += int((c.cur.size + block - 1) / block)
	}
	c.k++
	c.cur, c.ok = c.from.next()
}
