//go:build linux

package relay

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
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// flow is one flow at a relay.
type flow struct {
	e    *endpoint
	flow proto.Flow
	next netip.AddrPort

	mu       sync.Mutex
	sched    transport.Schedule
	stop     vtime.Time
	up, down *net.TCPConn // while they stand
	ring     *ring
	moved    vtime.Bytes // payload passed on, of the present connection
	maxHeld  vtime.Bytes
	result   proto.FlowResult
}

func newFlow(e *endpoint, f proto.Flow, next netip.AddrPort) *flow {
	return &flow{e: e, flow: f, next: next, result: proto.FlowResult{Flow: f.ID, Side: proto.Relay}}
}

func (f *flow) begin(sched transport.Schedule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sched, f.stop = sched, sched.FlowStop(&f.flow)
}

// run relays what comes on one connection until it ends, either side fails, the
// flow stops or ctx ends.
func (f *flow) run(life context.Context, up *net.TCPConn) {
	r, err := f.adopt(up)
	if err != nil {
		refuse(up, f.e.node.Name, fmt.Sprintf("flow %d: %v", f.flow.ID, err))
		return
	}
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	end := context.AfterFunc(ctx, func() { _ = up.SetDeadline(time.Unix(1, 0)) })
	defer end()

	// Reading begins at once: while the next hop is being connected the buffer
	// fills, and stops the reading when it is full.
	connecting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	read := make(chan struct{})
	go func() {
		defer close(read)
		if f.fill(up, r) != nil {
			giveUp()
		}
	}()
	down, err := f.connect(connecting)
	if err == nil {
		err = f.forward(ctx, down, r)
	}
	if first := r.fail(err); err != nil && first != nil {
		err = first // what happened first is the cause of the rest
	}
	ordered := life.Err() != nil
	_ = up.SetReadDeadline(time.Unix(1, 0))
	<-read
	f.end(up, down, ordered, err)
	if down != nil {
		f.e.life.drop(down)
	}
}

// adopt makes the connection the flow's one. A second one replaces the first
// only while that has carried nothing: the node before had to try again.
func (f *flow) adopt(up *net.TCPConn) (*ring, error) {
	if err := sock.OnConn(up, socketOptions(&f.flow, false, true).Apply); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.up != nil {
		if held, _ := f.ring.level(); held > 0 || f.moved > 0 {
			return nil, errors.New("the flow has a connection")
		}
		sock.Abort(f.up)
	}
	if f.result.Error != nil || f.result.Finished {
		return nil, errors.New("the flow has ended")
	}
	f.up, f.down, f.moved = up, nil, 0
	f.ring = newRing(int(bound(&f.flow)/ringShare) - maxPiece)
	return f.ring, up.SetReadDeadline(sock.Wall(f.sched.Clock, f.stop))
}

// connect makes a connection to the next hop and returns it when the next hop
// has acknowledged the header: until then a starved next hop may have given the
// connection up unseen (see sock.Source), and what a relay had passed on would
// be lost with it.
func (f *flow) connect(ctx context.Context) (*net.TCPConn, error) {
	for {
		down, err := f.dial(ctx)
		if err != nil {
			return nil, err
		}
		stands, err := f.awaitHeader(ctx, down)
		if stands {
			return down, nil
		}
		f.mu.Lock()
		f.down = nil
		f.mu.Unlock()
		sock.Abort(down)
		if err != nil {
			return nil, err
		}
	}
}

// The pauses between two looks at a connection whose header is on its way.
const (
	lookFirst = 2 * vtime.Millisecond
	lookMost  = 100 * vtime.Millisecond
)

// awaitHeader returns true when the header is acknowledged, and false without
// an error when the connection was reset before. The kernel counts the SYN as
// one acknowledged byte.
func (f *flow) awaitHeader(ctx context.Context, down *net.TCPConn) (bool, error) {
	clock := f.sched.Clock
	for pause := lookFirst; ; pause = min(2*pause, lookMost) {
		var info *unix.TCPInfo
		err := sock.OnConn(down, func(fd int) (err error) {
			info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
			return err
		})
		switch {
		case err != nil:
			return false, err
		case info.Bytes_acked > 1:
			return true, nil
		case info.State == unix.BPF_TCP_CLOSE:
			return false, nil
		}
		at := clock.Now().Add(pause)
		if at >= f.stop {
			return false, os.ErrDeadlineExceeded
		}
		if !sock.SleepUntil(ctx, clock, at) {
			return false, ctx.Err()
		}
	}
}

