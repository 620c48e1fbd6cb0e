package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// MaxSwitches bounds how often the changes of an experiment switch anything in one
// run.
const MaxSwitches = 100_000

// Change switches radio links, or a node, while the network runs.
type Change struct {
	// At is the moment on the run's clock; 0s is the begin of the warm-up.
	At *vtime.Duration `key:"at" min:"0s" max:"192h"`
	// Link holds the names of the two nodes of a radio link, written [node, node].
	Link *Ends `key:"link"`
	// Path stands for all radio links of a path, written [node, node, node]; chain is the path over all nodes of a generated chain.
	Path Path `key:"path"`
	// Node is the name of a node.
	Node string `key:"node" pattern:"name"`
	// Up switches off (false) or on again (true) at that moment.
	Up *bool `key:"up"`
	// Cycle switches on and off again and again, in place of at and up.
	Cycle *Cycle `key:"cycle"`
}

// Cycle is a state that alternates for the whole run.
type Cycle struct {
	// Up is how long the link or node is up in each round.
	Up vtime.Duration `key:"up" required:"true" min:"1ms" max:"192h"`
	// Down is how long it is down after that.
	Down vtime.Duration `key:"down" required:"true" min:"1ms" max:"192h"`
	// Offset is a moment on the run's clock at which it comes up; what is before it follows from the rounds.
	Offset vtime.Duration `key:"offset" min:"0s" max:"192h" default:"0s"`
	// Stagger is how much later each link of a path comes up than the one before it.
	Stagger vtime.Duration `key:"stagger" min:"0s" max:"192h" default:"0s"`
}

// Path is a way over several nodes.
type Path struct {
	Chain bool     // all nodes of the generated chain
	Nodes []string // otherwise
}

// Switch is one thing that happens to one link or node.
type Switch struct {
	At   vtime.Duration
	Link Ends   // of a link
	Node string // of a node; empty: it is a link's
	Up   bool
}

func (p *Path) decodeNode(d *decoder, n *node, at string) {
	*p = Path{}
	switch {
	case n.kind == scalar && n.text == "chain":
		p.Chain = true
	case n.kind == sequence && len(n.items) >= 2:
		d.list(n, at, reflect.ValueOf(&p.Nodes).Elem(), field{pattern: "name"})
	default:
		d.bad(n, at, "not a path of two nodes or more", "[node, node, node], for example [n01, n02, n03], or chain")
	}
}

// nodes are the names of the path's nodes.
func (p Path) nodes(t *Topology) []string {
	if !p.Chain {
		return p.Nodes
	}
	if t.Generate == nil {
		return nil
	}
	return t.NodeNames()[:t.Generate.Nodes]
}

// target is a link, its ends in the order of their names, or a node (in the first
// place).
type target [2]string

// targets are what a change switches, in the order of the file.
func (c *Change) targets(t *Topology) []target {
	switch {
	case c.Node != "":
		return []target{{c.Node}}
	case c.Link != nil:
		return []target{{min(c.Link[0], c.Link[1]), max(c.Link[0], c.Link[1])}}
	}
	var out []target
	nodes := c.Path.nodes(t)
	for i := 1; i < len(nodes); i++ {
		out = append(out, target{min(nodes[i-1], nodes[i]), max(nodes[i-1], nodes[i])})
	}
	return out
}

func (t target) switched(at vtime.Duration, up bool) Switch {
	if t[1] == "" {
		return Switch{At: at, Node: t[0], Up: up}
	}
	return Switch{At: at, Link: Ends(t), Up: up}
}

// each calls do for every change of the i-th target of the cycle in [0, end).
func (c *Cycle) each(i int, end vtime.Duration, do func(at vtime.Duration, up bool)) {
	period := c.Up + c.Down
	if period <= 0 {
		return // reported already
	}
	// Where in its round the run begins.
	phase := (period - (c.Offset+vtime.Duration(i)*(c.Stagger%period))%period) % period
	at, up := vtime.Duration(0), phase < c.Up
	if !up {
		do(0, false)
		at = period - phase
	} else {
		at = c.Up - phase
	}
	for up = !up; at < end; up = !up {
		do(at, up)
		if up {
			at += c.Up
		} else {
			at += c.Down
		}
	}
}

// most bounds the number of changes of one target of the cycle in a run.
func (c *Cycle) most(end vtime.Duration) int64 {
	period := max(c.Up+c.Down, 1)
	return 2*int64(end/period) + 3
}

// Switches returns everything that topology.changes makes happen in a run, in the
// order of time; at one moment what goes down comes first, then as in the file. All
// links and nodes are up until then.
func (c *Config) Switches() []Switch {
	var out []Switch
	end := c.Warmup + c.Duration
	t := &c.Topology
	for i := range t.Changes {
		ch := &t.Changes[i]
		for k, to := range ch.targets(t) {
			switch {
			case ch.Cycle != nil:
				ch.Cycle.each(k, end, func(at vtime.Duration, up bool) { out = append(out, to.switched(at, up)) })
			case ch.At != nil && ch.Up != nil:
				out = append(out, to.switched(*ch.At, *ch.Up))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Switch) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(rank(a.Up), rank(b.Up)))
	})
	return out
}

func rank(up bool) int {
	if up {
		return 1
	}
	return 0
}

func state(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// seconds writes a moment of the run's clock.
func seconds(d vtime.Duration) string {
	if d == 0 {
		return "0s"
	}
	return d.String()
}

// SwitchedNodes are the names of the nodes that changes switch off, in the order of
// the file. No flow begins or ends at them.
func (t *Topology) SwitchedNodes() []string {
	var out []string
	for i := range t.Changes {
		if n := t.Changes[i].Node; n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// String tells a change in words: "link n01 – n02 down at 30s".
func (c *Change) String() string {
	what := ""
	switch {
	case c.Node != "":
		what = "node " + c.Node
	case c.Link != nil:
		what = "link " + c.Link[0] + " – " + c.Link[1]
	case c.Path.Chain:
		what = "the links of the chain"
	case len(c.Path.Nodes) > 0:
		what = "links " + c.Path.Nodes[0]
		for _, n := range c.Path.Nodes[1:] {
			what += " – " + n
		}
	}
	if y := c.Cycle; y != nil {
		what += fmt.Sprintf(" up for %v and down for %v in turn, up at %s", y.Up, y.Down, seconds(y.Offset))
		if y.Stagger > 0 {
			what += fmt.Sprintf(", each link of the path %v later than the one before", y.Stagger)
		}
		return what
	}
	if c.At == nil || c.Up == nil {
		return what
	}
	return fmt.Sprintf("%s %s at %s", what, state(*c.Up), seconds(*c.At))
}
