package pipe

import "github.com/hopbed/hopbed/netem/vtime"

// Expecter is a Sink that wants to know beforehand when it may be called, so
// that a live driver can sleep until then. No call of Deliver, nor of Left if
// the sink is a Leaver, comes before the earliest time given to Expect that has
// not passed, unless a Send or an Apply brings it about. The times are lower
// bounds: at some of them nothing happens.
type Expecter interface{ Expect(at vtime.Time) }

// expectService announces what the end of a service makes visible: the
// departure to a Leaver; otherwise the delivery, a propagation delay later.
// Packets that are served after it arrive later still.
func (p *Pipe) expectService(at vtime.Time) {
	if p.expect == nil {
		return
	}
	if p.left == nil && p.cfg.Jitter.Distribution == Constant {
		at = at.Add(p.cfg.Delay)
	}
	p.expect.Expect(at)
}

// Queued returns how many packets wait for the link, the one in service
// included.
func (p *Pipe) Queued() int { return p.queue.n }
