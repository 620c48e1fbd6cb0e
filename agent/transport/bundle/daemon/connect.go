//go:build linux

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The pauses before another connection is made, doubling while none stands.
const (
	pauseFirst = 200 * vtime.Millisecond
	pauseMost  = 2 * vtime.Second
)

// attempt bounds one attempt to connect.
const attempt = 10 * time.Second

// dial makes a connection to the next hop, trying until one stands.
func (f *flow) dial(ctx context.Context) {
	d := sock.Dialer{Flow: f.order.ID, From: f.e.node.Addr, To: f.next, Opt: f.opt, Clock: f.sched.Clock, Until: f.stop, Within: attempt}
	began := f.sched.Clock.Now()
	conn, err := d.Connect(ctx, func() {
		f.mu.Lock()
		f.result.Attempts++
		f.mu.Unlock()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		if conn != nil {
			sock.Abort(conn)
		}
		return
	}
	f.dialing = false
	now := f.sched.Clock.Now()
	f.paused, f.pause = now.Add(f.pause), min(2*f.pause, pauseMost)
	if err == nil {
		err = f.connected(conn, now, began)
	}
	if err != nil {
		e := sock.Judge(f.order.ID, now, f.stop, false, err)
		if e != nil && e.Code == proto.CodeTimeout && f.result.Established != 0 {
			e = nil // it stood before: a partition, for which bundles are made
		}
		if e != nil {
			f.fail(now, e)
		}
	}
	f.happened()
}

// connected begins a session over a connection that stands. mu is held.
func (f *flow) connected(conn *net.TCPConn, now, began vtime.Time) error {
	l, cc, err := f.newLink(conn)
	if err != nil {
		sock.Abort(conn)
		return err
	}
	if f.result.Established == 0 {
		f.result.Established, f.result.SetupTime, f.result.CC = now, now.Sub(began), cc
		if f.side == proto.Source {
			f.e.node.Event(proto.Event{Flow: f.order.ID, Side: f.side, Kind: proto.Connected, T: now})
		}
	}
	f.down, f.pause = l, pauseFirst
	l.begin(f.machine.Connected(now))
	return nil
}

// accept takes connections from the previous hop.
func (f *flow) accept(ctx context.Context, listener *net.TCPListener) {
	for {
		conn, err := listener.AcceptTCP()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				f.e.node.Log("warn", fmt.Sprintf("flow %d: accept: %v", f.order.ID, err))
				time.Sleep(10 * time.Millisecond) // out of descriptors: not at once again
				continue
			}
			return
		}
		if from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(); from != f.prev {
			sock.Abort(conn)
			f.e.node.Log("warn", fmt.Sprintf("flow %d does not come from %v", f.order.ID, from))
			continue
		}
		f.mu.Lock()
		if err := f.accepted(ctx, conn); err != nil {
			sock.Abort(conn)
			f.fail(f.sched.Clock.Now(), proto.AsError(err, proto.CodeSystem))
		}
		f.happened()
		f.mu.Unlock()
	}
}

func (f *flow) accepted(ctx context.Context, conn *net.TCPConn) error {
	now := f.sched.Clock.Now()
	if ctx.Err() != nil || now >= f.stop {
		sock.Abort(conn)
		return nil
	}
	l, cc, err := f.newLink(conn)
	if err != nil {
		return err
	}
	if f.side == proto.Destination {
		if f.result.Attempts++; f.result.Established == 0 {
			f.result.Established, f.result.CC = now, cc
		}
	}
	f.up = l
	l.begin(f.machine.Accept(now))
	return nil
}
