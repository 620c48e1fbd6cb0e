package emulator

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/netem/wifi"
)

// set applies a change, or nothing of it; on the pacing thread.
func (c *core) set(s *Set) error {
	if err := c.cfg.validateSet(s); err != nil {
		return err
	}
	for i := range s.Radio {
		l := &s.Radio[i]
		if _, ok := c.medium.Delivery(l.From, l.To); l.Delivery != nil && !ok {
			return fmt.Errorf("emulator: the radio link from %s to %s is not a listed one: its delivery follows from the radio model",
				c.cfg.Nodes[l.From].Name, c.cfg.Nodes[l.To].Name)
		}
	}
	// From here on nothing can be refused: what was checked is the medium's and the
	// pipes' own condition.
	for i := range s.Pipes {
		p := &s.Pipes[i]
		w := c.wires[2*p.Pipe+p.End]
		*w.cfg = w.cfg.Apply(&p.Change) // for the pipe that Begin makes
		w.pipe.Apply(p.Change)
		w.publishLimit()
	}
	for i := range s.Radio {
		must(c.setLink(&s.Radio[i]))
	}
	for _, n := range s.Nodes {
		c.apply(&Change{Link: [2]int{n.Node, n.Node}, Up: n.Up})
	}
	for i := range s.MACs {
		m := &s.MACs[i]
		must(c.medium.SetMAC(m.Node, m.MAC))
		c.keepMAC(m.Node, &m.MAC)
	}
	return nil
}

func (c *core) setLink(l *SetLink) error {
	if l.Loss != nil {
		if err := c.medium.SetLoss(l.From, l.To, *l.Loss); err != nil {
			return err
		}
	}
	if l.Delivery != nil {
		if err := c.medium.SetDelivery(l.From, l.To, *l.Delivery); err != nil {
			return err
		}
	}
	if l.Up != nil {
		return c.medium.SetLinkUp(l.From, l.To, *l.Up)
	}
	return nil
}

// keepMAC notes a node's configuration where the next change is checked against
// it, and shows the limits of its queues.
func (c *core) keepMAC(node int, mac *wifi.MAC) {
	if n := len(c.cfg.Nodes); len(c.cfg.MACs) == 1 && n > 1 {
		c.cfg.MACs = slices.Repeat(c.cfg.MACs, n)
	}
	*c.cfg.mac(node) = *mac
	if c.board != nil {
		for ac := range wifi.NumAC {
			c.board.SetLimit(node, ac, mac.Queues[ac].Limit)
		}
	}
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("emulator: a change that was checked: %v", err))
	}
}

// Set changes the network while it runs, all of it or, with an error, nothing. It
// is in force when Set returns; a radio that transmits at that moment takes its
// new configuration after that frame. A wire that was taken down before Begin is
// up again at the run's time 0, when the pipes are made anew.
func (p *Proc) Set(ctx context.Context, s Set) error {
	_, err := p.ask(ctx, order{Set: &s})
	return err
}
