//go:build linux

package relay

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// life is a node's time between two losses of its memory: what its relays do in it,
// and the connections that they have.
type life struct {
	ctx context.Context
	end context.CancelFunc
	wg  sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.TCPConn]bool
}

func newLife(ctx context.Context) *life {
	l := &life{conns: make(map[*net.TCPConn]bool)}
	l.ctx, l.end = context.WithCancel(ctx)
	return l
}

// keep notes a connection until drop.
func (l *life) keep(c *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
}

func (l *life) drop(c *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// silence makes every connection end without a segment: what a socket in repair mode
// had is dropped when it is closed (tcp(7), tcp_close in net/ipv4/tcp.c). A kernel
// that does not permit it resets the connection instead, which the links that are cut
// at this moment do not carry.
func (l *life) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = sock.OnConn(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1) })
	}
}

// NodeDown implements transport.Restarter: the relays' buffers and connections are
// gone, and nobody listens.
func (e *endpoint) NodeDown(vtime.Time) {
	l := e.life
	l.silence()
	for _, in := range e.incoming {
		if in.relay != nil {
			_ = in.listener.Close() // fails only when it is closed already
		}
	}
	l.end()
	l.wg.Wait()
	for _, in := range e.incoming {
		if in.relay != nil {
			in.relay.forget()
		}
	}
}

// NodeUp implements transport.Restarter.
func (e *endpoint) NodeUp(vtime.Time) error {
	e.life = newLife(e.ctx)
	for _, in := range e.incoming {
		if in.relay == nil {
			continue
		}
		var err error
		if in.listener, err = sock.Listen(netip.AddrPortFrom(e.node.Addr, port(&in.flow)), socketOptions(&in.flow, false, true)); err != nil {
			w := *proto.AsError(err, proto.CodeSystem)
			w.What = fmt.Sprintf("flow %d: %s", in.flow.ID, w.What)
			return &w
		}
		e.relayFrom(in)
	}
	return nil
}

// relayFrom accepts the connections of a flow that passes through the node.
func (e *endpoint) relayFrom(in *incoming) {
	l, listener := e.life, in.listener
	l.wg.Go(func() {
		e.accept(in, listener, func(c *net.TCPConn) {
			l.keep(c)
			l.wg.Go(func() {
				defer l.drop(c)
				e.serve(l.ctx, in, c)
			})
		})
	})
}

// forget drops what the relay has of the flow, but not what it has counted.
func (f *flow) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up, f.down, f.ring, f.moved = nil, nil, nil, 0
}
