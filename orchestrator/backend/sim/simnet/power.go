package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// restarter is a flow that keeps something in memory at nodes between its ends.
type restarter interface {
	// nodeDown forgets it, without a word to anybody: nothing leaves the node any
	// more.
	nodeDown(now vtime.Time, node int)
	// nodeUp begins afresh, as a node does that has just been switched on.
	nodeUp(now vtime.Time, node int)
}

// SetNodeUp switches a node off or on: the ends of its wires, Hop, and what flows
// keep in its memory. Its radio is the medium's: it is switched off after this, and
// on before, so that nobody speaks in between. Flows must not begin or end at the
// node.
func (n *Net) SetNodeUp(now vtime.Time, node int, up bool) {
	if n.off == nil {
		n.off = make([]bool, n.cfg.Nodes)
	}
	if n.off[node] == !up {
		return
	}
	n.off[node] = !up
	for _, f := range n.flows {
		if r, ok := f.(restarter); ok {
			if up {
				r.nodeUp(now, node)
			} else {
				r.nodeDown(now, node)
			}
		}
	}
	if !up && n.hop != nil {
		n.restartHop(node)
	}
	for _, ends := range n.ports {
		for e, w := range ends {
			if w.node == node {
				w.pipe.SetSender(up)
				ends[1-e].pipe.SetReceiver(up)
			}
		}
	}
}

// restartHop gives a node a Hop without memory of the old one. While the node is off
// it hears of nothing, so it has nothing to say.
func (n *Net) restartHop(node int) {
	if n.lives == nil {
		n.lives = make([]hop.NodeStats, n.cfg.Nodes)
	}
	s := n.hop.Node(node).Stats()
	n.lives[node].Add(&s)
	if err := n.hop.Add(node, n.cfg.Hop, hopRoutes{n, node}, hopApp{n, node}); err != nil {
		panic(fmt.Sprintf("simnet: node %d: a configuration that was valid before: %v", node, err))
	}
}

// hopStats are the counters of all lives of a node's Hop.
func (n *Net) hopStats(node int) hop.NodeStats {
	s := n.hop.Node(node).Stats()
	if n.lives != nil {
		s.Add(&n.lives[node])
	}
	return s
}

// nodeDown implements restarter: what the node counted is kept.
func (h *hopFlow) nodeDown(_ vtime.Time, node int) {
	for i, at := range h.order.Path {
		if at != node || h.closed {
			continue
		}
		h.rememberAt(i)
		if h.lives == nil {
			h.lives = make([]hop.FlowStats, len(h.order.Path))
		}
		h.lives[i] = h.last[i].Counters()
		h.last[i] = h.lives[i]
	}
}

// nodeUp implements restarter: Hop meets the flow again when a block of it comes.
func (h *hopFlow) nodeUp(vtime.Time, int) {}

// nodeDown implements restarter: a relay's buffer and its two connections are gone.
// The nodes before and after it learn nothing of that.
func (s *stream) nodeDown(now vtime.Time, node int) {
	for _, r := range s.relays {
		if r.node == node {
			r.die(now)
		}
	}
}

// nodeUp implements restarter: a relay listens again.
func (s *stream) nodeUp(_ vtime.Time, node int) {
	for _, r := range s.relays {
		if r.node == node {
			r.in.listenAgain()
		}
	}
}

// die forgets everything but what was counted.
func (r *relay) die(now vtime.Time) {
	r.note()
	r.died = true
	r.in.forgotten = r.in.forgotten || r.in.accepted != vtime.Never
	r.in.server.kill(now, false)
	r.out.client.kill(now, false)
	r.in.accepted, r.out.established = vtime.Never, vtime.Never
	r.out.until = now // no further attempt until the flow comes here again
	r.passed += r.moved
	r.skip, r.header, r.held, r.moved, r.most = relayHeader, relayHeader, 0, 0, 0
	r.closed = false
}

// listenAgain gives the link's end a socket that knows nothing of a connection: what
// comes for the old one is answered by a reset.
func (l *link) listenAgain() {
	if l.client == nil || l.client.dead {
		return // the next attempt makes one
	}
	old := l.server
	l.server = l.socket(l.to, &l.listener)
	l.server.peer, l.server.port = l.client, old.port
	l.client.peer = l.server
	l.server.conn.Listen()
}
