//go:build linux

package sock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Source is the sending end of a stream flow over one TCP connection.
type Source struct {
	node     *transport.Node
	flow     proto.Flow
	opt      Options
	to       netip.AddrPort
	preamble []byte

	mu      sync.Mutex // guards what follows; Run writes it
	app     *workload.Source
	conn    *net.TCPConn
	started bool
	result  proto.FlowResult
}

// NewSource returns the source of a flow that connects to the given address
// and sends the preamble before its content. The flow's workload must be
// valid.
func NewSource(n *transport.Node, f proto.Flow, opt Options, to netip.AddrPort, preamble []byte) (*Source, error) {
	app, err := workload.NewSource(f.Workload)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", f.ID), Detail: err.Error()}
	}
	return &Source{node: n, flow: f, opt: opt, to: to, preamble: preamble, app: app,
		result: proto.FlowResult{Flow: f.ID, Side: proto.Source}}, nil
}

// Probe applies the options to a socket of its own, so that a congestion
// control that the kernel lacks is known before the run, and returns what the
// kernel took.
func (s *Source) Probe() (proto.FlowSetup, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return proto.FlowSetup{}, &proto.Error{Code: proto.CodeSystem, What: "socket", Detail: err.Error()}
	}
	defer unix.Close(fd)
	if err := s.opt.Apply(fd); err != nil {
		return proto.FlowSetup{}, err
	}
	return Setup(fd, s.flow.ID, proto.Source), nil
}

// Run sends from the flow's start until its stop, the end of the workload, an
// error or the end of ctx, whichever is first. It returns with the connection
// closed.
func (s *Source) Run(ctx context.Context, sched transport.Schedule) {
	if !sleepUntil(ctx, sched.Clock, s.flow.Start) {
		return
	}
	stop := sched.FlowStop(&s.flow)
	err := s.run(ctx, sched.Clock, stop)
	s.finish(sched.Clock.Now(), stop, ctx.Err() != nil, err)
}

func (s *Source) run(ctx context.Context, clock transport.Clock, stop vtime.Time) error {
	conn, err := s.connect(ctx, clock, stop)
	if err != nil {
		return err
	}
	deadline := wall(clock, stop)
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer cancel()
	if _, err := conn.Write(s.preamble); err != nil {
		return err
	}
	pattern := workload.NewPattern(s.flow.ID)
	for {
		// Only this goroutine takes from the application; mu is for readers.
		now := clock.Now()
		ready := s.app.Ready(now)
		if ready == 0 && s.app.Finished() {
			break
		}
		if ready == 0 {
			if !sleepUntil(ctx, clock, vtime.Min(s.app.Next(now), stop)) {
				return ctx.Err()
			}
			if clock.Now() >= stop {
				return os.ErrDeadlineExceeded
			}
			continue
		}
		piece := pattern.At(int64(s.app.Taken()), int(min(ready, workload.MaxChunk)))
		n, err := conn.Write(piece)
		s.mu.Lock()
		s.app.Take(clock.Now(), vtime.Bytes(n))
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	// The destination closes when it has everything.
	var b [1]byte
	switch _, err := conn.Read(b[:]); {
	case errors.Is(err, io.EOF):
		s.mu.Lock()
		s.result.Finished, s.result.FinishedAt = true, clock.Now()
		s.mu.Unlock()
		return nil
	case err != nil:
		return err
	}
	return errors.New("the destination sent data on a one-way flow")
}

// Pauses between attempts to connect.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 2 * time.Second
)

