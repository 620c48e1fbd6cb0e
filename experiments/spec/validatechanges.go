package spec

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The checks of what happens to links and nodes while the network runs.

const changesPath = "topology.changes"

func (k *check) changes(t *Topology) {
	if len(t.Changes) == 0 {
		return
	}
	whole := true
	for i := range t.Changes {
		whole = k.change(t, i) && whole
	}
	if whole {
		k.states(t)
	}
}

func changeAt(i int) string { return fmt.Sprintf("%s[%d]", changesPath, i) }

// change checks one entry by itself, and reports whether it says what happens to
// which links or node.
func (k *check) change(t *Topology, i int) bool {
	c, at := &t.Changes[i], changeAt(i)
	given := func(keys ...string) (out []string) {
		for _, key := range keys {
			if k.given(at + "." + key) {
				out = append(out, key)
			}
		}
		return out
	}
	what := given("link", "path", "node")
	if len(what) != 1 {
		text := "does not say what it switches"
		if len(what) > 1 {
			text = "switches " + what[0] + " and " + what[1] + " at once"
		}
		k.at(at, Problem{What: text, Allowed: "one of link: [n01, n02], path: [n01, n02, n03], node: n03"})
		return false
	}
	switch when := given("at", "up", "cycle"); {
	case c.Cycle != nil:
		k.only("the cycle says when", at+".at", at+".up")
		if len(when) > 1 {
			return false
		}
	case len(when) == 0:
		k.at(at, Problem{What: "does not say what happens, and when", Allowed: "at: 30s and up: false, or cycle: {up: 10s, down: 20s}"})
		return false
	case c.At == nil && !k.given(at+".cycle"):
		k.at(at, Problem{What: "the key at is missing", Allowed: "at: 30s"})
		return false
	case c.Up == nil && !k.given(at+".cycle"):
		k.at(at, Problem{What: "the key up is missing", Allowed: "up: false, or up: true"})
		return false
	}
	ok := k.cycle(c, at)
	end := k.c.Warmup + k.c.Duration
	if c.At != nil && k.c.Duration > 0 && *c.At >= end {
		k.at(at+".at", Problem{What: "not before the end of the run", Allowed: fmt.Sprintf("less than %v, warm-up and measured interval together", end)})
		ok = false
	}
	if c.Node != "" {
		return k.switchedNode(t, c, at) && ok
	}
	return k.switchedLinks(t, c, at) && ok
}

func (k *check) cycle(c *Change, at string) bool {
	y := c.Cycle
	if y == nil {
		return !k.given(at + ".cycle")
	}
	at += ".cycle"
	period := y.Up + y.Down
	if y.Up == 0 || y.Down == 0 {
		return false // reported already
	}
	ok := true
	for _, x := range []struct {
		key string
		v   vtime.Duration
	}{{"offset", y.Offset}, {"stagger", y.Stagger}} {
		if x.v >= period {
			k.at(at+"."+x.key, Problem{What: fmt.Sprintf("not less than a round of the cycle, %v", period), Allowed: seconds(x.v%period) + " says the same"})
			ok = false
		}
	}
	if len(c.Path.Nodes) == 0 && !c.Path.Chain && k.given(at+".stagger") {
		k.only("a stagger is between the links of a path", at+".stagger")
		ok = false
	}
	end := k.c.Warmup + k.c.Duration
	if ok && k.c.Duration > 0 {
		n := 0
		for i := range max(1, len(c.targets(&k.c.Topology))) {
			if y.most(end) <= MaxSwitches {
				y.each(i, end, func(vtime.Duration, bool) { n++ })
			} else {
				n++
			}
		}
		if n == 0 {
			k.at(at, Problem{What: fmt.Sprintf("changes nothing in a run of %v: it is up from %s on for %v", end, seconds(y.Offset), y.Up), Allowed: "a shorter up, or another offset"})
			ok = false
		}
	}
	return ok
}

// switchedNode checks a node that is switched off as a whole.
func (k *check) switchedNode(t *Topology, c *Change, at string) bool {
	names := t.NodeNames()
	if len(names) == 0 {
		return false
	}
	if !slices.Contains(names, c.Node) {
		k.at(at+".node", Problem{What: "no node has this name", Allowed: names[0] + " … " + names[len(names)-1], Hint: suggest(c.Node, names)})
		return false
	}
	for i := range k.c.Flows {
		for j, p := range k.c.Flows[i].Pairs.Listed {
			if p.Src == c.Node || p.Dst == c.Node {
				k.at(at+".node", Problem{What: fmt.Sprintf("flows[%d].pairs[%d] begins or ends at this node: what a flow's end holds in memory would be gone with it", i, j),
					Allowed: "a node between the ends of the flows, or the links of this one"})
				return false
			}
		}
	}
	for i := range t.Pipes {
		p := &t.Pipes[i]
		if !slices.Contains(p.Ends[:], c.Node) {
			continue
		}
		for _, d := range []*Direction{&p.Direction, p.Backward()} {
			if d.Queue == nil {
				k.at(at+".node", Problem{What: fmt.Sprintf("topology.pipes[%d] ends at this node, and a link that is down keeps what waits for it: it needs the key queue", i),
					Allowed: "queue: {packets: 100} in that pipe"})
				return false
			}
		}
	}
	return true
}

