//go:build linux

package sock

import (
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// drainPace tells a source that keeps a queue full when to look at it again:
// when half of it can have drained at the rate of the last departures. A
// radio's queue of 30 frames lasts 8 ms at 54 Mb/s in a burst without
// acknowledgements; a pipe's queue lasts as long as its rate and length have it.
type drainPace struct {
	board transport.Board
	q     int

	left uint32 // the counter at the last look
	at   vtime.Time
	seen bool
	rate float64 // departures per nanosecond; 0: none known
}

// The shortest pause is what a sleeping process can keep, the longest one what
// suits a radio.
const (
	pauseLeast = 200 * vtime.Microsecond
	pauseMost  = 2 * vtime.Millisecond
)

// pause returns how long the queue, filled just now, may be left alone.
func (p *drainPace) pause(now vtime.Time) vtime.Duration {
	s := p.board.State(p.q)
	if s.Limit >= board.Unlimited {
		return runPause // nothing fills it
	}
	if d := now.Sub(p.at); p.seen && d > 0 {
		// The fastest that was seen lately: a pause that is too long leaves the
		// link idle, one that is too short costs a look.
		p.rate = max(float64(s.Left-p.left)/float64(d), 0.9*p.rate)
	}
	p.left, p.at, p.seen = s.Left, now, true
	if p.rate == 0 {
		return runPause
	}
	half := float64(max(1, s.Limit/2)) / p.rate
	return min(max(vtime.Duration(min(half, float64(pauseMost))), pauseLeast), pauseMost)
}
