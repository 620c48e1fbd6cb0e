package topology

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Build returns the topology of one repetition (counted from 0) of a point, by
// the radio model. The error says what could not be met and what to change.
func Build(c *spec.Config, repetition int) (*Topology, error) {
	return BuildOn(Ground{}, c, repetition)
}

// BuildOn is Build on what is known of the network beside its Config.
func BuildOn(g Ground, c *spec.Config, repetition int) (*Topology, error) {
	if g.Real {
		return buildReal(g, c)
	}
	t, err := byModel(c, repetition)
	if err == nil && g.Measured {
		err = t.measured(c, g.Pairs)
	}
	return t, err
}

// byModel lays a network out by the radio model.
func byModel(c *spec.Config, repetition int) (*Topology, error) {
	t := &Topology{Seed: c.Seed, Tries: 1}
	var err error
	if t.MAC, err = MAC(c); err != nil {
		return nil, err
	}
	if t.Radio, err = Radio(c); err != nil {
		return nil, err
	}
	for i, n := range c.Topology.AllNodes() {
		t.Nodes = append(t.Nodes, newNode(i, &n))
	}
	if err := t.pipes(c, repetition); err != nil {
		return nil, err
	}
	if err := t.changes(c); err != nil {
		return nil, err
	}
	g := c.Topology.Generate
	switch {
	case g == nil:
		return t, t.listed(c)
	case g.Seed != nil:
		t.Seed = *g.Seed
	}
	if g.Vary == spec.VaryRepetition {
		t.Seed = spec.RepetitionSeed(t.Seed, repetition)
	}
	if g.Kind == spec.RandomMesh {
		return t, t.randomMesh(c, g)
	}
	t.ChannelSeed = des.NewStream(t.Seed, "topology/channel").Uint64()
	if err := t.place(c, shape(g)); err != nil {
		return nil, err
	}
	if parts := t.apart(); parts != "" {
		return nil, fmt.Errorf("the %s is disconnected: %s; choose a smaller spacing than %v, or more radio.tx-power", g.Kind, parts, g.Spacing)
	}
	return t, nil
}

// listed builds the topology of the nodes in the file. It may fall apart: what
// matters is whether each flow has a route.
func (t *Topology) listed(c *spec.Config) error {
	pos := make([]wifi.Position, len(t.Nodes))
	for i := range c.Topology.Nodes {
		pos[i] = listedAt(&c.Topology.Nodes[i])
	}
	t.ChannelSeed = des.NewStream(t.Seed, "topology/channel").Uint64()
	if len(c.Topology.Links) == 0 {
		return t.place(c, pos)
	}
	t.Delivery = make([][]float64, len(t.Nodes))
	for i := range t.Delivery {
		t.Delivery[i] = make([]float64, len(t.Nodes))
		t.Nodes[i].Position = pos[i]
	}
	for _, l := range c.Topology.Links {
		from, to := t.index(l.From), t.index(l.To)
		t.Delivery[from][to], t.Delivery[to][from] = float64(l.Delivery), float64(l.Delivery)
		if l.Reverse != nil {
			t.Delivery[to][from] = float64(*l.Reverse)
		}
	}
	ch, err := wifi.NewMatrixChannel(t.Delivery, nil, nil)
	if err != nil {
		return fmt.Errorf("topology.links: %w", err)
	}
	t.rate(c, ch)
	return nil
}

func listedAt(n *spec.Node) wifi.Position {
	if n.At == nil {
		return wifi.Position{}
	}
	return wifi.Position{X: n.At.X, Y: n.At.Y}
}

// place puts the nodes down, rates the links by the radio model and computes
// the routes.
func (t *Topology) place(c *spec.Config, pos []wifi.Position) error {
	// Listed nodes beside generated ones are wired: where they are matters to
	// drawings only.
	for _, n := range c.Topology.AllNodes()[len(pos):] {
		pos = append(pos, listedAt(&n))
	}
	for i := range t.Nodes {
		t.Nodes[i].Position = pos[i]
	}
	ch, err := wifi.NewChannel(t.ChannelSeed, t.Radio, t.MAC, pos, t.Mute()...)
	if err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	t.rate(c, ch)
	return nil
}

