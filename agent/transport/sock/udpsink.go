//go:build linux

package sock

import (
	"context"
	"fmt"
	"sync"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// udpSink receives one flow.
type udpSink struct {
	node    *transport.Node
	flow    proto.Flow
	sock    *udpSocket
	waiter  *waiter
	pattern *workload.Pattern

	mu      sync.Mutex
	sched   transport.Schedule
	stop    vtime.Time
	meter   *workload.Meter
	account *workload.Receipts
	seen    window
	halted  vtime.Time
	result  proto.FlowResult
}

func (s *udpSink) begin(sched transport.Schedule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sched, s.stop = sched, sched.FlowStop(&s.flow)
	account, err := workload.NewReceipts(s.flow.Workload, s.flow.Start, s.stop)
	if err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: err.Error()}
	}
	s.account = account
	from, to := s.flow.Measured(sched.Warmup, sched.End)
	s.meter = workload.NewMeter(from, to, s.flow.Workload.Total())
	s.result = proto.FlowResult{Flow: s.flow.ID, Side: proto.Destination, MeasuredFrom: from, MeasuredTo: to}
	return nil
}

// grace is how long a sink listens after the flow's stop for what is still
// under way; the meter's interval ends on time all the same.
const grace = 500 * vtime.Millisecond

func (s *udpSink) run(ctx context.Context) {
	clock := s.sched.Clock
	until := vtime.Max(s.stop.Add(grace), s.sched.End)
	defer func() {
		s.mu.Lock()
		s.halted = clock.Now()
		s.account.Close(vtime.Min(s.stop, s.halted))
		s.mu.Unlock()
	}()
	for ctx.Err() == nil {
		now := clock.Now()
		if now >= until {
			return
		}
		n, err := s.sock.receive(func(from [4]byte, data []byte) { s.take(now, from, data) })
		if err == nil || transient(err) {
			if n == batch {
				continue
			}
			err = s.waiter.wait(until.Sub(now))
		}
		if err != nil {
			s.fail(now, &proto.Error{Code: proto.CodeSystem, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: "receive: " + err.Error()})
			return
		}
	}
}

func (s *udpSink) fail(now vtime.Time, e *proto.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.Error == nil {
		s.result.Error = e
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Destination, Kind: proto.Failed, T: now, Error: e})
	}
}

// take counts one datagram.
func (s *udpSink) take(now vtime.Time, from [4]byte, data []byte) {
	if from != s.flow.SrcAddr.As4() {
		return // a stranger's
	}
	h, body, ok := parseDatagram(&s.flow, data)
	if !ok {
		return // a stranger's
	}
	if err := s.count(now, h, body, len(data)); err != nil {
		s.fail(now, err)
	}
}

// count verifies and counts one datagram of the flow.
func (s *udpSink) count(now vtime.Time, h datagramHead, body []byte, length int) *proto.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq, carried := h.seq, vtime.Bytes(length)
	right := s.pattern.Check(seq*int64(datagram(&s.flow)), body) < 0
	if s.flow.Workload.HasMessages() && right {
		// A message that is complete, or given up, has no size any more: this is a
		// repetition, or too late.
		if size, open := s.account.Size(now, h.message); open {
			carried, right = h.carries(datagram(&s.flow)), size == h.size
		}
	}
	if !right {
		s.result.Corrupt++
		return &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: fmt.Sprintf("datagram %d is not what the source sent", seq)}
	}
	fresh, late := s.seen.add(seq)
	if !fresh {
		s.result.Duplicates++
		return nil
	}
	if late {
		s.result.Reordered++
	}
	s.result.Datagrams++
	if s.flow.Workload.HasMessages() && !s.account.AddPart(now, h.message, carried) {
		return nil
	}
	s.meter.Add(now, carried)
	if !s.result.Finished && s.flow.Workload.Ends() && (s.meter.Finished() == now || s.account.Complete()) {
		s.result.Finished, s.result.FinishedAt = true, now
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Destination, Kind: proto.Finished, T: now})
	}
	return nil
}

// messages appends what became of messages, until to has the length most.
func (s *udpSink) messages(to []proto.Message, most int) []proto.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil {
		return to
	}
	return report(to, most, s.flow.ID, s.account.Take())
}

func (s *udpSink) sample(now vtime.Time) proto.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.Sample{Flow: s.flow.ID, Side: proto.Destination, T: now, Delivered: s.meter.Total(),
		Datagrams: s.result.Datagrams, DatagramsLost: s.seen.next - s.result.Datagrams, Duplicates: s.result.Duplicates, Reordered: s.result.Reordered}
}

func (s *udpSink) outcome() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.result
	if s.meter == nil {
		return proto.FlowResult{Flow: s.flow.ID, Side: proto.Destination}
	}
	r.Bytes, r.Total = s.meter.Measured(), s.meter.Total()
	r.MeasuredTo = vtime.Max(r.MeasuredFrom, vtime.Min(r.MeasuredTo, s.halted))
	r.Last = &proto.Sample{Flow: s.flow.ID, Side: proto.Destination, T: s.halted, Delivered: r.Total}
	return r
}

// window tells new sequence numbers from repeated ones. What is more than its
// length behind the newest counts as repeated: the network would have to
// reorder by thousands of datagrams.
type window struct {
	next int64 // one above the highest seen
	bits [4096 / 64]uint64
}

func (w *window) add(seq int64) (fresh, late bool) {
	const length = int64(len(w.bits) * 64)
	switch {
	case seq < 0 || seq < w.next-length:
		return false, true
	case seq >= w.next:
		for i := max(w.next, seq+1-length); i < seq; i++ {
			w.clear(i)
		}
		w.next = seq + 1
		w.set(seq)
		return true, false
	case w.has(seq):
		return false, true
	}
	w.set(seq)
	return true, true
}

func (w *window) at(seq int64) (*uint64, uint64) {
	i := uint64(seq) % uint64(len(w.bits)*64)
	return &w.bits[i/64], 1 << (i % 64)
}
func (w *window) set(seq int64)      { p, b := w.at(seq); *p |= b }
func (w *window) clear(seq int64)    { p, b := w.at(seq); *p &^= b }
func (w *window) has(seq int64) bool { p, b := w.at(seq); return *p&b != 0 }
