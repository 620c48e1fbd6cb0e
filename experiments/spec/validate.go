package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The checks that concern several values. Each problem stands at the value
// that is to be changed.

// check is a decoded Config with the places of its values.
type check struct {
	*decoder
	c *Config
	// root is where a problem stands whose key was left out.
	root *node
}

// given reports whether the file gives a value for a key.
func (k *check) given(at string) bool { return k.set[at] != nil }

// at reports a problem with the value of a key, or of the block around it.
func (k *check) at(path string, p Problem) {
	n := k.set[path]
	for q := path; n == nil; {
		i := strings.LastIndexAny(q, ".[")
		if i < 0 {
			n = k.root
			break
		}
		q = q[:i]
		n = k.set[q]
	}
	if p.Value == "" && k.given(path) {
		p.Value = valueOf(n)
	}
	k.problem(n, path, p)
}

// only refuses keys that have no meaning beside another choice.
func (k *check) only(why string, paths ...string) {
	for _, p := range paths {
		if k.given(p) {
			k.at(p, Problem{What: "has no meaning here: " + why, Allowed: "leave it out"})
		}
	}
}

func (k *check) all() {
	k.topology()
	k.radio()
	k.mac()
	k.routing()
	k.transports()
	k.flows()
	k.backends()
	if k.c.Duration > 0 && k.c.Sample > k.c.Duration {
		k.at("sample", Problem{What: "longer than the measured interval", Allowed: "up to " + k.c.Duration.String()})
	}
}

func (k *check) topology() {
	t := &k.c.Topology
	var kinds []string
	for _, key := range []string{"generate", "nodes", "import", "inventory"} {
		if k.given("topology." + key) {
			kinds = append(kinds, key)
		}
	}
	if !k.given("topology") {
		return // reported as a missing key
	}
	if len(kinds) == 2 && kinds[0] == "generate" && kinds[1] == "nodes" {
		kinds = kinds[:1] // wired nodes beside a mesh
	}
	if len(kinds) != 1 {
		what := "says nothing"
		if len(kinds) > 1 {
			what = "says " + strings.Join(kinds, " and ") + " at once"
		}
		k.at("topology", Problem{What: what, Allowed: "one of generate, nodes, import, inventory"})
		return
	}
	switch kinds[0] {
	case "import":
		if !k.imported(t) {
			return
		}
	case "inventory":
		if !k.inventory(t) {
			return
		}
	case "generate":
		k.only("links belong to listed nodes", "topology.links")
		k.generate(t.Generate)
	}
	if t.Inventory == "" {
		k.only("tags choose nodes of an inventory", "topology.tags")
	}
	k.nodes(t)
	k.pipes(t)
	k.bridges(t)
	k.changes(t)
}

func (k *check) generate(g *Generate) {
	const at = "topology.generate"
	if g == nil {
		return
	}
	switch g.Kind {
	case RandomMesh:
		k.only("a random mesh has an area", at+".spacing", at+".columns")
		if !k.given(at + ".area") {
			k.at(at, Problem{What: "a random mesh needs the key area", Allowed: "area: [120m, 80m]"})
		} else if g.Area.Width <= 0 && g.Area.Height <= 0 {
			k.at(at+".area", Problem{What: "the area is a point", Allowed: "a width or height above 0m"})
		}
		if g.MinHops >= g.Nodes {
			k.at(at+".min-hops", Problem{What: fmt.Sprintf("%d nodes have no routes of so many hops", g.Nodes), Allowed: fmt.Sprintf("up to %d", g.Nodes-1)})
		}
	case Chain, Grid, Star:
		k.only("a "+string(g.Kind)+" has a spacing", at+".area", at+".min-hops", at+".tries")
		if g.Kind != Grid {
			k.only("only a grid has columns", at+".columns")
		}
		if !k.given(at + ".spacing") {
			k.at(at, Problem{What: "a " + string(g.Kind) + " needs the key spacing", Allowed: "spacing: 20m"})
		}
		if g.Columns > g.Nodes {
			k.at(at+".columns", Problem{What: fmt.Sprintf("more columns than the %d nodes", g.Nodes), Allowed: fmt.Sprintf("up to %d", g.Nodes)})
		}
	}
}

