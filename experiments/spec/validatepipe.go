package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The checks of wired links.

func (k *check) pipes(t *Topology) {
	const at = "topology.pipes"
	if len(t.Pipes) > MaxPipes {
		k.at(at, Problem{Value: fmt.Sprint(len(t.Pipes)), What: "too many pipes", Allowed: fmt.Sprintf("up to %d", MaxPipes)})
		return
	}
	names := t.NodeNames()
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	joined := map[[2]string]int{}
	type port struct{ node, name string }
	taken := map[port]string{}
	count := map[string]int{}
	for i := range t.Pipes {
		p := &t.Pipes[i]
		at := fmt.Sprintf("%s[%d]", at, i)
		for e, name := range p.Ends {
			if name == "" {
				continue // reported already
			}
			if !known[name] && len(names) > 0 {
				k.at(fmt.Sprintf("%s.ends[%d]", at, e), Problem{What: "no node has this name", Allowed: names[0] + " … " + names[len(names)-1], Hint: suggest(name, names)})
			}
			if count[name]++; count[name] == MaxPipesPerNode+1 {
				k.at(fmt.Sprintf("%s.ends[%d]", at, e), Problem{What: fmt.Sprintf("the node has more than %d pipes", MaxPipesPerNode), Allowed: fmt.Sprintf("up to %d at a node", MaxPipesPerNode)})
			}
			iface := p.Interfaces[e]
			if other, twice := taken[port{name, iface}]; twice && iface != "" {
				k.at(fmt.Sprintf("%s.interfaces[%d]", at, e), Problem{What: name + " has this interface already, by " + other, Allowed: "names that differ at each node"})
			}
			taken[port{name, iface}] = at
		}
		if p.Ends[0] != "" && p.Ends[0] == p.Ends[1] {
			k.at(at+".ends", Problem{What: "the pipe joins a node to itself", Allowed: "two nodes"})
		}
		pair := [2]string{min(p.Ends[0], p.Ends[1]), max(p.Ends[0], p.Ends[1])}
		if j, twice := joined[pair]; twice && pair[0] != "" {
			k.at(at, Problem{What: fmt.Sprintf("topology.pipes[%d] joins the same nodes", j), Allowed: "one pipe between two nodes; reverse says what differs in the other direction"})
		}
		joined[pair] = i
		k.pipe(p, at)
	}
}

func (k *check) pipe(p *Pipe, at string) {
	if r := k.set[at+".reverse"]; r != nil && r.kind == mapping && len(r.keys) == 0 {
		k.at(at+".reverse", Problem{What: "says nothing", Allowed: "leave it out: both directions are alike"})
	}
	same := func(key string) string { return at + "." + key }
	back := func(key string) string {
		if p.Reverse != nil && k.given(at+".reverse."+key) {
			return at + ".reverse." + key
		}
		return at + "." + key
	}
	k.direction(&p.Direction, at, same)
	if p.Reverse != nil {
		k.direction(p.Reverse, at+".reverse", back)
		for i, ch := range p.Schedule {
			if ch.Rate == nil || k.given(at+".reverse.schedule") {
				continue
			}
			for _, key := range []string{"rate", "trace"} {
				if k.given(at + ".reverse." + key) {
					k.at(fmt.Sprintf("%s.schedule[%d].rate", at, i), Problem{What: "would hold in both directions, but reverse has a " + key + " of its own",
						Allowed: "reverse: {schedule: […]} with what happens in that direction, or reverse: {schedule: []}"})
				}
			}
		}
	}
	if p.Emulator == KernelEmulator {
		for _, d := range []*Direction{&p.Direction, p.Backward()} {
			what := ""
			switch {
			case d.Trace != nil:
				what = "a trace, which the kernel cannot follow"
			case len(d.Schedule) > 0:
				what = "a schedule, which nothing in the kernel follows"
			}
			if what != "" {
				k.at(at+".emulator", Problem{Value: string(KernelEmulator), What: "the link has " + what, Allowed: "user, or auto, which then is user"})
				break
			}
		}
	}
	limits := func(d *Direction) bool { return d.Rate > 0 || d.Trace != nil || d.changesRate() }
	waits := func(d *Direction) bool { return limits(d) || d.goesDown() }
	for _, x := range []struct {
		key  string
		uses func(*Direction) bool
		why  string
	}{
		{"queue", waits, "without a rate, a trace or a schedule that takes the link down nothing ever waits"},
		{"overhead", limits, "without a rate or a trace the length of a packet is of no matter"},
	} {
		used := x.uses(&p.Direction) || p.Reverse != nil && !k.given(at+".reverse."+x.key) && x.uses(p.Reverse)
		if !used {
			k.only(x.why, at+"."+x.key)
		}
		if p.Reverse != nil && !x.uses(p.Reverse) {
			k.only(x.why, at+".reverse."+x.key)
		}
	}
}

