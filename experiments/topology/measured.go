package topology

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
)

// Ground is what a network is laid out on beside its Config. The zero Ground is
// the radio model.
type Ground struct {
	// Measured: the routes go over the radio links in Pairs and no others, as
	// probes found them. On emulated nodes the medium stays that of the model.
	Measured bool
	Pairs    []etx.Pair
	// Real: the nodes are real ones. There is no model, so that a place means
	// nothing and nobody knows who senses whom; the radio links are those in Pairs,
	// or those that the file lists.
	Real bool
}

// ErrNoLinks says that nothing tells which real nodes hear each other.
var ErrNoLinks = errors.New("nothing says which nodes hear each other: real nodes have no radio model; set routing.kind: measured, or list topology.links")

// measured routes over measured links in place of the model's.
func (t *Topology) measured(c *spec.Config, pairs []etx.Pair) error {
	n := len(t.Nodes)
	at := map[[2]int]*Link{}
	for i := range t.Links {
		l := &t.Links[i]
		l.Delivery, l.Reverse, l.ETX, l.Usable = 0, 0, math.Inf(1), false
		at[[2]int{l.From, l.To}] = l
	}
	t.Graph = etx.NewGraph(n)
	var links []Link
	for i := range pairs {
		p := &pairs[i]
		for _, r := range [][2]*etx.Rated{{&p.There, &p.Back}, {&p.Back, &p.There}} {
			there, back := r[0], r[1]
			if there.From < 0 || there.From >= n || there.To < 0 || there.To >= n || there.From == there.To {
				return fmt.Errorf("measured links: a link from node %d to node %d, but the network has %d nodes", there.From, there.To, n)
			}
			if !t.Nodes[there.From].Radio || !t.Nodes[there.To].Radio {
				return fmt.Errorf("measured links: a link from %s to %s, but one of them has no radio", t.Nodes[there.From].Name, t.Nodes[there.To].Name)
			}
			l := at[[2]int{there.From, there.To}]
			if l == nil {
				links = append(links, Link{From: there.From, To: there.To, Distance: t.Nodes[there.From].Position.Distance(t.Nodes[there.To].Position)})
				l = &links[len(links)-1]
				if t.Channel != nil {
					l.SNR, l.Senses = t.Channel.SNR(there.From, there.To), t.Channel.Senses(there.To, there.From)
				}
			}
			l.Delivery, l.Reverse, l.ETX, l.Usable, l.Measured = there.Delivery, back.Delivery, p.ETX, p.Usable, there
			if p.Usable {
				t.Graph.Set(there.From, there.To, there.Delivery, back.Delivery)
			}
		}
	}
	t.Links = append(t.Links, links...)
	t.sortLinks()
	t.connect(metric(c))
	return nil
}

// buildReal lays out a network of real nodes.
func buildReal(g Ground, c *spec.Config) (*Topology, error) {
	t := &Topology{Seed: c.Seed, Tries: 1}
	var err error
	if t.MAC, err = MAC(c); err != nil {
		return nil, err
	}
	for i, n := range c.Topology.AllNodes() {
		real := newNode(i, &n)
		real.Position = listedAt(&n)
		t.Nodes = append(t.Nodes, real)
	}
	if err := t.pipes(c, 0); err != nil {
		return nil, err
	}
	if err := t.changes(c); err != nil {
		return nil, err
	}
	if g.Measured {
		return t, t.measured(c, g.Pairs)
	}
	if len(c.Topology.Links) == 0 {
		return nil, ErrNoLinks
	}
	t.listReal(c)
	t.connect(metric(c))
	return t, nil
}

// listReal takes the links of the file at their word.
func (t *Topology) listReal(c *spec.Config) {
	t.Graph = etx.NewGraph(len(t.Nodes))
	least := float64(c.Routing.MinDelivery)
	for _, l := range c.Topology.Links {
		from, to := t.index(l.From), t.index(l.To)
		there, back := float64(l.Delivery), float64(l.Delivery)
		if l.Reverse != nil {
			back = float64(*l.Reverse)
		}
		for _, d := range []Link{{From: from, To: to, Delivery: there, Reverse: back}, {From: to, To: from, Delivery: back, Reverse: there}} {
			d.ETX = etx.Link(d.Delivery, d.Reverse)
			d.Distance = t.Nodes[d.From].Position.Distance(t.Nodes[d.To].Position)
			if d.Usable = d.Delivery >= least && d.Reverse >= least; d.Usable {
				t.Graph.Set(d.From, d.To, d.Delivery, d.Reverse)
			}
			t.Links = append(t.Links, d)
		}
	}
	t.sortLinks()
}

// sortLinks puts the links in the order of From, then To.
func (t *Topology) sortLinks() {
	slices.SortFunc(t.Links, func(a, b Link) int { return cmp.Or(a.From-b.From, a.To-b.To) })
}
