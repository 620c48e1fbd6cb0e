//go:build linux

package sock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// datagramHeader is the part of a datagram that is not pattern: magic and
// version, flow, sequence number, big-endian.
const datagramHeader = 16

// datagramMagic is "hbU" and the version 1.
const datagramMagic = 0x68625501

// udpSource sends one flow.
type udpSource struct {
	node *transport.Node
	flow proto.Flow
	sock *udpSocket
	port uint16
	// window is the board's queue, for a source that saturates it.
	window *board.Window
	pace   drainPace
	// The part of interval phaseOf after which its datagram is due.
	random  *rand.Rand
	phase   float64
	phaseOf int64

	mu      sync.Mutex
	app     *workload.Source
	seq     int64 // datagrams sent
	refused int64 // not taken by the kernel (full buffer or device queue)
	failure *proto.Error
}

// Limits of a source without a queue to look at: what the kernel does not push
// back is sent in runs with a pause, so that it never spins.
const (
	runLength = 64
	runPause  = vtime.Millisecond
)

func (s *udpSource) run(ctx context.Context, sched transport.Schedule) {
	clock := sched.Clock
	if !SleepUntil(ctx, clock, s.flow.Start) {
		return
	}
	stop := sched.FlowStop(&s.flow)
	size := datagram(&s.flow)
	buf := make([]byte, size)
	pattern := workload.NewPattern(s.flow.ID)
	if s.node.Board != nil && s.flow.Options.Rate == 0 {
		port := s.node.Ports[s.node.NextHop[s.flow.Dst]]
		s.pace = drainPace{board: s.node.Board, q: transport.Queue(port, transport.ACOf(s.flow.Options.DSCP))}
		s.window = board.NewWindow(s.node.Board, s.pace.q)
	}
	// The schedule counts from the start as ordered, however late it was seen.
	begun := s.flow.Start
	for ctx.Err() == nil {
		now := clock.Now()
		if now >= stop || s.app.Finished() {
			return
		}
		for n := min(s.room(now), s.due(now, begun, size), runLength); n > 0 && !s.app.Finished(); n-- {
			if !s.send(buf, pattern, now) {
				break
			}
		}
		if !SleepUntil(ctx, clock, vtime.Min(stop, s.next(now, begun, size))) {
			return
		}
	}
}

// due is the number of datagrams that the flow's rate is behind.
func (s *udpSource) due(now, begun vtime.Time, size int) int {
	rate := s.flow.Options.Rate
	if rate == 0 {
		return runLength
	}
	interval := rate.TxTime(vtime.Bytes(size))
	s.mu.Lock()
	defer s.mu.Unlock()
	k := int64(now.Sub(begun) / interval)
	if now >= s.moment(begun, interval, k) {
		k++
	}
	// Those that the kernel refused were due, too: a constant rate does not
	// make up for them.
	return int(k - s.seq - s.refused)
}

// moment is when datagram k of a constant rate is due: at a random moment of the
// k-th interval. Flows of one rate would stay in phase otherwise, and one of
// them would meet every full queue (Floyd and Jacobson, On Traffic Phase Effects
// in Packet-Switched Gateways, 1992).
func (s *udpSource) moment(begun vtime.Time, interval vtime.Duration, k int64) vtime.Time {
	if k != s.phaseOf {
		s.phase, s.phaseOf = s.random.Float64(), k
	}
	return begun.Add(vtime.Duration(k)*interval + vtime.Duration(s.phase*float64(interval)))
}

// next is when the source has something to do again.
func (s *udpSource) next(now, begun vtime.Time, size int) vtime.Time {
	if rate := s.flow.Options.Rate; rate > 0 {
		interval := rate.TxTime(vtime.Bytes(size))
		s.mu.Lock()
		defer s.mu.Unlock()
		// Sleeping is accurate to about a millisecond, so short intervals are
		// sent several at once.
		return vtime.Max(s.moment(begun, interval, s.seq+s.refused), now.Add(vtime.Millisecond))
	}
	if s.window != nil {
		return now.Add(s.pace.pause(now))
	}
	return now.Add(runPause)
}

