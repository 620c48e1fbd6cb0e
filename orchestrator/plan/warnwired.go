package plan

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/experiments/spec"
)

// grantExpiry is how long a Hop receiver keeps a grant for a sender that it does
// not hear (an experiment file cannot change it).
var grantExpiry = hop.DefaultConfig().GrantExpiry

// hopOverWires looks at what keeps Hop from filling wires.
func hopOverWires(c *spec.Config) []string {
	var w []string
	for i := range c.Topology.Pipes {
		p := &c.Topology.Pipes[i]
		if rtt := p.Delay + p.Backward().Delay; rtt >= grantExpiry {
			w = append(w, fmt.Sprintf("topology.pipes[%d], between %s and %s: its round trip of %v is longer than a Hop receiver waits for the sender that it has granted a block to, %v: no block of Hop gets across", i, p.Ends[0], p.Ends[1], rtt, grantExpiry))
		}
	}
	relays := map[string]int{}
	for i := range c.Topology.Pipes {
		for _, end := range c.Topology.Pipes[i].Ends {
			relays[end]++
		}
	}
	if o := c.Transports.Hop; o.H == 1 && o.Backpressure {
		for _, n := range c.Topology.AllNodes() {
			if relays[n.Name] > 1 && !n.Bridge {
				w = append(w, fmt.Sprintf("transports.hop.h: 1: a relay between two wires, such as %s, could receive a block while it sends another, and with one block it does not: half of the goodput; h: 2 lets it", n.Name))
				break
			}
		}
	}
	return w
}

// unlimited tells of a network in which nothing limits the rate.
func unlimited(c *spec.Config) []string {
	if len(c.Topology.Pipes) == 0 || wiredNodes(c) < len(c.Topology.AllNodes()) {
		return nil
	}
	if !slices.ContainsFunc(c.Flows, func(f spec.Flow) bool { return !f.Workload.HasMessages() }) {
		return nil // no flow would fill it
	}
	for i := range c.Topology.Pipes {
		p := &c.Topology.Pipes[i]
		for _, d := range []*spec.Direction{&p.Direction, p.Backward()} {
			if d.Rate > 0 || d.Trace != nil {
				return nil
			}
			for _, ch := range d.Schedule {
				if ch.Rate != nil {
					return nil
				}
			}
		}
	}
	return []string{"topology.pipes: no wire has a rate: on netns a goodput is what this host can carry, and says nothing of a network"}
}
