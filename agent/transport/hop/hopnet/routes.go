package hopnet

import (
	"maps"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// routes are a node's next hops: those that were given, and those that were
// learnt.
type routes struct {
	given   map[NodeID]NodeID
	gateway NodeID
	learnt  map[NodeID]NodeID
	order   []NodeID // of learnt, oldest first
}

// mostLearnt bounds what strangers can make a node remember.
const mostLearnt = 4096

func (r *routes) init(c *Config) {
	r.given, r.gateway = maps.Clone(c.Routes), c.Gateway
	if r.given == nil {
		r.given = make(map[NodeID]NodeID)
	}
	r.learnt = make(map[NodeID]NodeID)
}

// learn notes that blocks of a source come through a neighbour.
func (r *routes) learn(source, via NodeID) {
	if old, ok := r.learnt[source]; ok {
		if old != via {
			r.learnt[source] = via
		}
		return
	}
	if len(r.order) >= mostLearnt {
		delete(r.learnt, r.order[0])
		r.order = append(r.order[:0], r.order[1:]...)
	}
	r.learnt[source] = via
	r.order = append(r.order, source)
}

// nextHop finds the neighbour towards a node: by the routes that were given,
// the node itself if it is a neighbour, what was learnt, the gateway.
func (n *Node) nextHop(dst NodeID) (*neighbour, bool) {
	via, ok := n.routes.given[dst]
	if !ok {
		if p := n.peers.byID[dst]; p != nil {
			return p, true
		}
		if via, ok = n.routes.learnt[dst]; !ok {
			via = n.routes.gateway
		}
	}
	p := n.peers.byID[via]
	return p, p != nil
}

// network is what hop asks of a Node.
type network Node

// NextHop implements hop.Routes.
func (w *network) NextHop(dst hop.NodeID) (hop.NodeID, bool) {
	if p, ok := (*Node)(w).nextHop(NodeID(dst)); ok {
		return hop.NodeID(p.id), true
	}
	return 0, false
}

// The ports: all neighbours on wires share one, as they share the socket.
const (
	noPort   hop.Port = -1
	wirePort hop.Port = 1
)

// Port implements hop.Radio.
func (w *network) Port(to hop.NodeID) hop.Port {
	if p := w.peers.byID[NodeID(to)]; p != nil && p.radio {
		return hop.RadioPort
	}
	return wirePort
}

// Free implements hop.Radio. Below the socket there is only what the kernel
// holds: on a wire it takes as much as it likes until it says no.
func (w *network) Free(p hop.Port, c hop.Class) int {
	switch {
	case w.full:
		return 0
	case p != hop.RadioPort:
		return hop.Unlimited
	}
	free := radioLimit - w.sock.Queued()/frameMemory - w.given[c]
	if c == hop.Control {
		free += radioLimit
	}
	return max(0, free)
}

// Below a radio's socket the kernel's queue is the MAC's: deeper than this it
// only adds delay, and it has to hold a txop. A full frame is charged with its
// buffer of 2 KiB and its descriptor (skb->truesize).
const (
	radioLimit  = 50
	frameMemory = 2304
)

// SetRoute sets the neighbour that leads to a destination; 0 takes the route
// back. Blocks under way move to it at their next announcement.
func (n *Node) SetRoute(dst, via NodeID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if via == 0 {
		delete(n.routes.given, dst)
		return
	}
	n.routes.given[dst] = via
}

// SetGateway sets the neighbour that leads to every destination that no route
// names; 0 is none.
func (n *Node) SetGateway(via NodeID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.routes.gateway = via
}