// switchedLinks checks the ends of the links.
func (k *check) switchedLinks(t *Topology, c *Change, at string) bool {
	nodes, places := c.Path.nodes(t), at+".path"
	switch {
	case c.Link != nil:
		nodes, places = c.Link[:], at+".link"
	case c.Path.Chain && (t.Generate == nil || t.Generate.Kind != Chain):
		k.at(places, Problem{What: "there is no generated chain", Allowed: "the names of the nodes, [n01, n02, n03]"})
		return false
	}
	names := t.NodeNames()
	if len(names) == 0 || len(nodes) == 0 {
		return false
	}
	place := func(i int) string {
		if c.Path.Chain {
			return places
		}
		return fmt.Sprintf("%s[%d]", places, i)
	}
	all := t.AllNodes()
	for i, name := range nodes {
		if name == "" {
			return false // reported already
		}
		n := slices.Index(names, name)
		switch {
		case n < 0:
			k.at(place(i), Problem{What: "no node has this name", Allowed: names[0] + " … " + names[len(names)-1], Hint: suggest(name, names)})
			return false
		case !all[n].Radio:
			k.at(place(i), Problem{What: "the node has no radio", Allowed: "a radio link; a wire has a schedule of its own in topology.pipes"})
			return false
		}
	}
	for i := 1; i < len(nodes); i++ {
		pair := target{min(nodes[i-1], nodes[i]), max(nodes[i-1], nodes[i])}
		if pair[0] == pair[1] {
			k.at(place(i), Problem{What: "the link joins a node to itself", Allowed: "two nodes"})
			return false
		}
		for j := range t.Pipes {
			if e := t.Pipes[j].Ends; e == Ends(pair) || e == (Ends{pair[1], pair[0]}) {
				k.at(place(i), Problem{What: fmt.Sprintf("topology.pipes[%d] joins %s and %s: which link is meant?", j, nodes[i-1], nodes[i]),
					Allowed: "for the wire, its schedule: [{at: 30s, up: false}]"})
				return false
			}
		}
		if len(t.Links) > 0 && !slices.ContainsFunc(t.Links, func(l Link) bool { return Ends{l.From, l.To} == Ends(pair) || Ends{l.To, l.From} == Ends(pair) }) {
			k.at(place(i), Problem{What: fmt.Sprintf("topology.links has no link between %s and %s", nodes[i-1], nodes[i]), Allowed: "a link that is listed"})
			return false
		}
	}
	return true
}

// states follows every link and node through the run.
func (k *check) states(t *Topology) {
	type moment struct {
		entry int
		at    vtime.Duration
		up    bool
	}
	moments := map[target][]moment{}
	var order []target
	total, end := int64(0), k.c.Warmup+k.c.Duration
	for i := range t.Changes {
		c := &t.Changes[i]
		for _, to := range c.targets(t) {
			have := moments[to]
			if have == nil {
				order = append(order, to)
			}
			switch {
			case len(have) > 0 && (c.Cycle != nil || t.Changes[have[0].entry].Cycle != nil):
				k.at(changeAt(i), Problem{What: fmt.Sprintf("%s is switched by topology.changes[%d] as well", to.name(), have[0].entry), Allowed: "one cycle, or moments"})
				return
			case c.Cycle != nil:
				moments[to] = append(have, moment{entry: i})
				total += c.Cycle.most(end)
			default:
				moments[to] = append(have, moment{i, *c.At, *c.Up})
				total++
			}
		}
	}
	if total > MaxSwitches {
		k.at(changesPath, Problem{Value: fmt.Sprint(total), What: "too many changes in one run", Allowed: fmt.Sprintf("up to %d", MaxSwitches)})
		return
	}
	for _, to := range order {
		all := moments[to]
		if t.Changes[all[0].entry].Cycle != nil {
			continue
		}
		slices.SortStableFunc(all, func(a, b moment) int { return int(min(1, max(-1, a.at-b.at))) })
		up := true
		for j, m := range all {
			switch {
			case j > 0 && m.at == all[j-1].at:
				k.at(changeAt(m.entry)+".at", Problem{What: fmt.Sprintf("topology.changes[%d] switches %s at the same moment", all[j-1].entry, to.name()), Allowed: "one state at a moment"})
				return
			case m.up == up:
				since := "from the begin of the run on"
				if j > 0 {
					since = fmt.Sprintf("since topology.changes[%d], at %s", all[j-1].entry, seconds(all[j-1].at))
				}
				k.at(changeAt(m.entry)+".up", Problem{What: fmt.Sprintf("changes nothing: %s is %s already, %s", to.name(), state(up), since),
					Allowed: fmt.Sprintf("up: %v, or leave the entry out", !up)})
				return
			}
			up = m.up
		}
	}
}

func (t target) name() string {
	if t[1] == "" {
		return "node " + t[0]
	}
	return "the link " + t[0] + " – " + t[1]
}
