package topology

import "github.com/hopbed/hopbed/netem/pipe"

// Pipe is a wired link between two nodes.
type Pipe struct {
	ID         int
	Ends       [2]int    // node ids
	Interfaces [2]string // the link's interface at either end
	// Slot is the interface's number among the node's pipe interfaces, from 0,
	// at either end.
	Slot [2]int
	// Config describes either direction: Config[0] from Ends[0] to Ends[1].
	Config [2]pipe.Config
}

// Egress is how a packet leaves a node for its next hop.
type Egress struct {
	// Pipe is the index in Topology.Pipes, or RadioEgress; End is the node's end
	// of it, so that the direction is Pipes[Pipe].Config[End].
	Pipe, End int
	// Next is the node that takes the frame from the link: the next hop
	// itself, or the first of the bridges before it.
	Next int
}

// RadioEgress is Egress.Pipe of what leaves through the radio.
const RadioEgress = -1

// Egress returns the link on which node i sends what is for its neighbour via
// (Routes.NextHop); false when they are no neighbours.
func (t *Topology) Egress(i, via int) (Egress, bool) {
	if i == via || via < 0 || via >= len(t.Nodes) || t.Routes.Hops(i, via) != 1 {
		return Egress{}, false
	}
	return Egress{Pipe: RadioEgress, Next: via}, true
}
