//go:build linux

package daemon

import (
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// sample observes the flow at this node; ok is false before its start.
func (f *flow) sample(now vtime.Time) (proto.Sample, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sched.Clock == nil || now < f.order.Start || f.machine == nil && f.side != proto.Relay {
		return proto.Sample{}, false
	}
	return f.sampleLocked(now), true
}

func (f *flow) sampleLocked(now vtime.Time) proto.Sample {
	s := proto.Sample{Flow: f.order.ID, Side: f.side, T: now}
	stats := f.stats()
	if f.side == proto.Destination {
		s.Delivered, s.BlocksDone = f.ends.meter.Total(), int64(stats.Delivered)
		return s
	}
	f.tcp(&s)
	s.BlocksDone = int64(stats.Forwarded)
	if f.machine != nil {
		bundles, bytes, _ := f.machine.Held()
		s.BlocksHeld, s.Held = int64(bundles), bytes
	}
	return s
}

// keepLast keeps the state at the end of the flow. mu is held.
func (f *flow) keepLast(now vtime.Time) {
	if f.result.Last == nil && f.sched.Clock != nil && f.ends.f != nil {
		last := f.sampleLocked(now)
		f.result.Last = &last
	}
}

// messages appends what became of messages since the last call, until to has the
// length most.
func (f *flow) messages(to []proto.Message, most int) []proto.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(to) >= most {
		return to
	}
	if f.ends.receipts != nil {
		for r := range f.ends.receipts.Take() {
			if to = append(to, proto.Message{Flow: f.order.ID, Receipt: r}); len(to) >= most {
				return to
			}
		}
	}
	if f.ends.app != nil && f.order.Peer != nil {
		// The client tells of the pages that it got: messages of the other flow.
		for r := range f.ends.app.Receipts() {
			if to = append(to, proto.Message{Flow: *f.order.Peer, Receipt: r}); len(to) >= most {
				return to
			}
		}
	}
	return to
}

// halt ends the measurement; later data do not count.
func (f *flow) halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sched.Clock == nil {
		if f.listener != nil {
			_ = f.listener.Close() // fails only when it is closed already
		}
		return
	}
	if f.halted == 0 {
		f.halted = f.sched.Clock.Now()
		end := vtime.Min(f.stop, f.halted)
		if f.ends.receipts != nil {
			f.ends.receipts.Close(end)
		}
		if f.ends.app != nil {
			f.ends.app.Close(end)
		}
	}
	f.hangUp(f.halted)
	f.poke()
}

// outcome is the node's account of the flow, after halt.
func (f *flow) outcome() proto.FlowResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, stats := f.result, f.stats()
	stats.Each(func(name string, v uint64) {
		if v > 0 {
			r.Counters = append(r.Counters, proto.Counter{Name: name, Delta: int64(v)})
		}
	})
	switch f.side {
	case proto.Source:
		if r.Blocks = int64(stats.Forwarded); f.ends.app != nil {
			r.Total = f.ends.app.Taken()
		}
		if f.finished > 0 {
			r.Finished, r.FinishedAt = true, f.finished
		}
	case proto.Relay:
		r.Blocks, r.MaxHeld = int64(stats.Forwarded), f.held()
	case proto.Destination:
		r.Blocks = int64(stats.Delivered)
		if e := &f.ends; e.meter != nil {
			r.Bytes, r.Total = e.meter.Measured(), e.meter.Total()
			// Every bundle was counted at its moment, so the interval is exact, unless the
			// run was stopped before its end.
			r.MeasuredFrom, r.MeasuredTo = e.from, vtime.Max(e.from, vtime.Min(e.to, f.halted))
			r.Finished, r.FinishedAt = e.whole > 0, e.whole
		}
	}
	return r
}

// tcp fills a sample with what the connection to the next hop tells, and those
// before it. mu is held.
func (f *flow) tcp(s *proto.Sample) {
	if f.down != nil {
		// An ended connection leaves the fields at 0.
		_ = sock.OnConn(f.down.conn, func(fd int) error { return probe.TCPInfo(fd, s) })
	}
	sum(s, &f.ended)
}

// sum adds the counters of earlier connections.
func sum(s, o *proto.Sample) {
	s.Sent, s.Retrans, s.Acked = s.Sent+o.Sent, s.Retrans+o.Retrans, s.Acked+o.Acked
	s.RetransPackets += o.RetransPackets
	s.DeliveredPackets += o.DeliveredPackets
	s.Timeouts += o.Timeouts
}
