package hopnet

import (
	"context"
	"fmt"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// SendBlock sends a block, 1 byte to MaxBlock, and waits until the program at the
// other end has taken it (Listener.ReceiveBlock), or ctx ends. Blocks are
// independent of each other: of several that are under way any may arrive first.
//
// nil means that the program there has the block, once. After an error that
// wraps ErrRefused it has not. After any other it may have it or not: the
// program's own numbering has to tell, if it sends the block again.
func (n *Node) SendBlock(ctx context.Context, to NodeID, service Service, data []byte) error {
	peer := Addr{to, service}
	fault := func(err error) error { return &Error{Op: "send block", Peer: peer, Err: err} }
	if len(data) == 0 || len(data) > MaxBlock {
		return fault(fmt.Errorf("%d bytes: %w", len(data), ErrTooLarge))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if err := n.reachable(to); err != nil {
		return fault(err)
	}
	s, err := n.open(now, peer, preamble{kind: kindBlock, service: service}, func(s *sender) {
		s.chunks, s.size, s.foreign, s.ending = [][]byte{data}, len(data), true, true
	})
	if err != nil {
		return fault(err)
	}
	n.settle(now)
	for {
		switch {
		case s.confirmed:
			return nil
		case s.err != nil:
			return fault(s.err)
		}
		change := s.changed.on()
		n.mu.Unlock()
		err := await(ctx, change, time.Time{})
		n.mu.Lock()
		if err != nil && !s.confirmed && s.err == nil {
			n.notify(peer, preamble{flow: s.key.Flow, code: codeAbort, mine: true})
			s.abort(err)
			n.settle(n.now())
			if s.acked {
				err = fmt.Errorf("it has arrived at the node, the program there has not taken it: %w", err)
			} else {
				err = noAnswer{err}
			}
			return fault(err)
		}
	}
}

// deliverBlock gives a block to its listener.
func (n *Node) deliverBlock(r *receiver, d hop.Delivery, data []byte) {
	l := n.listeners[r.peer.Service]
	switch {
	case d.Block != 0 || !d.Last || len(data) == 0:
		n.counts.BadFlows++
		r.drop()
		r.stop()
	case l == nil:
		r.dropped = true
		n.notify(r.peer, preamble{flow: r.key.Flow, code: codeNoService})
	default:
		r.take(data)
		l.blocks = append(l.blocks, r)
		l.changed.wake()
	}
}