func (k *check) nodes(t *Topology) {
	all := t.AllNodes()
	if len(all) < 2 || len(all) > MaxNodes {
		k.at("topology.nodes", Problem{Value: fmt.Sprint(len(all)), What: "out of range", Allowed: fmt.Sprintf("2 to %d nodes", MaxNodes)})
	}
	names := map[string]string{}
	generated := len(all) - len(t.Nodes)
	for _, n := range all[:generated] {
		names[n.Name] = "a generated node"
	}
	wired := map[string]bool{}
	for i, n := range t.Nodes {
		at := fmt.Sprintf("topology.nodes[%d]", i)
		if other, twice := names[n.Name]; twice && n.Name != "" {
			k.at(at+".name", Problem{What: other + " has the same name", Allowed: "names that differ"})
		}
		names[n.Name] = at
		wired[n.Name] = !n.Radio
		k.accessPoint(&n, at)
		switch {
		case n.Radio && generated > 0:
			k.at(at, Problem{What: "a node beside generate has no radio: the generator places those that have", Allowed: "radio: false, and a pipe to one of the others"})
		case n.Radio && n.At == nil && t.Inventory == "" && len(t.Links) == 0 && !k.given("topology.links"):
			k.at(at, Problem{What: "without listed links a node needs its place", Allowed: "at: [10m, 0m]"})
		}
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(n Node) bool { return n.Radio }) {
		k.only("no node has a radio", "topology.links")
		return
	}
	if !k.given("topology.links") && t.Import == nil {
		return
	}
	seen := map[[2]string]int{}
	for i, l := range t.Links {
		at := fmt.Sprintf("topology.links[%d]", i)
		for key, name := range map[string]string{"from": l.From, "to": l.To} {
			if _, ok := names[name]; !ok && name != "" {
				k.at(at+"."+key, Problem{What: "no node has this name", Allowed: "a name in topology.nodes", Hint: suggest(name, nodeNames(t.Nodes))})
			}
			if wired[name] {
				k.at(at+"."+key, Problem{What: "the node has no radio", Allowed: "a node with a radio; wired links are in topology.pipes"})
			}
		}
		if l.From == l.To && l.From != "" {
			k.at(at, Problem{What: "the link joins a node to itself", Allowed: "two nodes"})
		}
		pair := [2]string{min(l.From, l.To), max(l.From, l.To)}
		if j, twice := seen[pair]; twice {
			k.at(at, Problem{What: fmt.Sprintf("topology.links[%d] joins the same nodes", j), Allowed: "one entry with delivery and reverse"})
		}
		seen[pair] = i
	}
	k.only("the links are listed, so that no propagation model is used", "radio.path-loss", "radio.tx-power", "radio.noise", "radio.sense")
}

// accessPoint checks what a node's queue is and shares.
func (k *check) accessPoint(n *Node, at string) {
	if !n.Radio {
		k.only("the node has no radio", at+".queue", at+".window-rewriting")
	}
	w := n.WindowRewriting
	if w == nil {
		return
	}
	if w.Share == ShareEqual {
		k.only("share: equal counts connections, not their acknowledgements", at+".window-rewriting.acks")
	}
}

