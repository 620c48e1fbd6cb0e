package emulator

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Set changes a network that runs: all of it, or, where one part is refused,
// nothing. It takes effect between two events, at one moment.
type Set struct {
	Pipes []SetPipe `json:"pipes,omitempty"`
	Radio []SetLink `json:"radio,omitempty"`
	Nodes []SetNode `json:"nodes,omitempty"`
	MACs  []SetMAC  `json:"macs,omitempty"`
}

// SetPipe changes one direction of a wired link: from end End of pipe number Pipe.
type SetPipe struct {
	Pipe   int         `json:"pipe"`
	End    int         `json:"end"`
	Change pipe.Change `json:"change"` // At is ignored
}

// SetLink changes what one node's radio hears of another one's. Up concerns both
// directions.
type SetLink struct {
	From     int             `json:"from"`
	To       int             `json:"to"`
	Up       *bool           `json:"up,omitempty"`
	Loss     *vtime.Fraction `json:"loss,omitempty"`     // after the receiver's MAC
	Delivery *vtime.Fraction `json:"delivery,omitempty"` // of a listed link; see wifi.Medium.SetDelivery
}

// SetNode switches a node, with its radio and its wires, off or on.
type SetNode struct {
	Node int  `json:"node"`
	Up   bool `json:"up"`
}

// SetMAC gives a node's radio another configuration; see wifi.Medium.SetMAC.
type SetMAC struct {
	Node int      `json:"node"`
	MAC  wifi.MAC `json:"mac"`
}

// node names a node in errors; it reports one that does not exist.
func (c *Config) checkNode(i int) error {
	if i < 0 || i >= len(c.Nodes) {
		return fmt.Errorf("emulator: node %d does not exist (there are %d)", i, len(c.Nodes))
	}
	return nil
}

func (c *Config) checkRadio(i int) error {
	if err := c.checkNode(i); err != nil {
		return err
	}
	if c.Nodes[i].NoRadio {
		return fmt.Errorf("emulator: node %d (%s) has no radio", i, c.Nodes[i].Name)
	}
	return nil
}

// validateSet reports the first part of a change that the network cannot take.
// What the medium alone knows is asked by the core.
func (c *Config) validateSet(s *Set) error {
	if len(s.Pipes)+len(s.Radio)+len(s.Nodes)+len(s.MACs) == 0 {
		return errors.New("emulator: a change of nothing")
	}
	for i := range s.Pipes {
		p := &s.Pipes[i]
		if p.Pipe < 0 || p.Pipe >= len(c.Pipes) || p.End < 0 || p.End > 1 {
			return fmt.Errorf("emulator: end %d of pipe %d does not exist (there are %d pipes)", p.End, p.Pipe, len(c.Pipes))
		}
		if c.Pipes[p.Pipe].Kernel {
			return fmt.Errorf("emulator: pipe %d is the kernel's: it is changed at its interfaces", p.Pipe)
		}
		to := c.Pipes[p.Pipe].Config[p.End].Apply(&p.Change)
		if err := to.Validate(); err != nil {
			ends := c.Pipes[p.Pipe].Ends
			return fmt.Errorf("emulator: pipe %d from %s to %s: %w", p.Pipe, c.Nodes[ends[p.End].Node].Name, c.Nodes[ends[1-p.End].Node].Name, err)
		}
	}
	for i := range s.Radio {
		l := &s.Radio[i]
		if err := errors.Join(c.checkRadio(l.From), c.checkRadio(l.To)); err != nil {
			return err
		}
		switch {
		case l.From == l.To:
			return fmt.Errorf("emulator: a radio link of node %d (%s) to itself", l.From, c.Nodes[l.From].Name)
		case l.Loss != nil && !(*l.Loss >= 0 && *l.Loss <= 1):
			return fmt.Errorf("emulator: loss %v from %s to %s: want 0%% to 100%%", *l.Loss, c.Nodes[l.From].Name, c.Nodes[l.To].Name)
		case l.Delivery != nil && !(*l.Delivery > 0 && *l.Delivery <= 1):
			return fmt.Errorf("emulator: delivery %v from %s to %s: want above 0%%, at most 100%%", *l.Delivery, c.Nodes[l.From].Name, c.Nodes[l.To].Name)
		}
	}
	for _, n := range s.Nodes {
		if err := c.checkNode(n.Node); err != nil {
			return err
		}
	}
	for i := range s.MACs {
		m := &s.MACs[i]
		if err := c.checkRadio(m.Node); err != nil {
			return err
		}
		if err := c.mac(m.Node).Replaceable(&m.MAC); err != nil {
			return fmt.Errorf("emulator: node %d (%s): %w", m.Node, c.Nodes[m.Node].Name, err)
		}
	}
	return nil
}
