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
	"strings"
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
	over    int64 // the largest congestion window seen above the flow's cap
	result  proto.FlowResult

	// window bounds what the source sends beside the kernel; nil: nothing does.
	window *coopWindow

	heard chan struct{} // of one element: the peer flow brought something
}

// NewSource returns the source of a flow that connects to the given address
// and sends the preamble before its content. The flow's workload must be
// valid.
func NewSource(n *transport.Node, f proto.Flow, opt Options, to netip.AddrPort, preamble []byte) (*Source, error) {
	app, err := workload.NewSource(f.Workload, f.Start, vtime.Never) // Run knows the stop
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", f.ID), Detail: err.Error()}
	}
	return &Source{node: n, flow: f, opt: opt, to: to, preamble: preamble, app: app, heard: make(chan struct{}, 1),
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

// Begin gives the source the schedule. It comes before Run, and before the sink
// of a peer flow receives.
func (s *Source) Begin(sched transport.Schedule) error {
	app, err := workload.NewSource(s.flow.Workload, s.flow.Start, sched.FlowStop(&s.flow))
	if err != nil {
		return &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app = app
	return nil
}

// Run sends from the flow's start until its stop, the end of the workload, an
// error or the end of ctx, whichever is first. It returns with the connection
// closed.
func (s *Source) Run(ctx context.Context, sched transport.Schedule) {
	if !SleepUntil(ctx, sched.Clock, s.flow.Start) {
		return
	}
	stop := sched.FlowStop(&s.flow)
	err := s.run(ctx, sched.Clock, stop)
	s.finish(sched.Clock.Now(), stop, ctx.Err() != nil, err)
}

// run connects and sends, again where the connection turns out never to have
// stood.
func (s *Source) run(ctx context.Context, clock transport.Clock, stop vtime.Time) error {
	for {
		err := s.attempt(ctx, clock, stop)
		if !errors.Is(err, unix.ECONNRESET) || !s.neverStood() {
			return err
		}
		s.again()
		if !SleepUntil(ctx, clock, vtime.Min(stop, clock.Now().Add(vtime.FromStd(retryFirst)))) {
			return ctx.Err()
		}
	}
}

// neverStood says whether the other end's kernel can have no part in the
// connection: it answered the SYN, none of our acknowledgements reached it
// before it gave up repeating that answer (Linux: tcp_synack_retries, about a
// minute), and what we sent later met a closed port. Under starvation this
// happens; for an application it is a failed attempt to connect, that was seen
// late. The kernel counts the SYN as one acknowledged byte.
func (s *Source) neverStood() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample, ok := s.sampleLocked(0)
	return ok && sample.Acked <= 1
}

// again puts the source back to before its first byte.
func (s *Source) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	Abort(s.conn)
	s.window.end()
	s.conn, s.started = nil, false
	s.app.Rewind()
}

