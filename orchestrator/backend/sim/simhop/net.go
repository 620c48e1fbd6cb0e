package simhop

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Overhead is what carries a Hop packet: the IPv4 header (20 B) and the UDP
// header (8 B).
const Overhead vtime.Bytes = 28

// MAC returns a node's MAC with the queues that Hop asks for (Hop paper §4):
// data in the background queue with the 8160 µs txop and without
// acknowledgements, control in the voice queue with them. The variants arq and
// no-txop change the data queue.
func MAC(m wifi.MAC, cfg hop.Config) wifi.MAC {
	bk := &m.Queues[wifi.BK]
	bk.TXOP, bk.Ack = hop.DataTxop, wifi.AckNone
	if cfg.NoTxop {
		bk.TXOP = 0
	}
	if cfg.DataARQ {
		bk.Ack = wifi.AckNormal
	}
	return m
}

// queues is the access category of each class.
var queues = [hop.NumClasses]wifi.AC{hop.Data: wifi.BK, hop.Control: wifi.VO}

// Net is the Hop of all nodes of one run. It is a wifi.Sink for its own
// frames; where other transports share the medium, their common sink asks
// Owns and calls Deliver and Done for these.
type Net struct {
	eng     *des.Engine
	med     *wifi.Medium
	nodes   []*node
	refused uint64
}

// node is one station's Hop and its timer.
type node struct {
	net   *Net
	id    int
	hop   *hop.Node
	event des.EventID
	at    vtime.Time // when event fires; vtime.Never: none
	busy  bool       // within flush: the medium may call back
}

// New returns a Net for stations 0…n-1, without a Hop node yet.
func New(eng *des.Engine, n int) *Net {
	return &Net{eng: eng, nodes: make([]*node, n)}
}

// Attach sets the medium, which is made after its sink.
func (x *Net) Attach(m *wifi.Medium) { x.med = m }

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

// Refused returns the number of packets that the medium did not take: those of
// nodes that are down. Hop sends none into a full queue.
func (x *Net) Refused() uint64 { return x.refused }

// Owns reports whether the frame is one of Hop's.
func (x *Net) Owns(f *wifi.Frame) bool { return f.Payload == any(x) }

// Deliver implements wifi.Sink.
func (x *Net) Deliver(now vtime.Time, i int, f *wifi.Frame) {
	if nd := x.nodes[i]; nd != nil {
		nd.hop.Receive(now, hop.NodeID(f.Src), f.Data)
		nd.flush(now)
	}
}

// Done implements wifi.Sink.
func (x *Net) Done(now vtime.Time, f *wifi.Frame, _ wifi.Outcome) {
	nd := x.nodes[f.Src]
	if nd == nil {
		return
	}
	c := hop.Data
	if f.AC == queues[hop.Control] {
		c = hop.Control
	}
	nd.hop.TxDone(now, c, 1)
	nd.flush(now)
}

// Free implements hop.Radio.
func (nd *node) Free(c hop.Class) int { return nd.net.med.Queue(nd.id, queues[c]).FreePackets }

// Fire implements des.Handler: the node's deadline has come.
func (nd *node) Fire(now vtime.Time, _ uint64) {
	nd.at = vtime.Never
	nd.event = 0
	nd.hop.Expire(now)
	nd.flush(now)
}

// flush hands the node's packets to the medium and keeps one event at or
// before its deadline. An event that comes too early finds nothing to do and
// is set again: deadlines mostly move back, and need no cancelling then.
func (nd *node) flush(now vtime.Time) {
	if nd.busy {
		return // the loop below goes on
	}
	nd.busy = true
	med := nd.net.med
	for {
		p, ok := nd.hop.Poll(now)
		if !ok {
			break
		}
		f := med.NewFrame()
		f.Src, f.Dst, f.AC = nd.id, int(p.To), queues[p.Class]
		f.Len = Overhead + vtime.Bytes(len(p.Buf))
		f.Data = append(f.Data[:0], p.Buf...)
		f.Payload = nd.net
		if !med.Enqueue(f) {
			nd.net.refused++
			nd.hop.TxDone(now, p.Class, 1)
		}
	}
	nd.busy = false
	if d := nd.hop.Deadline(); d < nd.at {
		nd.net.eng.Cancel(nd.event)
		nd.at = vtime.Max(d, now)
		nd.event = nd.net.eng.Schedule(nd.at, nd, 0)
	}
}
