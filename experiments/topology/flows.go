package topology

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/des"
)

type pair struct{ src, dst int }

// candidates returns the pairs of each class of a flow group, by src, then dst.
func (t *Topology) candidates(f *spec.Flow) [][]pair {
	classes := max(1, len(f.Hops.Classes))
	out := make([][]pair, classes)
	for i := range t.Nodes {
		for j := range t.Nodes {
			h := t.Routes.Hops(i, j)
			if h < 1 || t.endless(i) || t.endless(j) {
				continue
			}
			k := 0
			if !f.Hops.Any() {
				k = f.Hops.Class(h)
			}
			if k >= 0 {
				out[k] = append(out[k], pair{i, j})
			}
		}
	}
	return out
}

// Flows draws the pairs of all flow groups of a point. Each group has a stream
// of its own that follows from the experiment's seed and the repetition, so
// that all points with the same topology, counts and hop rules get the same
// pairs. No pair comes twice in a group before every pair of its class came
// once.
//
// The requests of web flows are flows of their own, from the client to the
// server. They come after all others, so that the others are the same with and
// without them.
func (t *Topology) Flows(c *spec.Config, repetition int) ([]Flow, error) {
	var out []Flow
	for g := range c.Flows {
		pairs, err := t.groupPairs(c, g, repetition)
		if err != nil {
			return nil, fmt.Errorf("flows[%d]: %w", g, err)
		}
		for _, p := range pairs {
			f, err := t.flow(c, len(out), g, p)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	for i := range out {
		if c.Flows[out[i].Group].Workload.Kind != spec.Web {
			continue
		}
		f, err := t.flow(c, len(out), out[i].Group, pair{out[i].Dst, out[i].Src})
		if err != nil {
			return nil, err
		}
		f.Role, f.Peer = spec.Requests, i
		out[i].Role, out[i].Peer = spec.Responses, f.ID
		out = append(out, f)
	}
	return out, nil
}

// flow is a flow along the route between two nodes.
func (t *Topology) flow(c *spec.Config, id, group int, p pair) (Flow, error) {
	path := t.Routes.Path(p.src, p.dst)
	if path == nil {
		return Flow{}, fmt.Errorf("flows[%d]: there is no route from %s to %s: the network has %s; %s",
			group, t.Nodes[p.src].Name, t.Nodes[p.dst].Name, t.noRoute(p.src, p.dst), t.routeRemedy(c))
	}
	return Flow{ID: id, Group: group, Src: p.src, Dst: p.dst, Path: path}, nil
}

func (t *Topology) groupPairs(c *spec.Config, g, repetition int) ([]pair, error) {
	f := &c.Flows[g]
	if !f.Pairs.Random() {
		var out []pair
		for _, p := range f.Pairs.Listed {
			out = append(out, pair{t.index(p.Src), t.index(p.Dst)})
		}
		return out, nil
	}
	s := des.NewStream(spec.RepetitionSeed(c.Seed, repetition), fmt.Sprintf("flows/%d/pairs", g))
	classes := t.candidates(f)
	counts := []int{f.Count}
	if !f.Hops.Any() {
		counts = f.Hops.Counts(f.Count)
	}
	var out []pair
	for k, n := range counts {
		if n == 0 {
			continue
		}
		if len(classes[k]) == 0 {
			what := "any"
			if !f.Hops.Any() {
				what = f.Hops.Classes[k].String()
			}
			return nil, fmt.Errorf("no two nodes are %s hops apart; the routes are %s: change flows[%d].hops or the topology", what, t.histogramText(), g)
		}
		deck := append([]pair(nil), classes[k]...)
		for n > 0 {
			s.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			take := min(n, len(deck))
			out = append(out, deck[:take]...)
			n -= take
		}
	}
	s.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}
