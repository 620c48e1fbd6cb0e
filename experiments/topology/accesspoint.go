package topology

import (
	"slices"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// newNode is a node of the file, without its place.
func newNode(id int, n *spec.Node) Node {
	out := Node{ID: id, Name: n.Name, Radio: n.Radio, Bridge: n.Bridge}
	if n.Queue != nil {
		out.Queue = *n.Queue
	}
	if w := n.WindowRewriting; w != nil && w.Enabled {
		out.Rewriting = &winrewrite.Config{Idle: w.Idle}
		if w.Share == spec.ShareWeighted {
			out.Rewriting.Weighted, out.Rewriting.Acks = true, w.Acks
		}
	}
	return out
}

// own makes a configuration that all nodes share the node's.
func (n *Node) own(m wifi.MAC) wifi.MAC {
	if n.Queue > 0 {
		for ac := range m.Queues {
			m.Queues[ac].Limit = n.Queue
		}
	}
	return m
}

// Own is node i's variant of a configuration that all nodes share: with the length
// of its own queues.
func (t *Topology) Own(i int, m wifi.MAC) wifi.MAC { return t.Nodes[i].own(m) }

// MACs are the configurations of the nodes' radios: one for all, or one each.
func (t *Topology) MACs() []wifi.MAC {
	if !slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Queue > 0 }) {
		return []wifi.MAC{t.MAC}
	}
	var out []wifi.MAC
	for i := range t.Nodes {
		out = append(out, t.Own(i, t.MAC))
	}
	return out
}

// Rewriting is how node i rewrites windows, nil if it does not. The buffer that
// it shares is its queue of best effort, which TCP's segments use unless a flow's
// DSCP says otherwise.
func (t *Topology) Rewriting(i int) *winrewrite.Config {
	if t.Nodes[i].Rewriting == nil {
		return nil
	}
	c := *t.Nodes[i].Rewriting
	c.Buffer = t.Own(i, t.MAC).Queues[wifi.BE].Limit
	return &c
}
