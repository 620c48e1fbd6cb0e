//go:build linux

package sock

import (
	"context"
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
	stop    vtime.Time
	seq     int64 // datagrams sent
	refused int64 // not taken by the kernel (full buffer or device queue) …
	skipped int64 // … of which a constant rate does not make up for
	failure *proto.Error
}

// Limits of a source without a queue to look at: what the kernel does not push
// back is sent in runs with a pause, so that it never spins.
const (
	runLength = 64
	runPause  = vtime.Millisecond
)

// begin gives the source the schedule.
func (s *udpSource) begin(sched transport.Schedule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = sched.FlowStop(&s.flow)
	app, err := workload.NewSource(s.flow.Workload, s.flow.Start, s.stop)
	if err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: err.Error()}
	}
	s.app = app
	return nil
}

func (s *udpSource) run(ctx context.Context, sched transport.Schedule) {
	clock := sched.Clock
	if !SleepUntil(ctx, clock, s.flow.Start) {
		return
	}
	stop := s.stop
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
		for n := min(s.room(now), s.due(now, begun, size), runLength); n > 0 && s.app.Ready(now) > 0; n-- {
			if !s.send(buf, pattern, now) {
				break
			}
		}
		wait := SleepUntil
		if s.flow.Workload.HasMessages() {
			wait = sleepPrecisely
		}
		if !wait(ctx, clock, vtime.Min(stop, s.next(now, begun, size))) {
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
	return int(k - s.seq - s.skipped)
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
		return vtime.Max(s.moment(begun, interval, s.seq+s.skipped), now.Add(vtime.Millisecond))
	}
	if s.app.Ready(now) == 0 {
		return s.app.Next(now)
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
	size, carried := s.fill(buf, pattern, now)
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
		s.app.Take(now, carried)
		return true
	case s.window != nil:
		s.window.Sent(now, -1)
	}
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS), transient(err):
		s.refused++
		if s.flow.Options.Rate > 0 {
			s.skipped++
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
	return proto.Sample{Flow: s.flow.ID, Side: proto.Source, T: now, Sent: s.app.Taken(), DatagramsSent: s.seq, DatagramsRefused: s.refused}
}

func (s *udpSource) outcome() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.FlowResult{Flow: s.flow.ID, Side: proto.Source, Total: s.app.Taken(), DatagramsSent: s.seq, Finished: s.app.Finished(), Error: s.failure}
}
