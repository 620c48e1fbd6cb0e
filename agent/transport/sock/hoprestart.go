//go:build linux

package sock

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// hopLives is what a node's Hop counted before the node was switched off last.
type hopLives struct {
	node        hop.NodeStats
	neverQueued uint64
}

// NodeDown implements transport.Restarter: blocks and cache are gone.
func (e *hopEndpoint) NodeDown(vtime.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.hop.Stats()
	e.lives.node.Add(&s)
	e.lives.neverQueued += e.radio.lost()
	for _, f := range e.flows {
		f.remember(e.hop)
		f.lives = f.last.Counters()
		f.last = f.lives
	}
	e.off = true
	// It knows no flow and hears nothing, so it has nothing to say.
	if err := e.renew(); err != nil {
		e.node.Log("warn", err.Error()) // NodeUp tries again, and tells
	}
}

// NodeUp implements transport.Restarter.
func (e *hopEndpoint) NodeUp(now vtime.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.discard(); err != nil {
		return err
	}
	e.radio = e.newRadio()
	e.radio.at(now)
	if err := e.renew(); err != nil {
		return err
	}
	e.off = false
	return nil
}

// renew replaces the node by one without memory.
func (e *hopEndpoint) renew() error {
	n, err := hop.NewNode(e.cfg, e.radio, e, e)
	if err != nil {
		return &proto.Error{Code: proto.CodeInternal, What: "hop", Detail: err.Error()}
	}
	e.hop = n
	return nil
}

// newRadio is what the node knows of the queues below it from now on.
func (e *hopEndpoint) newRadio() radio {
	if e.node.Board != nil {
		return newBoardRadio(e.node.Board, e.node.Ports, e.cfg.QueueAhead)
	}
	return &socketRadio{ports: e.node.Ports, sock: e.sock, limit: socketLimit}
}

// discard drops what waits in the socket.
func (e *hopEndpoint) discard() error {
	for {
		n, err := e.sock.receive(func([4]byte, []byte) {})
		if err != nil && !transient(err) {
			return fmt.Errorf("receive: %w", err)
		}
		if n < batch && err == nil {
			return nil
		}
	}
}

// rest is the driver's turn while the node is switched off. Nobody has to wake it when
// it is on again: a node without memory waits for a datagram.
func (e *hopEndpoint) rest(now vtime.Time) (vtime.Time, error) {
	if err := e.discard(); err != nil {
		return 0, err
	}
	if now >= e.sched.End || e.ctx.Err() != nil {
		e.halted = now
		return vtime.Never, nil
	}
	return e.sched.End, nil
}

// repeats are the counters of a flow that say what end-to-end repetition costs at a
// node; those that count nothing are left out.
func repeats(s *hop.FlowStats) []proto.Counter {
	var out []proto.Counter
	for _, c := range []proto.Counter{
		{Name: "hop_tokens", Delta: int64(s.Tokens)},
		{Name: "hop_data_again", Delta: int64(s.DataAgain)},
		{Name: "hop_data_redundant", Delta: int64(s.Redundant)},
	} {
		if c.Delta != 0 {
			out = append(out, c)
		}
	}
	return out
}