// room is the free space of the queue that the flow's datagrams go to. A
// constant rate does not look.
func (s *udpSource) room(now vtime.Time) int {
	if s.window == nil {
		return runLength
	}
	return s.window.Free(now)
}

// send sends the next datagram; false when the kernel takes none now.
func (s *udpSource) send(buf []byte, pattern *workload.Pattern, now vtime.Time) bool {
	binary.BigEndian.PutUint32(buf, datagramMagic)
	binary.BigEndian.PutUint32(buf[4:], uint32(s.flow.ID))
	binary.BigEndian.PutUint64(buf[8:], uint64(s.seq))
	size := int(min(vtime.Bytes(len(buf)), max(datagramHeader, s.app.Ready(now))))
	copy(buf[datagramHeader:size], pattern.At(s.seq*int64(len(buf)), size-datagramHeader))
	if s.window != nil {
		// Before, because the emulator may count the frame at once.
		s.window.Sent(now, 1)
	}
	err := s.sock.send(s.flow.DstAddr.As4(), s.port, s.flow.Options.DSCP<<2, buf[:size])
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.seq++
		s.app.Take(now, min(vtime.Bytes(size), s.app.Ready(now)))
		return true
	case s.window != nil:
		s.window.Sent(now, -1)
	}
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS), transient(err):
		if s.flow.Options.Rate > 0 {
			s.refused++
		}
	case s.failure == nil:
		s.failure = &proto.Error{Code: proto.CodeFlow, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: "send: " + err.Error()}
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Source, Kind: proto.Failed, T: now, Error: s.failure})
	}
	return false
}

func (s *udpSource) sample(now vtime.Time) proto.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.Sample{Flow: s.flow.ID, Side: proto.Source, T: now, Sent: s.app.Taken()}
}

func (s *udpSource) outcome() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.FlowResult{Flow: s.flow.ID, Side: proto.Source, Total: s.app.Taken(), DatagramsSent: s.seq, Finished: s.app.Finished(), Error: s.failure}
}

// udpSink receives one flow.
type udpSink struct {
	node    *transport.Node
	flow    proto.Flow
	sock    *udpSocket
	waiter  *waiter
	pattern *workload.Pattern

	mu     sync.Mutex
	sched  transport.Schedule
	stop   vtime.Time
	meter  *workload.Meter
	seen   window
	halted vtime.Time
	result proto.FlowResult
}

func (s *udpSink) begin(sched transport.Schedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sched, s.stop = sched, sched.FlowStop(&s.flow)
	from, to := s.flow.Measured(sched.Warmup, sched.End)
	s.meter = workload.NewMeter(from, to, s.flow.Workload.Total())
	s.result = proto.FlowResult{Flow: s.flow.ID, Side: proto.Destination, MeasuredFrom: from, MeasuredTo: to}
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
	if from != s.flow.SrcAddr.As4() || len(data) < datagramHeader || binary.BigEndian.Uint32(data) != datagramMagic || binary.BigEndian.Uint32(data[4:]) != uint32(s.flow.ID) {
		return // a stranger's
	}
	seq := int64(binary.BigEndian.Uint64(data[8:]))
	if s.pattern.Check(seq*int64(datagram(&s.flow)), data[datagramHeader:]) >= 0 {
		s.mu.Lock()
		s.result.Corrupt++
		s.mu.Unlock()
		s.fail(now, &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: fmt.Sprintf("datagram %d is not what the source sent", seq)})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh, late := s.seen.add(seq)
	if !fresh {
		s.result.Duplicates++
		return
	}
	if late {
		s.result.Reordered++
	}
	s.result.Datagrams++
	s.meter.Add(now, vtime.Bytes(len(data)))
	if at := s.meter.Finished(); at == now && !s.result.Finished {
		s.result.Finished, s.result.FinishedAt = true, at
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Destination, Kind: proto.Finished, T: at})
	}
}

func (s *udpSink) sample(now vtime.Time) proto.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.Sample{Flow: s.flow.ID, Side: proto.Destination, T: now, Delivered: s.meter.Total()}
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
