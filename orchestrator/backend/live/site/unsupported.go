package site

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Name is the back end's name in results.
const Name = "ssh"

// Unsupported reports what real nodes cannot do of a file, before any of them is
// touched.
func Unsupported(c *spec.Config) error {
	refuse := func(what, because, do string) error {
		return &backend.ErrUnsupported{Backend: Name, What: what, Because: because, Do: do}
	}
	if len(c.Topology.Pipes) > 0 {
		return refuse("topology.pipes", "the wires between real nodes are what they are", "list topology.links, or run the file on netns or sim")
	}
	for _, n := range c.Topology.AllNodes() {
		switch {
		case n.Bridge:
			return refuse("topology.nodes: bridge", fmt.Sprintf("node %s would have to join interfaces that an inventory does not name", n.Name), "leave bridge out, or run the file on netns or sim")
		case !n.Radio:
			return refuse("topology.nodes: radio: false", fmt.Sprintf("node %s has one interface, the inventory's, which stands for its radio", n.Name), "leave radio out: the inventory says what the interface is (radio driver none for a wire)")
		}
	}
	for _, n := range c.Topology.AllNodes() {
		switch {
		case n.WindowRewriting != nil && n.WindowRewriting.Enabled:
			return refuse("topology.nodes: window-rewriting", fmt.Sprintf("the segments that pass the radio of node %s are its driver's, and nothing of ours sees them", n.Name), "leave it out, or run the file on netns or sim")
		case n.Queue != nil:
			return refuse("topology.nodes: queue", fmt.Sprintf("the queue of node %s is its driver's", n.Name), "leave it out, or run the file on netns or sim")
		}
	}
	switch t := &c.Transports.TCP; {
	case !t.SACK:
		return refuse("transports.tcp.sack", "it would be switched off for every connection of the hosts", "leave it out, or run the file on netns or sim")
	case !t.Timestamps:
		return refuse("transports.tcp.timestamps", "they would be switched off for every connection of the hosts", "leave it out, or run the file on netns or sim")
	}
	if len(c.Topology.Changes) > 0 {
		return refuse("topology.changes", "nobody can switch a real link on and off at a moment", "run the file on netns or sim")
	}
	return nil
}

// Check reports what of a plan cannot be done on an inventory's nodes, without
// reaching any, and returns those that the plan uses.
func Check(p *plan.Plan, inv *inventory.Inventory) ([]*inventory.Node, error) {
	var used []*inventory.Node
	seen := map[*spec.Config]bool{}
	for _, r := range p.Runs {
		c := r.Config()
		if seen[c] {
			continue // the same nodes in every repetition
		}
		seen[c] = true
		if err := Unsupported(c); err != nil {
			return nil, err
		}
		site, err := Match(c.Topology.NodeNames(), inv)
		if err != nil {
			return nil, err
		}
		sc, err := r.Network()
		if err != nil {
			return nil, err
		}
		for i, n := range site.Nodes {
			if want := Radio(sc, n); want != nil {
				if _, err := radio.Plan(*want); err != nil {
					return nil, fmt.Errorf("%s: node %s: %w", r.Label(), sc.Topology.Nodes[i].Name, err)
				}
			}
			if !slices.Contains(used, n) {
				used = append(used, n)
			}
		}
	}
	return used, nil
}

// Warnings says what a file wants of a model, and real nodes have not: their results
// do not depend on it.
func Warnings(p *plan.Plan) []string {
	given := map[string]bool{}
	for _, r := range p.Runs {
		c := r.Config()
		given["radio.noise"] = given["radio.noise"] || c.Radio.Noise != nil
		given["radio.sense"] = given["radio.sense"] || c.Radio.Sense != nil
		given["radio.capture"] = given["radio.capture"] || c.Radio.Capture != nil
		l := &c.Radio.PathLoss
		given["radio.path-loss"] = given["radio.path-loss"] || l.Kind == spec.Disk || l.Exponent != nil || l.ReferenceLoss != nil || l.Shadowing != nil
		given["topology.generate (but the number of nodes)"] = given["topology.generate (but the number of nodes)"] || c.Topology.Generate != nil
	}
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if given[k] {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return []string{"back end " + Name + ": of real nodes these say nothing, and are not looked at: " + strings.Join(keys, ", ")}
}
