package emulator

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// changes applies the configuration's changes as events of the engine, one after the
// other, from the run's time 0 on.
type changes struct {
	c      *core
	epoch  vtime.Time
	todo   []Change
	next   vtime.Time // of the first of todo, for the wake-up; Never if none
	report ChangesReport
}

func (x *changes) init(c *core) { x.c, x.next = c, vtime.Never }

// begin sets the run's clock.
func (x *changes) begin(epoch vtime.Time) {
	x.epoch, x.todo = epoch, x.c.cfg.Changes
	x.schedule()
}

func (x *changes) schedule() {
	if x.next = vtime.Never; len(x.todo) > 0 {
		x.next = max(x.epoch.Add(vtime.Duration(x.todo[0].At)), x.c.eng.Now())
		x.c.eng.Schedule(x.next, x, 0)
	}
}

// Fire applies what is due. It implements des.Handler.
func (x *changes) Fire(now vtime.Time, _ uint64) {
	late := max(x.c.loop.Clock().Sub(x.epoch.Add(vtime.Duration(x.todo[0].At))), 0)
	if r := &x.report; late > r.MaxLate || r.Applied == 0 {
		r.MaxLate, r.LatestAt = late, x.todo[0].At
	}
	for len(x.todo) > 0 && x.epoch.Add(vtime.Duration(x.todo[0].At)) <= now {
		x.c.apply(&x.todo[0])
		x.todo = x.todo[1:]
		x.report.Applied++
	}
	x.schedule()
}

// apply switches a link or a node.
func (c *core) apply(ch *Change) {
	node, is := ch.node()
	if !is {
		if err := c.medium.SetLinkUp(ch.Link[0], ch.Link[1], ch.Up); err != nil {
			panic(fmt.Sprintf("emulator: %v", err)) // the configuration was validated
		}
		return
	}
	if c.medium != nil && !c.cfg.Nodes[node].NoRadio {
		c.medium.SetNodeUp(node, ch.Up)
	}
	for _, w := range c.wires {
		to := c.wires[w.cell^1].node
		if w.node == node {
			w.pipe.SetSender(ch.Up)
		}
		if to == node {
			w.pipe.SetReceiver(ch.Up)
		}
		if w.node == node || to == node {
			w.publishLimit()
		}
	}
}