// attempt makes one connection and uses it to its end.
func (s *Source) attempt(ctx context.Context, clock transport.Clock, stop vtime.Time) error {
	conn, err := s.connect(ctx, clock, stop)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(Wall(clock, stop)); err != nil {
		return err
	}
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer cancel()
	// The other end says nothing but why it gives up, and closes when it has
	// everything.
	said := make(chan error, 1)
	hears, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() {
		err := Hear(conn)
		said <- err
		if err != nil {
			_ = conn.SetWriteDeadline(past) // ends the writing,
			giveUp()                        // and the waiting for something to write
		}
	}()
	err = s.send(hears, conn, clock, stop)
	if err == nil {
		err = conn.CloseWrite()
	}
	if err == nil {
		err = <-said
	} else {
		err = Explained(conn, err, said)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.result.Finished, s.result.FinishedAt = true, clock.Now()
	s.mu.Unlock()
	return nil
}

// Explained returns the reason that the other end gave for what ended the
// writing, if it gave one. said is where Hear's result comes.
func Explained(conn *net.TCPConn, err error, said <-chan error) error {
	select {
	case reason := <-said:
		// It came first and ended the writing.
		if reason != nil {
			return reason
		}
		return err
	default:
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = conn.SetReadDeadline(past) // our own stop: there is nothing to wait for
	} else {
		_ = conn.SetReadDeadline(time.Now().Add(lastWords))
	}
	if reason := <-said; reason != nil && !errors.Is(reason, os.ErrDeadlineExceeded) {
		return reason
	}
	return err
}

// past is a deadline that ends every wait at once.
var past = time.Unix(1, 0)

// lastWords is how long a source that cannot write any more listens for the
// reason.
const lastWords = 50 * time.Millisecond

// Hear reads what the other end says until it closes: nothing when it has
// received everything, else why it gave up.
func Hear(conn *net.TCPConn) error {
	b, err := io.ReadAll(io.LimitReader(conn, MaxReason))
	if len(b) > 0 {
		return errors.New(strings.ToValidUTF8(string(b), "?"))
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the other end: %w", err)
	}
	return err
}

// MaxReason bounds the text with which the other end gives up, in bytes.
const MaxReason = 500

// send writes the preamble and the application's data.
func (s *Source) send(ctx context.Context, conn *net.TCPConn, clock transport.Clock, stop vtime.Time) error {
	_, err := conn.Write(s.preamble)
	if err != nil {
		return err
	}
	pattern := workload.NewPattern(s.flow.ID)
	for {
		// Only this goroutine takes from the application; mu is for readers, and for
		// the peer flow's sink.
		now := clock.Now()
		s.mu.Lock()
		ready, at, next := s.app.Ready(now), s.app.Taken(), s.app.Next(now)
		over := s.flow.Workload.Ends() && s.app.Finished()
		s.mu.Unlock()
		if over {
			return nil
		}
		if ready == 0 {
			if now >= stop {
				return os.ErrDeadlineExceeded
			}
			if !s.idle(ctx, clock, vtime.Min(next, stop)) {
				return ctx.Err()
			}
			continue
		}
		piece := min(ready, workload.MaxChunk)
		if s.window != nil {
			if piece, err = s.window.admit(ctx, conn, clock, stop, piece); err != nil {
				return err
			}
		}
		n, err := conn.Write(pattern.At(int64(at), int(piece)))
		s.mu.Lock()
		s.app.Take(clock.Now(), vtime.Bytes(n))
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// idle waits until the moment, or until the peer flow brought something; false
// when ctx ended first.
func (s *Source) idle(ctx context.Context, clock transport.Clock, until vtime.Time) bool {
	timer := time.NewTimer(until.Add(-Precise).Sub(clock.Now()).Std())
	defer timer.Stop()
	select {
	case <-timer.C:
		return SleepRest(ctx, clock, until)
	case <-s.heard:
	case <-ctx.Done():
		return false
	}
	return true
}

// Heard tells the source that its node has received the first total bytes of the
// peer flow.
func (s *Source) Heard(now vtime.Time, total vtime.Bytes) {
	s.mu.Lock()
	s.app.Heard(now, total)
	s.mu.Unlock()
	select {
	case s.heard <- struct{}{}:
	default: // it has not looked yet
	}
}

// Messages appends what became of the pages that a web client asked for, until
// to has the length most.
func (s *Source) Messages(to []proto.Message, most int) []proto.Message {
	if s.flow.Peer == nil {
		return to
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return report(to, most, *s.flow.Peer, s.app.Receipts())
}

// connect makes the flow's connection.
func (s *Source) connect(ctx context.Context, clock transport.Clock, stop vtime.Time) (*net.TCPConn, error) {
	until := stop
	if w := s.flow.Options.ConnectWithin; w > 0 {
		until = vtime.Min(stop, s.flow.Start.Add(w))
	}
	d := Dialer{Flow: s.flow.ID, From: s.flow.SrcAddr, To: s.to, Opt: s.opt, Clock: clock, Until: until}
	conn, err := d.Connect(ctx, func() {
		s.mu.Lock()
		s.result.Attempts++
		s.mu.Unlock()
	})
	if err != nil {
		return nil, err
	}
	if err := s.established(conn, clock.Now()); err != nil {
		Abort(conn)
		return nil, err
	}
	return conn, nil
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
		s.window.begin(conn)
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Source, Kind: proto.Connected, T: now})
	}
	return err
}

// finish takes the last sample, ends the connection and judges the error.
func (s *Source) finish(now, stop vtime.Time, ordered bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window.end()
	if s.conn != nil {
		if last, ok := s.sampleLocked(now); ok {
			s.result.Last = &last
		}
		if s.result.Finished {
			s.conn.Close()
		} else {
			Abort(s.conn)
		}
		s.conn = nil
	}
	s.result.Total = s.app.Taken()
	s.app.Close(vtime.Min(now, stop))
	if s.over > 0 {
		err, ordered = &proto.Error{Code: proto.CodeNotApplied, What: fmt.Sprintf("flow %d: cap of the congestion window", s.flow.ID), Wanted: fmt.Sprint(s.flow.Options.CwndCap), Got: fmt.Sprint(s.over)}, false
	}
	if s.result.Error = Judge(s.flow.ID, now, stop, ordered, err); s.result.Error != nil {
		s.node.Event(proto.Event{Flow: s.flow.ID, Side: proto.Source, Kind: proto.Failed, T: now, Error: s.result.Error})
	}
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
	if cap := s.flow.Options.CwndCap; err == nil && cap > 0 && sample.CwndPackets > int64(cap) {
		s.over = max(s.over, sample.CwndPackets)
	}
	return sample, err == nil
}

// Result returns the source's account; call it after Run has returned.
func (s *Source) Result() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}
