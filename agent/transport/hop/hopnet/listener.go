package hopnet

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// mostWaiting is the number of streams that wait to be accepted; further ones
// are refused.
const mostWaiting = 128

// Listener takes the streams and blocks of one service. It is a net.Listener.
type Listener struct {
	n       *Node
	service Service

	// The Node's lock protects the rest.
	conns   []*Conn
	blocks  []*receiver
	changed waiting
	closed  bool
	err     error
}

var _ net.Listener = (*Listener)(nil)

// Listen answers a service from now on.
func (n *Node) Listen(service Service) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &Listener{n: n, service: service}
	switch {
	case n.closed:
		return nil, l.fault("listen", net.ErrClosed)
	case n.listeners[service] != nil:
		return nil, l.fault("listen", fmt.Errorf("the service has a listener already"))
	}
	n.listeners[service] = l
	return l, nil
}

func (l *Listener) fault(op string, err error) error {
	return &Error{Op: op, Peer: Addr{l.n.cfg.ID, l.service}, Err: err}
}

// Accept waits for a stream; net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn(context.Background())
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptConn waits for a stream, as long as ctx lasts.
func (l *Listener) AcceptConn(ctx context.Context) (*Conn, error) {
	var c *Conn
	err := l.wait(ctx, "accept", func(vtime.Time) bool {
		if len(l.conns) == 0 {
			return false
		}
		c, l.conns = l.conns[0], l.conns[1:]
		return true
	})
	return c, err
}

// Block is what SendBlock sent.
type Block struct {
	From NodeID
	Data []byte
}

// ReceiveBlock waits for a block, as long as ctx lasts. The block is the
// caller's, and only now its sender is told that it has arrived.
func (l *Listener) ReceiveBlock(ctx context.Context) (*Block, error) {
	var b *Block
	err := l.wait(ctx, "receive block", func(now vtime.Time) bool {
		if len(l.blocks) == 0 {
			return false
		}
		r := l.blocks[0]
		l.blocks = l.blocks[1:]
		b = &Block{From: r.peer.Node, Data: r.next()}
		l.n.notify(r.peer, preamble{flow: r.key.Flow, code: codeOK})
		l.n.settle(now)
		return true
	})
	return b, err
}

// wait calls take with the lock until it is true.
func (l *Listener) wait(ctx context.Context, op string, take func(now vtime.Time) bool) error {
	n := l.n
	for {
		n.mu.Lock()
		if !l.closed && take(n.now()) {
			n.mu.Unlock()
			return nil
		}
		err := l.err
		change := l.changed.on()
		n.mu.Unlock()
		if err == nil {
			err = await(ctx, change, time.Time{})
		}
		if err != nil {
			return l.fault(op, err)
		}
	}
}

// Close refuses the service from now on; streams that were not accepted are
// closed. Those that were go on.
func (l *Listener) Close() error {
	n := l.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.closed {
		return nil
	}
	delete(n.listeners, l.service)
	now := n.now()
	for _, c := range l.conns {
		c.shut(now)
	}
	for _, r := range l.blocks {
		r.drop()
		n.notify(r.peer, preamble{flow: r.key.Flow, code: codeNoService})
	}
	l.fail(net.ErrClosed)
	n.settle(now)
	return nil
}

// fail ends every wait. The lock is held.
func (l *Listener) fail(reason error) {
	l.closed, l.err, l.conns, l.blocks = true, reason, nil, nil
	l.changed.wake()
}

// Addr returns this node and the service, an Addr.
func (l *Listener) Addr() net.Addr { return Addr{l.n.cfg.ID, l.service} }
