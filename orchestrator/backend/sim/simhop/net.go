package simhop

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Overhead is what carries a Hop packet: the IPv4 header (20 B) and the UDP
// header (8 B).
const Overhead vtime.Bytes = 28

// Carrier takes Hop's packets to the neighbours of a node.
type Carrier interface {
	// Port returns the port of node from through which packets to its neighbour
	// to leave: hop.RadioPort, or 1+s for the pipe interface with slot s.
	Port(from, to int) hop.Port
	// Free is the number of further packets of MaxPacket bytes that the port's
	// queue for the class takes now; a pipe has one queue for both classes.
	Free(from int, p hop.Port, c hop.Class) int
	// Send takes the message m, to whose Len Overhead comes on top, over from node
	// from; m says where it goes. Whoever has it last gives it back with Net.Free.
	// False: it was not taken, and has been given back. Otherwise Net.TxDone is
	// called once the packet has left the queue, perhaps before Send returns.
	Send(from int, m *hop.Message) bool
}

// MaxPacket is the length of the largest IP packet that a Carrier is given.
const MaxPacket vtime.Bytes = 1500

// Net is the Hop of all nodes of one run.
type Net struct {
	eng     *des.Engine
	carrier Carrier
	nodes   []*node
	free    []*hop.Message
	refused uint64
}

// node is one station's Hop and its timer.
type node struct {
	net   *Net
	id    int
	hop   *hop.Node
	event des.EventID
	at    vtime.Time // when event fires; vtime.Never: none
	busy  bool       // within flush: the carrier may call back
}

// New returns a Net for stations 0…n-1, without a Hop node yet.
func New(eng *des.Engine, n int) *Net {
	return &Net{eng: eng, nodes: make([]*node, n)}
}

// SetCarrier sets what carries the packets, before the first of them.
func (x *Net) SetCarrier(c Carrier) { x.carrier = c }

// Add runs Hop on station i; its node id on the wire is i. A station that has
// Hop already loses its memory and starts again, as a node does that died.
func (x *Net) Add(i int, cfg hop.Config, routes hop.Routes, app hop.App) error {
	if i < 0 || i >= len(x.nodes) {
		return fmt.Errorf("simhop: there is no station %d, only 0…%d", i, len(x.nodes)-1)
	}
	cfg.ID = hop.NodeID(i)
	nd := &node{net: x, id: i, at: vtime.Never}
	h, err := hop.NewNode(cfg, nd, routes, app)
	if err != nil {
		return err
	}
	nd.hop = h
	if old := x.nodes[i]; old != nil {
		x.eng.Cancel(old.event)
	}
	x.nodes[i] = nd
	return nil
}

// Node returns station i's Hop for reading; nil if it has none. Whoever
// changes its state calls Flush.
func (x *Net) Node(i int) *hop.Node {
	if x.nodes[i] == nil {
		return nil
	}
	return x.nodes[i].hop
}

// Flush sends what station i has to send and sets its timer.
func (x *Net) Flush(i int) { x.nodes[i].flush(x.eng.Now()) }

// Open starts a flow at station src.
func (x *Net) Open(src int, id hop.FlowID, dst int, s hop.Source, opt hop.FlowOptions) error {
	nd := x.nodes[src]
	if nd == nil {
		return fmt.Errorf("simhop: station %d has no Hop", src)
	}
	err := nd.hop.OpenFlow(x.eng.Now(), id, hop.NodeID(dst), s, opt)
	nd.flush(x.eng.Now())
	return err
}

// Wake tells station src's flow that its source has bytes again.
func (x *Net) Wake(src int, id hop.FlowID, dst int) {
	nd := x.nodes[src]
	nd.hop.Wake(x.eng.Now(), id, hop.NodeID(dst))
	nd.flush(x.eng.Now())
}

// Refused returns the number of packets that the carrier did not take: those
// of nodes that are down. Hop sends none into a full queue.
func (x *Net) Refused() uint64 { return x.refused }

// Receive hands station i a message that its neighbour from sent, and does not take
// it over: several stations may receive one, or one several times.
func (x *Net) Receive(now vtime.Time, i, from int, m *hop.Message) {
	if nd := x.nodes[i]; nd != nil {
		nd.hop.ReceiveMessage(now, hop.NodeID(from), m)
		nd.flush(now)
	}
}

// message returns an empty message.
func (x *Net) message() *hop.Message {
	k := len(x.free)
	if k == 0 {
		return new(hop.Message)
	}
	m := x.free[k-1]
	x.free = x.free[:k-1]
	return m
}

// Clone returns a copy of a message, to be given back for itself.
func (x *Net) Clone(m *hop.Message) *hop.Message {
	c := x.message()
	c.Clone(m)
	return c
}

// Free takes back a message that was sent or cloned.
func (x *Net) Free(m *hop.Message) {
	m.Release()
	x.free = append(x.free, m)
}

// TxDone tells station i that k of its packets have left a queue. k = 0 tells
// that packets of others have: there may be room now.
func (x *Net) TxDone(now vtime.Time, i int, p hop.Port, c hop.Class, k int) {
	if nd := x.nodes[i]; nd != nil {
		nd.hop.TxDone(now, p, c, k)
		nd.flush(now)
	}
}

// Port implements hop.Radio.
func (nd *node) Port(to hop.NodeID) hop.Port { return nd.net.carrier.Port(nd.id, int(to)) }

// Free implements hop.Radio.
func (nd *node) Free(p hop.Port, c hop.Class) int { return nd.net.carrier.Free(nd.id, p, c) }

// Fire implements des.Handler: the node's deadline has come.
func (nd *node) Fire(now vtime.Time, _ uint64) {
	nd.at = vtime.Never
	nd.event = 0
	nd.hop.Expire(now)
	nd.flush(now)
}

// flush hands the node's packets to the carrier and keeps one event at or
// before its deadline. An event that comes too early finds nothing to do and
// is set again: deadlines mostly move back, and need no cancelling then.
func (nd *node) flush(now vtime.Time) {
	if nd.busy {
		return // the loop below goes on
	}
	nd.busy = true
	m := nd.net.message()
	for nd.hop.PollMessage(now, m) {
		port, class := m.Port, m.Class // m is the carrier's now
		if !nd.net.carrier.Send(nd.id, m) {
			nd.net.refused++
			nd.hop.TxDone(now, port, class, 1)
		}
		m = nd.net.message()
	}
	nd.net.free = append(nd.net.free, m)
	nd.busy = false
	if d := nd.hop.Deadline(); d < nd.at {
		nd.net.eng.Cancel(nd.event)
		nd.at = vtime.Max(d, now)
		nd.event = nd.net.eng.Schedule(nd.at, nd, 0)
	}
}
