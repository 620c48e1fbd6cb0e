package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Pipe is a wired link between two nodes.
type Pipe struct {
	ID   int // names the link's random streams
	Ends [2]int
	// Slot is the number of the link's interface among the node's wired ones, from
	// 0, at either end.
	Slot [2]int
	// Config describes either direction: Config[0] from Ends[0] to Ends[1].
	Config [2]pipe.Config
}

// Egress is how a packet leaves a node for its next hop.
type Egress struct {
	// Pipe is the index in Config.Pipes, or Radio; End is the node's end of it.
	Pipe, End int
	// Next is the node that takes it from the link: the next hop itself, or the
	// first of the bridges before it.
	Next int
}

// Radio is Egress.Pipe of what leaves by the radio.
const Radio = -1

// Links tells by which link nodes reach their neighbours.
type Links interface {
	// Egress returns how node from sends what is for its neighbour via; false
	// when they are none.
	Egress(from, via int) (Egress, bool)
}

// port is a node's end of a wired link with the direction that leads away from
// the node. It is the sink of that direction.
type port struct {
	net        *Net
	node, peer int
	number     int // among the node's ports: 0 is its radio (hop.RadioPort), 1+s its wired interface s
	pipe       *pipe.Pipe
	cfg        *pipe.Config
	udp        saturation
	left       departures
}

// out is a resolved Egress; next is unresolved, noNeighbour, or a node.
type out struct {
	port *port // nil: the radio
	next int32
}

const (
	unresolved  = 0 // node n is stored as n+1
	noNeighbour = -1
)

// addPipes makes the wired links: one pipe.Pipe for each direction, with the
// stream names that live runs use as well.
func (n *Net) addPipes() error {
	if len(n.cfg.Pipes) > 0 {
		n.wires = make([][]*port, n.cfg.Nodes)
	}
	for i := range n.cfg.Pipes {
		p := &n.cfg.Pipes[i]
		var ends [2]*port
		for e := range ends {
			if p.Ends[e] < 0 || p.Ends[e] >= n.cfg.Nodes || p.Ends[0] == p.Ends[1] {
				return fmt.Errorf("wired link %d joins node %d and node %d: want two of the nodes 0…%d", p.ID, p.Ends[0], p.Ends[1], n.cfg.Nodes-1)
			}
			w := &port{net: n, node: p.Ends[e], peer: p.Ends[1-e], number: 1 + p.Slot[e], cfg: &p.Config[e]}
			w.udp.port, w.udp.net, w.udp.node = w, n, w.node
			var err error
			if w.pipe, err = pipe.New(n.eng, n.cfg.Seed, fmt.Sprintf("pipe/%d/%d", p.ID, e), p.Config[e], w); err != nil {
				return fmt.Errorf("wired link %d from node %d to node %d: %w", p.ID, w.node, w.peer, err)
			}
			ends[e] = w
			n.wires[w.node] = append(n.wires[w.node], w)
		}
		n.ports = append(n.ports, ends)
	}
	if n.cfg.Links != nil {
		n.outs = make([][]out, n.cfg.Nodes)
	}
	return nil
}

// out returns how a packet leaves a node for its neighbour; false when they are
// no neighbours. Each pair is asked for once.
func (n *Net) out(from, via int) (w *port, next int, ok bool) {
	if n.outs == nil {
		return nil, via, true
	}
	if n.outs[from] == nil {
		n.outs[from] = make([]out, n.cfg.Nodes)
	}
	o := &n.outs[from][via]
	if o.next == unresolved {
		*o = n.resolve(from, via)
	}
	return o.port, int(o.next) - 1, o.next > 0
}

func (n *Net) resolve(from, via int) out {
	e, ok := n.cfg.Links.Egress(from, via)
	if !ok || e.Next < 0 || e.Next >= n.cfg.Nodes {
		return out{next: noNeighbour}
	}
	o := out{next: int32(e.Next) + 1}
	if e.Pipe != Radio {
		o.port = n.ports[e.Pipe][e.End]
	}
	return o
}

// send puts a packet into the link and takes it over. It reports false when the
// packet was lost or refused at once.
func (w *port) send(p *packet) bool {
	k := w.pipe.NewPacket()
	k.Len, k.Payload = p.len, p
	return w.pipe.Send(k)
}

// Deliver implements pipe.Sink.
func (w *port) Deliver(now vtime.Time, k *pipe.Packet) {
	w.net.arrive(now, w.peer, k.Payload.(*packet), true)
}

// Drop implements pipe.Sink. That a packet was lost is not its sender's to know.
func (w *port) Drop(_ vtime.Time, k *pipe.Packet, _ pipe.Cause) {
	w.net.freePacket(k.Payload.(*packet))
}

// Clone implements pipe.Cloner: the second copy of a duplicated packet.
func (w *port) Clone(payload any) any { return w.net.copyPacket(payload.(*packet)) }

// Left implements pipe.Leaver: there is room again.
func (w *port) Left(now vtime.Time, k *pipe.Packet) {
	if w.net.hop != nil {
		w.left.note(now, w, k.Payload.(*packet))
	}
	w.udp.freed(now)
}

// PipeStats returns the counters of the wired links, in the order of
// Config.Pipes, for either direction.
func (n *Net) PipeStats() [][2]pipe.Stats {
	s := make([][2]pipe.Stats, len(n.ports))
	for i, ends := range n.ports {
		for e, w := range ends {
			s[i][e] = w.pipe.Stats()
		}
	}
	return s
}

// ResetStats sets the counters of the wired links to zero: the end of the
// warm-up.
func (n *Net) ResetStats() {
	for _, ends := range n.ports {
		for _, w := range ends {
			w.pipe.ResetStats()
		}
	}
}
