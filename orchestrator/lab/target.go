package lab

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
)

// Everything is the target that means all nodes.
const Everything = "all"

// Medium tells which link between two nodes is meant, where they have two.
type Medium string

// The media. Either is the wire, or where there is none the radio link.
const (
	Either Medium = ""
	Wire   Medium = "wire"
	Radio  Medium = "radio"
)

// target is what a name stands for: nodes, one wire, or one radio link.
type target struct {
	name  string
	nodes []int
	wire  int    // -1: none
	ends  []int  // of the wire: the directions, by their sending ends
	air   [2]int // the nodes of a radio link …
	both  bool   // … in both directions, not only from the first to the second
	isAir bool
}

// find resolves a name: a node's, "a-b" (a link, both directions), "a:b" (from a to
// b only), or all.
func find(t *topology.Topology, name string, m Medium) (*target, error) {
	index := map[string]int{}
	names := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		index[n.Name], names[i] = i, n.Name
	}
	if i, ok := index[name]; ok {
		return &target{name: name, nodes: []int{i}, wire: -1}, nil
	}
	if name == Everything {
		all := &target{name: name, wire: -1}
		for i := range t.Nodes {
			all.nodes = append(all.nodes, i)
		}
		return all, nil
	}
	if a, b, ok := strings.Cut(name, ":"); ok {
		return link(t, index, names, name, a, b, false, m)
	}
	// A name may itself hold dashes.
	var found []*target
	var first error
	for k := range len(name) {
		if name[k] != '-' {
			continue
		}
		a, b := name[:k], name[k+1:]
		_, known := index[a]
		if _, other := index[b]; !known && !other {
			continue
		}
		l, err := link(t, index, names, name, a, b, true, m)
		switch {
		case err == nil:
			found = append(found, l)
		case first == nil:
			first = err
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%s: that may be several links, for names of nodes hold dashes: name the directions, FROM:TO", name)
	case first != nil:
		return nil, first
	}
	return nil, unknown(name, names, "a node, a link such as "+example(names)+", a direction such as "+strings.Replace(example(names), "-", ":", 1)+", or "+Everything)
}

func example(names []string) string {
	if len(names) < 2 {
		return "n01-n02"
	}
	return names[0] + "-" + names[1]
}

func unknown(name string, names []string, want string) error {
	meant := ""
	if s := spec.Suggest(name, names); s != "" {
		meant = "; did you mean " + s + "?"
	}
	return fmt.Errorf("%q is neither a node nor a link of this network: want %s%s", name, want, meant)
}

func link(t *topology.Topology, index map[string]int, names []string, name, from, to string, both bool, m Medium) (*target, error) {
	var ids [2]int
	for i, n := range []string{from, to} {
		id, ok := index[n]
		if !ok {
			meant := ""
			if s := spec.Suggest(n, names); s != "" {
				meant = "; did you mean " + s + "?"
			}
			return nil, fmt.Errorf("%s: there is no node %q%s", name, n, meant)
		}
		ids[i] = id
	}
	if ids[0] == ids[1] {
		return nil, fmt.Errorf("%s: a link joins two different nodes", name)
	}
	out := &target{name: name, wire: -1, air: ids, both: both}
	for i := range t.Pipes {
		for e, n := range t.Pipes[i].Ends {
			if n == ids[0] && t.Pipes[i].Ends[1-e] == ids[1] {
				out.wire, out.ends = i, []int{e}
				if both {
					out.ends = []int{e, 1 - e}
				}
			}
		}
	}
	out.isAir = hears(t, ids[0], ids[1])
	switch {
	case out.wire >= 0 && out.isAir && m == Either:
		return nil, fmt.Errorf("%s: the two have a wire and hear each other by radio: say which is meant, --wire or --radio", name)
	case m == Wire && out.wire < 0:
		return nil, fmt.Errorf("%s: there is no wire between the two", name)
	case m == Radio && !out.isAir:
		return nil, fmt.Errorf("%s: the two do not hear each other by radio", name)
	case out.wire < 0 && !out.isAir:
		return nil, fmt.Errorf("%s: the two have no wire and do not hear each other by radio; %s", name, neighbours(t, ids[0]))
	}
	if out.isAir = out.isAir && m != Wire; out.isAir {
		out.wire, out.ends = -1, nil
	}
	return out, nil
}

// hears tells whether what a's radio sends does anything at b, or the reverse.
func hears(t *topology.Topology, a, b int) bool {
	for i := range t.Links {
		if l := &t.Links[i]; l.From == a && l.To == b || l.From == b && l.To == a {
			return true
		}
	}
	return false
}

func neighbours(t *topology.Topology, a int) string {
	var near []string
	for i := range t.Nodes {
		if i != a && (hears(t, a, i) || wired(t, a, i)) {
			near = append(near, t.Nodes[i].Name)
		}
	}
	if len(near) == 0 {
		return t.Nodes[a].Name + " has no links"
	}
	const most = 12
	more := ""
	if len(near) > most {
		near, more = near[:most], " …"
	}
	return t.Nodes[a].Name + " has links to " + strings.Join(near, ", ") + more
}

func wired(t *topology.Topology, a, b int) bool {
	for i := range t.Pipes {
		if e := t.Pipes[i].Ends; e == [2]int{a, b} || e == [2]int{b, a} {
			return true
		}
	}
	return false
}
