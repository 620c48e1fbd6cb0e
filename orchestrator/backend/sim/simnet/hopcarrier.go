package simnet

import (
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend/sim/simhop"
)

// carrier takes Hop's packets over the radio and the wired links.
type carrier struct{ net *Net }

// Port implements simhop.Carrier.
func (c carrier) Port(from, to int) hop.Port {
	if w, _, _ := c.net.out(from, to); w != nil {
		return hop.Port(w.number)
	}
	return hop.RadioPort
}

// Free implements simhop.Carrier.
func (c carrier) Free(from int, p hop.Port, class hop.Class) int {
	if p == hop.RadioPort {
		return c.net.med.Queue(from, simhop.AC(class)).FreePackets
	}
	for _, w := range c.net.wires[from] {
		if w.number == int(p) {
			return w.pipe.Room(simhop.MaxPacket)
		}
	}
	return 0
}

// Send implements simhop.Carrier.
func (c carrier) Send(from int, m *hop.Message) bool {
	p := c.net.originate(from)
	p.dst, p.via, p.ac = int32(m.To), int32(m.To), simhop.AC(m.Class)
	p.len, p.hop = simhop.Overhead+vtime.Bytes(m.Len()), m
	return c.net.emit(from, p)
}

// hopLeft tells a node's Hop that a packet has left its radio's queue: its own, or
// one that the node passes on as a bridge, which makes room all the same.
func (n *Net) hopLeft(now vtime.Time, node int, p *packet) {
	own := 0
	if p.hop != nil && int(p.src) == node {
		own = 1
	}
	n.hop.TxDone(now, node, hop.RadioPort, simhop.ClassOf(p.ac), own)
}

// reaction is the time until a node's Hop knows what has left a wire's queue: an
// agent has to be woken. A wire may carry a burst in one instant (a trace), which
// nobody could refill meanwhile. It is shorter than any saturating source's, so
// that Hop, which keeps a few packets in the queue only, comes first.
const reaction = 50 * vtime.Microsecond

// departures are the packets that have left a wire's queue and that the node's
// Hop does not know of yet.
type departures struct {
	w         *port
	own       int
	others    bool
	scheduled bool
}

func (d *departures) note(now vtime.Time, w *port, p *packet) {
	if p.hop != nil && int(p.src) == w.node {
		d.own++
	} else {
		d.others = true
	}
	if !d.scheduled {
		d.w, d.scheduled = w, true
		w.net.eng.Schedule(now.Add(reaction), d, uint64(w.node))
	}
}

// Fire implements des.Handler: Hop is told.
func (d *departures) Fire(now vtime.Time, _ uint64) {
	own, others, x := d.own, d.others, d.w.net.hop
	d.own, d.others, d.scheduled = 0, false, false
	port := hop.Port(d.w.number)
	if others {
		x.TxDone(now, d.w.node, port, hop.Data, 0)
	}
	if own > 0 {
		x.TxDone(now, d.w.node, port, hop.Data, own)
	}
}
