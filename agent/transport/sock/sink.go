//go:build linux

package sock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Sink is the receiving end of a stream flow. It verifies every byte and
// counts it at the moment at which it was read.
type Sink struct {
	node *transport.Node
	flow proto.Flow
	opt  Options

	mu      sync.Mutex
	meter   *workload.Meter
	account *workload.Receipts
	peer    *Source    // of the other flow of an exchange, which begins at this node
	whole   vtime.Time // when all of a flow that ends was there; 0 = not yet
	sched   transport.Schedule
	stop    vtime.Time
	from    vtime.Time // the flow's part of the measured interval, [from, to)
	to      vtime.Time
	conn    *net.TCPConn
	ended   bool // for good: finished or failed
	halted  vtime.Time
	result  proto.FlowResult
	pattern *workload.Pattern
}

// NewSink returns the sink of a flow.
func NewSink(n *transport.Node, f proto.Flow, opt Options) *Sink {
	return &Sink{node: n, flow: f, opt: opt, result: proto.FlowResult{Flow: f.ID, Side: proto.Destination}, pattern: workload.NewPattern(f.ID)}
}

// Begin gives the sink the schedule; connections that come before it wait in
// the listener.
func (s *Sink) Begin(sched transport.Schedule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sched, s.stop = sched, sched.FlowStop(&s.flow)
	account, err := workload.NewReceipts(s.flow.Workload, s.flow.Start, s.stop)
	if err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: err.Error()}
	}
	s.account = account
	s.from, s.to = s.flow.Measured(sched.Warmup, sched.End)
	s.meter = workload.NewMeter(s.from, s.to, s.flow.Workload.Total())
	return nil
}

// Receive reads the flow from a connection until the flow ends, the connection
// ends or ctx ends. A connection that comes while another one has delivered
// data is refused: a stream has one connection.
func (s *Sink) Receive(ctx context.Context, conn *net.TCPConn) {
	if err := s.adopt(conn); err != nil {
		Abort(conn)
		if e, ok := errors.AsType[*proto.Error](err); ok && e.Code == proto.CodeNotApplied {
			s.end(conn, err, false)
			return
		}
		s.node.Log("warn", fmt.Sprintf("flow %d: a connection from %v was refused: %v", s.flow.ID, conn.RemoteAddr(), err))
		return
	}
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer cancel()
	s.end(conn, s.read(conn), ctx.Err() != nil)
}

// adopt makes the connection the flow's one.
func (s *Sink) adopt(conn *net.TCPConn) error {
	var cc string
	err := OnConn(conn, func(fd int) (err error) {
		if err := s.opt.Apply(fd); err != nil {
			return err
		}
		cc, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errors.New("the flow has ended")
	}
	if s.conn != nil {
		if s.meter.Total() > 0 {
			return errors.New("the flow has a connection")
		}
		Abort(s.conn) // the source gave up on it and tried again
	}
	now := s.sched.Clock.Now()
	s.conn, s.result.CC, s.result.Established = conn, cc, now
	s.result.Attempts++
	return conn.SetReadDeadline(Wall(s.sched.Clock, s.stop))
}

// readBuffer bounds one read, in bytes. A read never waits to fill it.
const readBuffer = 64 << 10

func (s *Sink) read(conn *net.TCPConn) error {
	buf := make([]byte, readBuffer)
	clock := s.sched.Clock
	window := windowHolder{opt: s.opt}
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if bad := s.count(clock.Now(), buf[:n]); bad != nil {
				return bad
			}
			if failed := window.holdWindow(conn, n); failed != nil && err == nil {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return s.complete()
		case err != nil:
			return err
		}
	}
}

// count verifies and counts one piece of the stream.
func (s *Sink) count(now vtime.Time, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := int64(s.meter.Total())
	if wrong := s.pattern.Check(at, data); wrong >= 0 {
		s.result.Corrupt += int64(len(data) - wrong)
		return &proto.Error{Code: proto.CodeCorrupt, What: fmt.Sprintf("flow %d", s.flow.ID),
			Detail: fmt.Sprintf("byte %d of the stream is not what the source sent", at+int64(wrong))}
	}
	s.meter.Add(now, vtime.Bytes(len(data)))
	s.account.Add(now, vtime.Bytes(len(data)))
	if s.whole == 0 && (s.account.Complete() || s.meter.Finished() == now) {
		s.whole = now
	}
	if s.peer != nil {
		s.peer.Heard(now, s.account.Prefix())
	}
	return nil
}

// Messages appends what became of messages since the last call, until to has the
// length most.
func (s *Sink) Messages(to []proto.Message, most int) []proto.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil {
		return to
	}
	return report(to, most, s.flow.ID, s.account.Take())
}

// complete judges the end of the stream.
func (s *Sink) complete() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	total, size := s.meter.Total(), s.flow.Workload.Total()
	if !s.flow.Workload.Ends() || s.whole == 0 || size > 0 && total != size {
		return fmt.Errorf("the stream ended after %v", total)
	}
	s.result.Finished, s.result.FinishedAt = true, s.whole
	s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Destination, Kind: proto.Finished, T: s.result.FinishedAt})
	return nil
}

// end closes the connection and records how the flow ended, unless another
// connection has taken over.
func (s *Sink) end(conn *net.TCPConn, err error, ordered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn && s.conn != nil {
		return
	}
	now := s.sched.Clock.Now()
	s.conn = nil
	if s.result.Finished {
		_ = conn.Close() // everything is read; the source waits for this
	} else {
		Abort(conn)
	}
	// Before the first byte the source may try again.
	if failure := Judge(s.flow.ID, now, s.stop, ordered, err); failure != nil && (s.meter.Total() > 0 || failure.Code != proto.CodeFlow) {
		s.result.Error, s.ended = failure, true
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Destination, Kind: proto.Failed, T: now, Error: failure})
	}
	s.ended = s.ended || s.result.Finished
}

// Halt ends the measurement; later data would not count.
func (s *Sink) Halt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meter != nil && s.halted == 0 {
		s.halted = s.sched.Clock.Now()
		s.account.Close(vtime.Min(s.stop, s.halted))
	}
}

// Sample returns the delivered bytes so far; ok is false before Begin.
func (s *Sink) Sample(now vtime.Time) (sample proto.Sample, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meter == nil || now < s.flow.Start {
		return proto.Sample{}, false
	}
	return proto.Sample{Flow: s.flow.ID, Side: proto.Destination, T: now, Delivered: s.meter.Total()}, true
}

// Result returns the sink's account, after Halt.
func (s *Sink) Result() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.result
	if s.meter == nil {
		return r
	}
	r.Bytes, r.Total = s.meter.Measured(), s.meter.Total()
	// The counter was read with every piece, so the interval is exact, unless
	// the run was stopped before its end.
	r.MeasuredFrom, r.MeasuredTo = s.from, vtime.Max(s.from, vtime.Min(s.to, s.halted))
	r.Last = &proto.Sample{Flow: s.flow.ID, Side: proto.Destination, T: s.halted, Delivered: r.Total}
	return r
}
