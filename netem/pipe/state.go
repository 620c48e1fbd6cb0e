package pipe

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Stats returns the counters up to the engine's now.
func (p *Pipe) Stats() Stats {
	now := p.eng.Now()
	p.account(now)
	s := p.stats
	s.BusyTime += p.inService(now)
	s.Queued, s.QueuedBytes = p.queue.n, p.queueBytes
	return s
}

// ResetStats sets the counters to zero (the end of a warm-up). Packets in the
// queue or on the way are then delivered without having entered, and MaxQueued
// begins with what waits now.
func (p *Pipe) ResetStats() {
	now := p.eng.Now()
	p.account(now)
	p.stats = Stats{MaxQueued: p.queue.n, BusyTime: -p.inService(now)}
}

// inService is how long the present transmission has lasted: BusyTime counts it
// at its end.
func (p *Pipe) inService(now vtime.Time) vtime.Duration {
	if s := &p.server; s.trace == nil && s.serving && s.event != 0 {
		return now.Sub(s.since)
	}
	return 0
}

// Unlimited is what Room returns where no limit applies.
const Unlimited = math.MaxInt32

// Room returns how many packets of n bytes Send would not refuse for a full
// queue now; none where the sender is switched off.
func (p *Pipe) Room(n vtime.Bytes) int {
	if p.off[sender] {
		return 0
	}
	room := Unlimited
	if p.server.unlimited() && p.Up() && p.queue.n == 0 {
		return room
	}
	if q := p.cfg.Queue.Packets; q > 0 {
		room = max(0, q-p.queue.n)
	}
	if q := p.cfg.Queue.Bytes; q > 0 && n > 0 {
		room = min(room, int(max(0, q-p.queueBytes)/n))
	}
	return room
}

// Up reports whether the link is up: its schedule says so, and the nodes at both
// ends are on.
func (p *Pipe) Up() bool { return p.up && p.off == [2]bool{} }
