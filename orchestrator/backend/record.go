package backend

import (
	"fmt"
	"math"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// NewRecord lays a scenario out as records: its nodes, links and flows, without
// results. address gives a node's address, "" for none.
func NewRecord(s *plan.Scenario, address func(node int) string) *store.RunRecord {
	c := s.Config()
	rec := &store.RunRecord{Run: store.Run{
		Seed:       store.Seed(s.Seed),
		Repetition: s.Repetition,
		Params:     store.Params{},
		Transport:  s.Transport(),
		WarmupS:    c.Warmup.Seconds(),
		DurationS:  c.Duration.Seconds(),
		SampleS:    store.Some(c.Sample.Seconds()),
		Facts:      store.Facts{},
	}}
	for _, p := range s.Point.Params {
		rec.Run.Params[p.Name] = p.Value
	}
	if s.Surveyed() != nil {
		rec.Run.Facts["network"] = s.NetworkKey()
	}
	for _, n := range s.Topology.Nodes {
		row := store.Node{Node: n.ID, Name: n.Name, Address: address(n.ID), Wired: !n.Radio, Bridge: n.Bridge, Facts: store.Facts{}}
		if n.Radio {
			row.XM, row.YM = store.Some(float64(n.Position.X)), store.Some(float64(n.Position.Y))
		}
		rec.Nodes = append(rec.Nodes, row)
	}
	routed := map[[2]int]bool{}
	for _, f := range s.Flows {
		markRouted(routed, s.Topology, f.Path)
		rec.Flows = append(rec.Flows, newFlow(c, f))
	}
	for _, l := range s.Topology.Links {
		row := newLink(s.Topology, l, routed[[2]int{l.From, l.To}])
		if s.Surveyed() != nil {
			row.Measured = "probes"
		}
		rec.Links = append(rec.Links, row)
	}
	rec.Pipes = PipeRows(s, nil)
	rec.Events = changeRows(s)
	return rec
}

// markRouted notes the radio links along a path: between two neighbours of the
// path there may be bridges, and wired links.
func markRouted(routed map[[2]int]bool, t *topology.Topology, path []int) {
	for i := 1; i < len(path); i++ {
		at := path[i-1]
		for _, e := range t.LinkPath(at, path[i]) {
			if e.Pipe == topology.RadioEgress {
				routed[[2]int{at, e.Next}] = true
			}
			at = e.Next
		}
	}
}

func newFlow(c *spec.Config, f topology.Flow) store.Flow {
	g := c.Flows[f.Group]
	row := store.Flow{
		Flow: f.ID, Transport: string(g.Transport), Workload: string(g.Workload.Kind),
		Src: f.Src, Dst: f.Dst, Hops: f.Hops(), Path: f.Path,
		StartS: startOf(c, &g).Seconds(), StopS: stopOf(c, &g).Seconds(),
		Status: store.FlowFailed, Error: "the run gave no result for this flow",
		Counters: store.Counters{}, Role: string(f.Role),
	}
	if f.Role != "" {
		row.Peer = store.Some(int64(f.Peer))
	}
	if g.Transport.HasDSCP() {
		row.DSCP = store.Some(int64(g.DSCPValue()))
	}
	if g.Workload.Kind == spec.Sized {
		row.Size = store.Some(int64(g.Workload.Size))
	}
	return row
}

func newLink(t *topology.Topology, l topology.Link, routed bool) store.Link {
	row := store.Link{
		Src: l.From, Dst: l.To, Delivery: store.Some(l.Delivery), Routed: routed, Measured: "model",
	}
	if l.SNR != 0 {
		row.SNRdB = store.Some(float64(l.SNR))
	}
	if !math.IsInf(l.ETX, 0) {
		row.ETX = store.Some(l.ETX)
	}
	a, b := t.Nodes[l.From].Position, t.Nodes[l.To].Position
	row.DistanceM = store.Some(math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)))
	return row
}

// FlowError describes a failed flow for the list of reasons.
func FlowError(rec *store.RunRecord, i int) string {
	f := rec.Flows[i]
	return fmt.Sprintf("flow %d (%s, %s to %s) failed: %s", f.Flow, f.Transport, rec.Nodes[f.Src].Name, rec.Nodes[f.Dst].Name, f.Error)
}
