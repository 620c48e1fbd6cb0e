package sim

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

// changes applies what the topology says of a run, one moment after the other.
type changes struct {
	w    *world
	todo []topology.Change
}

// schedule plans the first of the changes that are left.
func (x *changes) schedule() {
	if len(x.todo) > 0 {
		x.w.eng.Schedule(x.todo[0].At, x, 0)
	}
}

// Fire implements des.Handler.
func (x *changes) Fire(now vtime.Time, _ uint64) {
	for len(x.todo) > 0 && x.todo[0].At <= now {
		x.w.apply(now, &x.todo[0])
		x.todo = x.todo[1:]
	}
	x.schedule()
}

// apply switches a link or a node: a node speaks last and first with its radio off.
func (w *world) apply(now vtime.Time, c *topology.Change) {
	node, is := c.Node()
	if !is {
		if err := w.med.SetLinkUp(c.Link[0], c.Link[1], c.Up); err != nil {
			panic(fmt.Sprintf("sim: %v", err)) // the topology has these nodes
		}
		return
	}
	radio := func() {
		if w.med != nil && w.s.Topology.Nodes[node].Radio {
			w.med.SetNodeUp(node, c.Up)
		}
	}
	if c.Up {
		radio()
	}
	w.net.SetNodeUp(now, node, c.Up)
	if !c.Up {
		radio()
	}
}
