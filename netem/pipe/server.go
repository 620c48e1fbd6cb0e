package pipe

import (
	"math"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// server is the link's transmitter: it serves the head of the queue at a rate
// or by the opportunities of a trace.
type server struct {
	rate  vtime.BitRate
	trace *Trace
	event des.EventID // pending service event; 0 = none

	// Rate: the packet in service and what is left of it, in bit·ns/s, so
	// that a change of rate in mid-packet is exact.
	serving bool
	left    int64
	since   vtime.Time

	// Trace: the next opportunity and the bytes still to go of the head.
	next      int64 // opportunity number, counted on through repetitions
	remaining vtime.Bytes
	offset    vtime.Duration
	epoch     vtime.Time
}

func (s *server) init(cfg *Config) {
	s.rate, s.trace = cfg.Rate, cfg.Trace
	if s.trace != nil {
		s.offset, s.epoch = cfg.TraceOffset, cfg.Epoch
		s.next = s.trace.first(s.offset)
	}
}

func (s *server) unlimited() bool { return s.trace == nil && s.rate == 0 }

const bitNanos = 8 * 1_000_000_000 // bit·ns/s per byte

// serve starts the service of the head if the link is idle and up.
func (p *Pipe) serve(now vtime.Time) {
	s := &p.server
	if s.event != 0 || !p.Up() || p.queue.n == 0 {
		return
	}
	switch {
	case s.trace != nil:
		if s.remaining == 0 {
			s.remaining = p.queue.head.Len + p.cfg.Overhead
		}
		s.next = max(s.next, s.trace.first(s.offset+now.Sub(s.epoch)))
		p.startService(s.trace.at(s.next).Add(s.epoch.Sub(vtime.Time(s.offset))))
	case s.rate == 0: // the limit was lifted
		s.serving = false
		for p.queue.n > 0 {
			p.leave(now)
		}
	default:
		if !s.serving {
			s.serving = true
			s.left = int64(p.queue.head.Len+p.cfg.Overhead) * bitNanos
		}
		s.since = now
		p.startService(now.Add(timeFor(s.left, s.rate)))
	}
}

func (p *Pipe) startService(at vtime.Time) {
	p.server.event = p.eng.Schedule(at, p, evService)
	p.expectService(at)
}

// timeFor is the time for left bit·ns/s at the rate, rounded up to the
// nanosecond.
func timeFor(left int64, rate vtime.BitRate) vtime.Duration {
	d := left / int64(rate)
	if left%int64(rate) != 0 {
		d++
	}
	return vtime.Duration(d)
}

// served is the end of a packet's transmission, or one opportunity.
func (p *Pipe) served(now vtime.Time) {
	s := &p.server
	if s.trace == nil {
		p.stats.BusyTime += now.Sub(s.since)
		s.serving = false
		p.leave(now)
		p.serve(now)
		return
	}
	s.next++
	budget := opportunity
	for budget > 0 && p.queue.n > 0 {
		if s.remaining == 0 {
			s.remaining = p.queue.head.Len + p.cfg.Overhead
		}
		n := min(budget, s.remaining)
		budget -= n
		if s.remaining -= n; s.remaining == 0 {
			p.leave(now)
		}
	}
	p.serve(now)
}

// pause stops the service and notes what is left of the packet.
func (p *Pipe) pause(now vtime.Time) {
	s := &p.server
	if s.event == 0 {
		return
	}
	p.eng.Cancel(s.event)
	s.event = 0
	if s.trace == nil && s.serving {
		d := now.Sub(s.since)
		p.stats.BusyTime += d
		done := int64(math.MaxInt64)
		if int64(d) <= math.MaxInt64/int64(s.rate) {
			done = int64(d) * int64(s.rate)
		}
		s.left = max(s.left-done, 0)
	}
}

// scheduleChange arranges for the next entry of the schedule.
func (p *Pipe) scheduleChange() {
	if p.change == len(p.cfg.Schedule) {
		return
	}
	at := p.cfg.Schedule[p.change].At.Add(vtime.Duration(p.cfg.Epoch))
	at = max(at, p.eng.Now())
	p.eng.Schedule(at, p, evChange)
	if p.expect != nil {
		p.expect.Expect(at)
	}
}

func (p *Pipe) applyChange(now vtime.Time) {
	ch := p.cfg.Schedule[p.change]
	p.change++
	p.Apply(ch)
	p.scheduleChange()
}

// Apply changes the pipe now; At is ignored. The change must be valid in the
// sense of Config.Validate. A shorter queue keeps what is in it.
func (p *Pipe) Apply(ch Change) {
	now := p.eng.Now()
	p.pause(now)
	if ch.Up != nil {
		p.up = *ch.Up
	}
	p.cfg = p.cfg.Apply(&ch)
	p.server.rate = p.cfg.Rate
	if ch.Loss != nil {
		p.bad = p.bad && ch.Loss.ToBad > 0
	}
	p.serve(now)
}