// rate fills links and routes from a channel.
func (t *Topology) rate(c *spec.Config, ch *wifi.Channel) {
	n := len(t.Nodes)
	t.Channel, t.Graph, t.Links = ch, etx.NewGraph(n), nil
	least := float64(c.Routing.MinDelivery)
	for i := range n {
		for j := range n {
			if i == j {
				continue
			}
			l := Link{From: i, To: j, Senses: ch.Senses(j, i), Delivery: ch.Delivery(i, j, DataFrame, t.MAC.Rate)}
			if l.Delivery < negligible && !l.Senses {
				continue
			}
			l.Reverse = ch.Delivery(j, i, 0, t.MAC.BasicRate)
			l.SNR = ch.SNR(i, j)
			l.Distance = t.Nodes[i].Position.Distance(t.Nodes[j].Position)
			if l.Usable = l.Delivery >= least && l.Reverse >= least; l.Usable {
				t.Graph.Set(i, j, l.Delivery, l.Reverse)
			}
			l.ETX = etx.Link(l.Delivery, l.Reverse)
			t.Links = append(t.Links, l)
		}
	}
	t.connect(metric(c))
}

func metric(c *spec.Config) etx.Metric {
	if c.Routing.Metric == spec.MetricHops {
		return etx.Hops
	}
	return etx.ETX
}

// negligible is the delivery probability below which a link that is not sensed
// either is not worth a row.
const negligible = 0.001

// randomMesh draws placements until one is connected and has pairs enough for
// every length of route that the flows ask for.
func (t *Topology) randomMesh(c *spec.Config, g *spec.Generate) error {
	s := des.NewStream(t.Seed, "topology/placement")
	var why rejections
	for t.Tries = 1; t.Tries <= g.Tries; t.Tries++ {
		t.ChannelSeed = s.Uint64()
		if err := t.place(c, scatter(s, g.Nodes, g.Area)); err != nil {
			return err
		}
		if parts := t.apart(); parts != "" {
			why.disconnected++
			why.parts = parts
			continue
		}
		if longest := t.longest(); longest < g.MinHops {
			why.short++
			why.longest = max(why.longest, longest)
			continue
		}
		if class := t.missing(c); class != "" {
			why.missing++
			why.class = class
			continue
		}
		return nil
	}
	return fmt.Errorf("no random mesh of %d nodes on %v × %v in %d placements fits: %s", g.Nodes, g.Area.Width, g.Area.Height, g.Tries, why.String())
}

// longest returns the length of the longest route.
func (t *Topology) longest() int {
	most := 0
	for i := range t.Nodes {
		for j := range t.Nodes {
			most = max(most, t.Routes.Hops(i, j))
		}
	}
	return most
}

// missing names a class of route lengths for which the mesh has fewer pairs than
// a flow group has flows, or "". More pairs than nodes are never asked for: a
// group may have thousands of flows.
func (t *Topology) missing(c *spec.Config) string {
	for g := range c.Flows {
		f := &c.Flows[g]
		if !f.Pairs.Random() || f.Hops.Any() {
			continue
		}
		pairs := t.candidates(f)
		for k, n := range f.Hops.Counts(f.Count) {
			if len(pairs[k]) < min(n, len(t.Nodes)) {
				return f.Hops.Classes[k].String()
			}
		}
	}
	return ""
}

// rejections counts why placements did not fit.
type rejections struct {
	disconnected, short, missing int
	parts, class                 string
	longest                      int
}

func (r *rejections) String() string {
	var s []string
	if r.disconnected > 0 {
		s = append(s, fmt.Sprintf("%d were disconnected (the last one: %s): shrink topology.generate.area, or raise nodes or radio.tx-power", r.disconnected, r.parts))
	}
	if r.short > 0 {
		s = append(s, fmt.Sprintf("%d had no route of min-hops (the longest had %d): enlarge the area, or lower min-hops or radio.tx-power", r.short, r.longest))
	}
	if r.missing > 0 {
		s = append(s, fmt.Sprintf("%d had fewer pairs than flows in a class of flows[].hops (the last one: %s hops): make the area longer and narrower, or widen the class", r.missing, r.class))
	}
	return strings.Join(s, "; ")
}

// describe lists components by their size and first nodes.
func (t *Topology) describe(parts [][]int) string {
	var s []string
	for i, p := range parts {
		if i == 4 {
			s = append(s, "…")
			break
		}
		var names []string
		for k, v := range p {
			if k == 3 {
				names = append(names, "…")
				break
			}
			names = append(names, t.Nodes[v].Name)
		}
		s = append(s, fmt.Sprintf("%d (%s)", len(p), strings.Join(names, " ")))
	}
	return fmt.Sprintf("%d components of %s nodes", len(parts), strings.Join(s, ", "))
}