func nodeNames(nodes []Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

// The rates of the standards (802.11-2012 clauses 17 and 18), in Mb/s; 802.11g
// has both.
var (
	dsssRates = []vtime.BitRate{1_000_000, 2_000_000, 5_500_000, 11_000_000}
	ofdmRates = []vtime.BitRate{6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000}
)

// Rates returns the data rates of a standard, in ascending order.
func (s Standard) Rates() []vtime.BitRate {
	switch s {
	case Standard11b:
		return dsssRates
	case Standard11g:
		all := append(slices.Clone(dsssRates), ofdmRates...)
		slices.Sort(all)
		return all
	}
	return ofdmRates
}

func (k *check) radio() {
	r := &k.c.Radio
	rates := r.Standard.Rates()
	if r.Rate == 0 {
		r.Rate = rates[len(rates)-1]
	}
	if r.BasicRate == 0 {
		if r.BasicRate = 24 * vtime.MbitPerSecond; r.Standard == Standard11b {
			r.BasicRate = 2 * vtime.MbitPerSecond
		}
		r.BasicRate = min(r.BasicRate, r.Rate)
	}
	var list []string
	for _, x := range rates {
		list = append(list, x.String())
	}
	for _, f := range []struct {
		at   string
		rate vtime.BitRate
	}{{"radio.rate", r.Rate}, {"radio.basic-rate", r.BasicRate}} {
		if !slices.Contains(rates, f.rate) {
			k.at(f.at, Problem{What: "not a rate of " + string(r.Standard), Allowed: strings.Join(list, ", ")})
		}
	}
	if r.BasicRate > r.Rate {
		k.at("radio.basic-rate", Problem{What: "above the data rate", Allowed: "up to " + r.Rate.String()})
	}
	if r.Standard == Standard11a {
		k.only("802.11a has one preamble", "radio.preamble")
	}
	p := &r.PathLoss
	switch p.Kind {
	case LogDistance:
		k.only("log-distance has an exponent; range belongs to kind: disk", "radio.path-loss.range", "radio.path-loss.sense-range")
	case Disk:
		k.only("a disk has a range; this belongs to kind: log-distance", "radio.path-loss.reference-loss", "radio.path-loss.shadowing",
			"radio.tx-power", "radio.noise", "radio.sense")
		if p.Range == 0 {
			k.at("radio.path-loss", Problem{What: "a disk needs the key range", Allowed: "range: 250m"})
		}
		if p.SenseRange == 0 {
			p.SenseRange = p.Range
		}
		if p.SenseRange < p.Range {
			k.at("radio.path-loss.sense-range", Problem{What: "shorter than the range: a node would not defer to what it can decode", Allowed: p.Range.String() + " or more"})
		}
	}
}

// TXOPUnit is the unit of the TXOP limit field (802.11-2012 8.4.2.31).
const TXOPUnit = 32 * vtime.Microsecond

func (k *check) mac() {
	// 802.11-2012 9.5: a fragment has an even number of octets.
	if f := k.c.MAC.Fragment; f != nil && *f > 0 && *f%2 != 0 {
		k.at("mac.fragment", Problem{What: "fragments have an even number of bytes", Allowed: fmt.Sprintf("%v or %v here", *f-1, *f+1)})
	}
	q := reflect.ValueOf(k.c.MAC.Queues)
	for _, f := range fieldsOf(q.Type()) {
		queue := q.FieldByIndex(f.index).Interface().(Queue)
		at := "mac.queues." + f.key
		for _, w := range []struct {
			key string
			v   *int
		}{{"cwmin", queue.CWMin}, {"cwmax", queue.CWMax}} {
			if w.v != nil && *w.v&(*w.v+1) != 0 {
				k.at(at+"."+w.key, Problem{What: "not a power of two minus one", Allowed: "0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023 … 32767"})
			}
		}
		if queue.CWMin != nil && queue.CWMax != nil && *queue.CWMin > *queue.CWMax {
			k.at(at+".cwmin", Problem{What: fmt.Sprintf("above cwmax, which is %d", *queue.CWMax), Allowed: fmt.Sprintf("up to %d", *queue.CWMax)})
		}
		if t := queue.TXOP; t != nil && *t%TXOPUnit != 0 {
			below := *t / TXOPUnit * TXOPUnit
			k.at(at+".txop", Problem{What: "the limit is counted in units of 32us", Allowed: fmt.Sprintf("%v or %v here", below, below+TXOPUnit)})
		}
	}
}

// NodeNames returns the names of the nodes in their order: n01, n02 … for
// generated ones, with as many digits as their count needs, at least two, then
// the listed ones. It is empty where the file does not say the nodes.
func (t *Topology) NodeNames() []string { return nodeNames(t.AllNodes()) }

// AllNodes returns the nodes in their order: the generated ones, then the
// listed ones.
func (t *Topology) AllNodes() []Node {
	if t.Generate == nil {
		return t.Nodes
	}
	out := make([]Node, t.Generate.Nodes, t.Generate.Nodes+len(t.Nodes))
	digits := max(2, len(fmt.Sprint(t.Generate.Nodes)))
	for i := range out {
		out[i] = Node{Name: fmt.Sprintf("n%0*d", digits, i+1), Radio: true}
	}
	return append(out, t.Nodes...)
}