// connect tries until the connection stands. Lost SYNs are the kernel's
// business within an attempt (RFC 9293 §3.8.1); a refusal or an unreachable
// destination ends an attempt and is tried again.
func (s *Source) connect(ctx context.Context, clock transport.Clock, stop vtime.Time) (*net.TCPConn, error) {
	until := stop
	if w := s.flow.Options.ConnectWithin; w > 0 {
		until = vtime.Min(stop, s.flow.Start.Add(w))
	}
	d := net.Dialer{Control: s.opt.control, KeepAlive: -1, Deadline: wall(clock, until)}
	d.SetMultipathTCP(false)
	if s.flow.SrcAddr.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.flow.SrcAddr, 0))
	}
	var last error
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		s.mu.Lock()
		s.result.Attempts++
		s.mu.Unlock()
		c, err := d.DialContext(ctx, "tcp4", s.to.String())
		if err == nil {
			conn := c.(*net.TCPConn)
			if err := s.established(conn, clock.Now()); err != nil {
				abort(conn)
				return nil, err
			}
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		retry := errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, unix.EHOSTUNREACH) ||
			errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ECONNABORTED)
		if e, ok := errors.AsType[*proto.Error](err); ok {
			return nil, e
		}
		timedOut := errors.Is(err, os.ErrDeadlineExceeded) || clock.Now() >= until
		if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() && !errors.Is(err, unix.ETIMEDOUT) {
			timedOut = true
		}
		if retry {
			last = err
		}
		if timedOut || retry && clock.Now().Add(vtime.FromStd(pause)) >= until {
			e := &proto.Error{Code: proto.CodeTimeout, What: fmt.Sprintf("flow %d set-up", s.flow.ID),
				Detail: fmt.Sprintf("no connection from %v to %v between %v and %v", s.flow.SrcAddr, s.to, s.flow.Start, until)}
			if last != nil {
				e.Detail += "; the last attempt: " + last.Error()
			}
			return nil, e
		}
		if !retry {
			return nil, err
		}
		if !sleepUntil(ctx, clock, clock.Now().Add(vtime.FromStd(pause))) {
			return nil, ctx.Err()
		}
	}
}

func (s *Source) established(conn *net.TCPConn, now vtime.Time) error {
	var cc string
	err := OnConn(conn, func(fd int) (err error) {
		// Again, because the net package changes TCP_NODELAY after connect.
		if err := s.opt.Apply(fd); err != nil {
			return err
		}
		cc, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	s.mu.Lock()
	s.conn, s.started = conn, true
	s.result.Established, s.result.SetupTime, s.result.CC = now, now.Sub(s.flow.Start), cc
	s.mu.Unlock()
	if err == nil {
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Source, Kind: proto.Connected, T: now})
	}
	return err
}

// finish takes the last sample, ends the connection and judges the error.
func (s *Source) finish(now, stop vtime.Time, ordered bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		if last, ok := s.sampleLocked(now); ok {
			s.result.Last = &last
		}
		if s.result.Finished {
			s.conn.Close()
		} else {
			abort(s.conn)
		}
		s.conn = nil
	}
	s.result.Total = s.app.Taken()
	if s.result.Error = judge(s.flow.ID, now, stop, ordered, err); s.result.Error != nil {
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Source, Kind: proto.Failed, T: now, Error: s.result.Error})
	}
}

// judge decides whether the end of a connection is an error of the flow: not
// when the flow was stopped, by the schedule or by order.
func judge(flow int, now, stop vtime.Time, ordered bool, err error) *proto.Error {
	if err == nil || ordered {
		return nil
	}
	if e, ok := errors.AsType[*proto.Error](err); ok {
		return e
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || now >= stop.Add(-stopSlack) {
		return nil
	}
	return &proto.Error{Code: proto.CodeFlow, What: fmt.Sprintf("flow %d", flow), Detail: fmt.Sprintf("it ended at %v, %v before its stop: %v", now, stop.Sub(now), err)}
}

// abort closes a connection with a reset, so that nothing of it outlives the
// flow: neither unsent data nor a retransmission timer.
func abort(c *net.TCPConn) {
	// Both fail only when the connection is gone already.
	_ = c.SetLinger(0)
	_ = c.Close()
}

// Sample reads the connection; ok is false while there is none.
func (s *Source) Sample(now vtime.Time) (sample proto.Sample, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sampleLocked(now)
}

func (s *Source) sampleLocked(now vtime.Time) (proto.Sample, bool) {
	sample := proto.Sample{Flow: s.flow.ID, Side: proto.Source, T: now}
	if s.conn == nil {
		return sample, false
	}
	err := OnConn(s.conn, func(fd int) error { return probe.TCPInfo(fd, &sample) })
	return sample, err == nil
}

// Result returns the source's account; call it after Run has returned.
func (s *Source) Result() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}