func (d *Direction) changesRate() bool {
	return slices.ContainsFunc(d.Schedule, func(c PipeChange) bool { return c.Rate != nil })
}

func (d *Direction) goesDown() bool {
	return slices.ContainsFunc(d.Schedule, func(c PipeChange) bool { return c.Up != nil && !*c.Up })
}

// direction checks one direction, whose block is at; path gives the place of a
// key, which may be the other direction's.
func (k *check) direction(d *Direction, at string, path func(key string) string) {
	if d.Rate > 0 && d.Trace != nil {
		k.at(path("trace"), Problem{What: "beside a rate", Allowed: "one of rate and trace"})
	}
	if d.Queue == nil && !k.given(path("queue")) {
		why := ""
		switch {
		case d.Rate > 0:
			why = "a link with a rate"
		case d.Trace != nil:
			why = "a link with a trace"
		case d.changesRate():
			why = "a link whose schedule sets a rate"
		case d.goesDown():
			why = "a link that goes down keeps what waits for it: it"
		}
		if why != "" {
			k.at(at, Problem{What: why + " needs the key queue: no length is right for every link", Allowed: "queue: {packets: 100}, or {bytes: 64KiB}, or both"})
		}
	}
	k.queue(d.Queue, path("queue"))
	k.trace(d.Trace, path("trace"))
	if j := d.Jitter; j != nil {
		at := path("jitter")
		switch {
		case j.Distribution == Constant:
			k.only("a constant delay does not vary", at+".spread", at+".overtake")
		case j.Distribution != "" && j.Spread == 0:
			k.at(at, Problem{What: "the distribution " + string(j.Distribution) + " needs a spread above 0s", Allowed: "spread: 2ms"})
		}
	}
	k.loss(d.Loss, path("loss"))
	last := vtime.Duration(-1)
	for i := range d.Schedule {
		ch := &d.Schedule[i]
		at := fmt.Sprintf("%s[%d]", path("schedule"), i)
		if ch.At <= last {
			k.at(at+".at", Problem{What: fmt.Sprintf("not after the change before it, at %v", last), Allowed: "moments that ascend; what changes at the same moment is one entry"})
		}
		last = max(last, ch.At)
		if ch.Up == nil && ch.Rate == nil && ch.Delay == nil && ch.Loss == nil && ch.Queue == nil {
			k.at(at, Problem{What: "changes nothing", Allowed: "at least one of up, rate, delay, loss, queue"})
		}
		if ch.Rate != nil && d.Trace != nil {
			k.at(at+".rate", Problem{What: "the capacity is that of a trace", Allowed: "a rate in place of the trace"})
		}
		k.queue(ch.Queue, at+".queue")
		k.loss(ch.Loss, at+".loss")
		k.only("where a loss happens does not change while the link runs", at+".loss.after-queue")
	}
}

func (k *check) trace(t *PipeTrace, at string) {
	if t == nil {
		return
	}
	under := func(keys ...string) (paths []string) {
		for _, key := range keys {
			paths = append(paths, at+"."+key)
		}
		return paths
	}
	if t.File != "" {
		k.only("the trace is that of a file", under("seed", "length", "sinr", "other-users", "outage-every", "outage-mean")...)
	}
	if t.Generate == EDCHTrace {
		k.only("power control keeps an uplink's quality, and its rate is granted", under("sinr", "other-users")...)
	}
	if t.OutageEvery == 0 {
		k.only("there are no outages", under("outage-mean")...)
	}
	if t.RandomOffset {
		k.only("random-offset chooses it", under("offset")...)
	}
}

