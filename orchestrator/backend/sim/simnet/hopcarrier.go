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
func (c carrier) Send(from, to int, _ hop.Port, class hop.Class, buf []byte) bool {
	p := c.net.originate(from)
	p.dst, p.via, p.ac = int32(to), int32(to), simhop.AC(class)
	p.len, p.hop = simhop.Overhead+vtime.Bytes(len(buf)), true
	return c.net.emit(from, p, buf)
}

// hopLeft tells a node's Hop that a packet has left one of its queues: its own,
// or another's (a bridge's, or another transport's), which makes room all the
// same.
func (n *Net) hopLeft(now vtime.Time, node int, port hop.Port, p *packet) {
	own := 0
	if p.hop && int(p.src) == node {
		own = 1
	}
	n.hop.TxDone(now, node, port, simhop.ClassOf(p.ac), own)
}
