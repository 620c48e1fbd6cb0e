package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
)

// layer is the link layer of a network with pipes or bridges: every link, and
// the way over links to each node that bridges join.
type layer struct {
	links []hop
	table *etx.Table // arcs are indices in links
}

// hop is one link as one node uses it.
type hop struct {
	Egress
	from int
	etx  float64
}

func (h *hop) radio() bool { return h.Pipe == RadioEgress }

// connect computes how nodes reach each other, first over links and bridges,
// then over the nodes that route.
//
// A bridge has one way to each node, as its forwarding table does, and it does
// not send a frame back through the interface by which it came (IEEE 802.1Q,
// 8.6.1): from radio to radio it carries nothing. A node that routes carries
// nothing at the link layer, a bridge nothing above it.
func (t *Topology) connect(m etx.Metric) {
	bridged := false
	for _, n := range t.Nodes {
		bridged = bridged || n.Bridge
	}
	if len(t.Pipes) == 0 && !bridged {
		t.layer, t.Routes = nil, etx.ShortestPaths(t.Graph, m)
		return
	}
	l := &layer{}
	for _, k := range t.Links {
		if k.Usable {
			l.links = append(l.links, hop{Egress{RadioEgress, 0, k.To}, k.From, k.ETX})
		}
	}
	for i := range t.Pipes {
		p := &t.Pipes[i]
		e := p.ETX()
		for end := range p.Ends {
			l.links = append(l.links, hop{Egress{i, end, p.Ends[1-end]}, p.Ends[end], e})
		}
	}
	arcs := make([]etx.Arc, len(l.links))
	for i := range l.links {
		h := &l.links[i]
		if arcs[i] = (etx.Arc{From: h.from, To: h.Next, Cost: etx.LinkCost(m, h.etx)}); h.radio() {
			arcs[i].Rank = 1
		}
	}
	bridges := make([]bool, len(t.Nodes))
	for i, n := range t.Nodes {
		bridges[i] = n.Bridge
	}
	l.table = etx.ShortestOver(len(t.Nodes), arcs, bridges, func(in, out int) bool {
		return !(l.links[in].radio() && l.links[out].radio())
	})
	t.layer = l
	t.Routes = t.route(m)
}

// route computes the routes over neighbours. What the link layer costs between
// two of them is the cost of that step, but it is one hop however many bridges
// it passes.
func (t *Topology) route(m etx.Metric) *etx.Table {
	var arcs []etx.Arc
	for i := range t.Nodes {
		for via := range t.Nodes {
			if t.layer.table.Hops(i, via) < 1 {
				continue
			}
			a := etx.Arc{From: i, To: via, Cost: t.layer.table.CostOf(i, via), Rank: t.layer.table.Rank(i, via)}
			if m == etx.Hops {
				a.Cost = etx.LinkCost(m, 1)
			}
			arcs = append(arcs, a)
		}
	}
	routers := make([]bool, len(t.Nodes))
	for i, n := range t.Nodes {
		routers[i] = !n.Bridge
	}
	return etx.ShortestOver(len(t.Nodes), arcs, routers, nil)
}

// Egress returns the link on which node i sends what is for its neighbour via;
// false when they are no neighbours. Neighbours are nodes that a link joins, or
// several in a row with nothing but bridges between them; Routes.NextHop gives
// no others. A bridge passes on what is for its neighbour via by its own Egress.
func (t *Topology) Egress(i, via int) (Egress, bool) {
	n := len(t.Nodes)
	if i == via || i < 0 || i >= n || via < 0 || via >= n {
		return Egress{}, false
	}
	if t.layer == nil {
		if etx.LinkCost(etx.ETX, t.Graph.LinkETX(i, via)) == 0 {
			return Egress{}, false
		}
		return Egress{Pipe: RadioEgress, Next: via}, true
	}
	a, ok := t.layer.table.Arc(i, via)
	if !ok {
		return Egress{}, false
	}
	return t.layer.links[a].Egress, true
}

// LinkPath returns the links by which a packet of node i gets to its neighbour
// via: one, and one more for each bridge between; nil when they are no
// neighbours.
func (t *Topology) LinkPath(i, via int) []Egress {
	var out []Egress
	for i != via {
		e, ok := t.Egress(i, via)
		if !ok {
			return nil
		}
		out, i = append(out, e), e.Next
	}
	return out
}

// Port is the interface by which node i sends to its neighbour via: 0 is the
// radio, 1+s the interface of the pipe with the slot s; false when they are no
// neighbours.
func (t *Topology) Port(i, via int) (int, bool) {
	e, ok := t.Egress(i, via)
	if !ok {
		return 0, false
	}
	return t.port(e, e.End), true
}

// ArrivalPort is the interface by which via takes what its neighbour i sends,
// in the same numbers. Its MAC address is what i sends to, but that a bridge has
// one address for all of its interfaces.
func (t *Topology) ArrivalPort(i, via int) (int, bool) {
	path := t.LinkPath(i, via)
	if path == nil {
		return 0, false
	}
	last := path[len(path)-1]
	return t.port(last, 1-last.End), true
}

func (t *Topology) port(e Egress, end int) int {
	if e.Pipe == RadioEgress {
		return 0
	}
	return 1 + t.Pipes[e.Pipe].Slot[end]
}

// apart says between which nodes there is no route, "" when all reach all.
func (t *Topology) apart() string {
	parts := t.parts()
	if len(parts) > 1 {
		return t.describe(parts)
	}
	if t.layer == nil {
		return ""
	}
	for i := range t.Nodes {
		for j := range t.Nodes {
			if t.Routes.Hops(i, j) == etx.Unreachable {
				return t.noRoute(i, j)
			}
		}
	}
	return ""
}

// parts are the sets of nodes that links join.
func (t *Topology) parts() [][]int {
	if t.layer == nil {
		return t.Graph.Components()
	}
	g := etx.NewGraph(len(t.Nodes))
	for _, h := range t.layer.links {
		if !math.IsInf(h.etx, 1) {
			g.Set(h.from, h.Next, 1, 1)
		}
	}
	return g.Components()
}

// noRoute says why there is none from i to j.
func (t *Topology) noRoute(i, j int) string {
	parts := t.parts()
	for _, p := range parts {
		if slices.Contains(p, i) && slices.Contains(p, j) {
			return fmt.Sprintf("only bridges between %s and %s, and a bridge neither routes nor sends back through its radio what came by it", t.Nodes[i].Name, t.Nodes[j].Name)
		}
	}
	return t.describe(parts)
}

// routeRemedy says what may give two nodes a route, by what the network is made
// of.
func (t *Topology) routeRemedy(c *spec.Config) string {
	out := []string{"choose other pairs"}
	if len(t.Mute()) < len(t.Nodes) {
		if len(c.Topology.Links) > 0 {
			out = append(out, "list a link between them")
		} else {
			out = append(out, "bring the nodes closer")
		}
	}
	if len(t.Mute()) > 0 || len(t.Pipes) > 0 {
		out = append(out, "join the parts by a pipe")
	}
	last := len(out) - 1
	text := out[0]
	if last > 0 {
		text = strings.Join(out[:last], ", ") + ", or " + out[last]
	}
	for i := range t.Pipes {
		if p := &t.Pipes[i]; math.IsInf(p.ETX(), 1) {
			text += fmt.Sprintf(" (topology.pipes[%d], between %s and %s, loses every packet in one direction at least and carries no route)", i, t.Nodes[p.Ends[0]].Name, t.Nodes[p.Ends[1]].Name)
			break
		}
	}
	return text
}