func (k *check) queue(q *PipeQueue, at string) {
	if q != nil && q.Packets == 0 && q.Bytes == 0 && !k.given(at+".packets") && !k.given(at+".bytes") {
		k.at(at, Problem{What: "has no limit", Allowed: "{packets: 100}, or {bytes: 64KiB}, or both"})
	}
}

func (k *check) loss(l *PipeLoss, at string) {
	n := k.set[at]
	switch {
	case l == nil:
	case n != nil && n.kind == mapping && len(n.keys) == 0:
		k.at(at, Problem{What: "says nothing", Allowed: "a share such as 1%, or {good: 0.1%, bad: 30%, to-bad: 1%, to-good: 20%}; leave it out for a link without loss"})
	case l.ToBad == 0:
		k.only("without to-bad the bad state is never entered", at+".bad", at+".to-good")
	case l.ToGood == 0:
		k.at(at, Problem{What: "the bad state is never left", Allowed: "to-good: 20%, for bursts of 5 packets"})
	}
}

// bridges refuses bridges that join nothing, and loops of them: Ethernet has no
// hop count, and hopbed's bridges no spanning tree, so that a broadcast in a
// loop would circle and multiply for ever.
func (k *check) bridges(t *Topology) {
	nodes := t.AllNodes()
	ports := map[string]int{}
	for _, p := range t.Pipes {
		ports[p.Ends[0]]++
		ports[p.Ends[1]]++
	}
	offset := len(nodes) - len(t.Nodes)
	for i, n := range t.Nodes {
		at := fmt.Sprintf("topology.nodes[%d]", i)
		if !n.Radio && ports[n.Name] == 0 {
			k.at(at, Problem{What: "the node has neither a radio nor a pipe: nothing reaches it", Allowed: "a pipe in topology.pipes with " + n.Name + " at one end, or a radio"})
			continue
		}
		have := ports[n.Name]
		if n.Radio {
			have++
		}
		if n.Bridge && have < 2 {
			k.at(at+".bridge", Problem{What: fmt.Sprintf("the node has %d interface only", have), Allowed: "a bridge joins two interfaces or more; without bridge: true the node routes"})
		}
	}

	// The segments that bridges join: each bridge is one, and the radio, which
	// all of them share, is another.
	const radio = "the radio"
	next := map[string][]string{}
	root := map[string]string{} // a forest of sets that are joined
	find := func(a string) string {
		r := a
		for root[r] != "" {
			r = root[r]
		}
		if r != a {
			root[a] = r
		}
		return r
	}
	join := func(a, b string) []string {
		ra, rb := find(a), find(b)
		if ra == rb {
			return walk(next, a, b)
		}
		root[ra] = rb
		next[a], next[b] = append(next[a], b), append(next[b], a)
		return nil
	}
	bridge := map[string]bool{}
	for _, n := range nodes[offset:] {
		if bridge[n.Name] = n.Bridge; n.Bridge && n.Radio {
			join(n.Name, radio)
		}
	}
	for i, p := range t.Pipes {
		if !bridge[p.Ends[0]] || !bridge[p.Ends[1]] || p.Ends[0] == p.Ends[1] {
			continue
		}
		if path := join(p.Ends[0], p.Ends[1]); path != nil {
			k.at(fmt.Sprintf("topology.pipes[%d]", i), Problem{
				What:    "closes a loop of bridges, in which broadcasts would circle for ever: " + strings.Join(path, " – ") + " – " + path[0],
				Allowed: "bridges that form a tree: make one of them a router (no bridge: true), or take a pipe away",
			})
		}
	}
}

// walk returns the nodes on a way from a to b, nil when there is none.
func walk(next map[string][]string, a, b string) []string {
	from := map[string]string{a: a}
	for queue := []string{a}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == b {
			var path []string
			for at := b; ; at = from[at] {
				if path = append(path, at); at == a {
					slices.Reverse(path)
					return path
				}
			}
		}
		for _, n := range next[queue[0]] {
			if _, seen := from[n]; !seen {
				from[n] = queue[0]
				queue = append(queue, n)
			}
		}
	}
	return nil
}
