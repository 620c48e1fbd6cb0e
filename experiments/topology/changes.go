package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Change is what happens to one radio link or one node while the network runs.
type Change struct {
	At vtime.Time // on the run's clock
	// Link holds the two nodes of a radio link; of a node's change both are the
	// node.
	Link [2]int
	Up   bool
}

// Node reports whether the change is of a node, and which.
func (c *Change) Node() (int, bool) { return c.Link[0], c.Link[0] == c.Link[1] }

// Place names what is switched: "n03", or "n01 – n02".
func (t *Topology) Place(c *Change) string {
	if n, is := c.Node(); is {
		return t.Nodes[n].Name
	}
	return t.Nodes[c.Link[0]].Name + " – " + t.Nodes[c.Link[1]].Name
}

// changes resolves the names of what happens in a run of the Config.
func (t *Topology) changes(c *spec.Config) error {
	for _, s := range c.Switches() {
		ch := Change{At: vtime.Time(s.At), Up: s.Up}
		names := []string{s.Link[0], s.Link[1]}
		if s.Node != "" {
			names = []string{s.Node, s.Node}
		}
		for e, name := range names {
			if ch.Link[e] = t.index(name); ch.Link[e] < 0 {
				return fmt.Errorf("topology.changes: there is no node %s", name)
			}
		}
		t.Changes = append(t.Changes, ch)
	}
	for _, name := range c.Topology.SwitchedNodes() {
		t.switched = append(t.switched, t.index(name))
	}
	for i := range c.Topology.Changes {
		t.described = append(t.described, c.Topology.Changes[i].String())
	}
	return nil
}

// endless reports whether flows may not begin or end at a node, because it is
// switched off in the course of the run.
func (t *Topology) endless(node int) bool { return slices.Contains(t.switched, node) }

// Unnoticed returns the links of changes whose nodes do not notice each other at all,
// so that nothing happens there.
func (t *Topology) Unnoticed() []string {
	var out []string
	if t.Channel == nil {
		return nil
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		if _, is := c.Node(); is || t.Channel.Notices(c.Link[0], c.Link[1]) || t.Channel.Notices(c.Link[1], c.Link[0]) {
			continue
		}
		if p := t.Place(c); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func (t *Topology) describeChanges(b *strings.Builder) {
	for i, text := range t.described {
		if i == maxListed {
			fmt.Fprintf(b, "… and %d more changes\n", len(t.described)-i)
			break
		}
		fmt.Fprintf(b, "change: %s\n", text)
	}
}