// dial makes one connection to the next hop and sends the header.
func (f *flow) dial(ctx context.Context) (*net.TCPConn, error) {
	opt := socketOptions(&f.flow, true, false)
	d := sock.Dialer{Flow: f.flow.ID, From: f.e.node.Addr, To: f.next, Opt: opt, Clock: f.sched.Clock, Until: f.stop}
	began := f.sched.Clock.Now()
	down, err := d.Connect(ctx, func() {
		f.mu.Lock()
		f.result.Attempts++
		f.mu.Unlock()
	})
	if err != nil {
		return nil, err
	}
	f.e.life.keep(down)
	var cc string
	err = sock.OnConn(down, func(fd int) (err error) {
		if err := opt.Apply(fd); err != nil {
			return err
		}
		cc, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	if err == nil {
		err = down.SetDeadline(sock.Wall(f.sched.Clock, f.stop))
	}
	if err == nil {
		h := Header{Flow: uint32(f.flow.ID), Src: uint32(f.flow.Src), Dst: uint32(f.flow.Dst)}
		_, err = down.Write(h.Append(nil))
	}
	if err != nil {
		sock.Abort(down)
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.result.CC, f.result.Established = down, cc, f.sched.Clock.Now()
	f.result.SetupTime = f.result.Established.Sub(began)
	return down, nil
}

// fill reads into the buffer until the stream ends. An error ends the
// forwarding, too: what the source did not finish must not look finished.
func (f *flow) fill(up *net.TCPConn, r *ring) error {
	for {
		b, err := r.space()
		if err != nil {
			return err
		}
		n, err := up.Read(b)
		r.filled(n)
		switch {
		case errors.Is(err, io.EOF):
			r.end()
			return nil
		case err != nil:
			return r.fail(fmt.Errorf("from the previous hop (%v): %w", up.RemoteAddr(), err))
		}
	}
}

// forward writes the buffer to the next hop until the stream's end, passes the
// end on, and waits until the next hop has closed: then the destination has
// everything.
func (f *flow) forward(ctx context.Context, down *net.TCPConn, r *ring) error {
	end := context.AfterFunc(ctx, func() { _ = down.SetDeadline(time.Unix(1, 0)) })
	defer end()
	said := make(chan error, 1)
	go func() {
		err := sock.Hear(down)
		said <- err
		if err != nil {
			r.fail(err)
			_ = down.SetWriteDeadline(time.Unix(1, 0))
		}
	}()
	err := f.drain(down, r)
	if err == nil {
		err = down.CloseWrite()
	}
	if err != nil {
		return sock.Explained(down, err, said)
	}
	return <-said
}

// drain writes the buffer to the next hop until the stream's end.
func (f *flow) drain(down *net.TCPConn, r *ring) error {
	w, err := newWriter(down)
	if err != nil {
		return err
	}
	for {
		b, ok, err := r.data(w.piece)
		if err != nil || !ok {
			return err
		}
		n, err := w.write(b)
		r.taken(n)
		f.mu.Lock()
		f.moved += vtime.Bytes(n)
		f.mu.Unlock()
		if err != nil {
			return fmt.Errorf("to the next hop (%v): %w", f.next, err)
		}
	}
}

// end closes both connections and passes the failure on, towards the source in
// words, towards the destination by a reset.
func (f *flow) end(up, down *net.TCPConn, ordered bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.sched.Clock.Now()
	f.noteHeld()
	if f.up == up {
		last := f.sampleLocked(now)
		f.result.Last = &last
	}
	if err == nil {
		f.result.Finished, f.result.FinishedAt = true, now
		_ = down.Close()
		_ = up.Close()
	} else if down != nil {
		sock.Abort(down)
	}
	f.result.Total += f.moved
	if f.up != up {
		return // replaced by another connection, which closed this one
	}
	f.up, f.down, f.moved = nil, nil, 0
	if err == nil {
		return
	}
	if f.result.Error = sock.Judge(f.flow.ID, now, f.stop, ordered, err); f.result.Error == nil {
		sock.Abort(up)
		return
	}
	f.e.node.Event(proto.Event{Flow: f.flow.ID, Side: proto.Relay, Kind: proto.Failed, T: now, Error: f.result.Error})
	f.e.wg.Go(func() { refuse(up, f.e.node.Name, err.Error()) })
}

// refuse tells the node before why, and closes. A plain reset could overtake
// the words, so what still comes is read and dropped for a moment.
func refuse(c *net.TCPConn, node, why string) {
	text := "node " + node + ": " + why
	if rest, nested := strings.CutPrefix(why, "node "); nested {
		text = "node " + rest // the node that failed has named itself
	}
	if len(text) > sock.MaxReason {
		text = text[:sock.MaxReason]
	}
	_ = c.SetDeadline(time.Now().Add(lingering))
	if _, err := c.Write([]byte(text)); err == nil {
		if err := c.CloseWrite(); err == nil {
			_, _ = io.Copy(io.Discard, c)
		}
	}
	sock.Abort(c)
}

// lingering bounds the time for the last words to arrive.
const lingering = 500 * time.Millisecond

// held is what this relay holds of the flow: in its buffer, received by the
// kernel and not read, and sent and not acknowledged by the next hop.
func (f *flow) held() vtime.Bytes {
	var total int
	if f.ring != nil {
		total, _ = f.ring.level()
	}
	add := func(c *net.TCPConn, request uint) {
		if c == nil {
			return
		}
		// A connection that has ended holds nothing.
		_ = sock.OnConn(c, func(fd int) error {
			n, err := unix.IoctlGetInt(fd, request)
			if err == nil {
				total += n
			}
			return err
		})
	}
	add(f.up, unix.SIOCINQ)
	add(f.down, unix.SIOCOUTQ)
	return vtime.Bytes(total)
}

func (f *flow) noteHeld() {
	f.maxHeld = max(f.maxHeld, f.held())
	if f.ring != nil {
		_, most := f.ring.level()
		f.maxHeld = max(f.maxHeld, vtime.Bytes(most))
	}
}

// sample observes the relay; ok is false while the flow has no connection.
func (f *flow) sample(now vtime.Time) (proto.Sample, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.up == nil {
		return proto.Sample{}, false
	}
	f.noteHeld()
	return f.sampleLocked(now), true
}

func (f *flow) sampleLocked(now vtime.Time) proto.Sample {
	s := proto.Sample{Flow: f.flow.ID, Side: proto.Relay, T: now, Held: f.held()}
	if f.down != nil {
		// An ended connection leaves the fields at 0.
		_ = sock.OnConn(f.down, func(fd int) error { return probe.TCPInfo(fd, &s) })
	}
	return s
}

// outcome is the relay's account of the flow.
func (f *flow) outcome() proto.FlowResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.result
	r.MaxHeld = f.maxHeld
	return r
}
