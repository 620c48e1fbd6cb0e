package dataset

import (
	"context"
	"math"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// TestProgress: levels are averaged over a bin and the flows, and summed over the
// nodes of one; counts are their growth.
func TestProgress(t *testing.T) {
	flow := func(n int, transport string) store.Flow {
		return store.Flow{Flow: n, Transport: transport, Workload: "continual", Src: 0, Dst: 2, Hops: 2, Path: store.Path{0, 1, 2}, Status: store.FlowOK, StopS: 4, Bytes: 375, GoodputBps: store.Goodput(375, 3)}
	}
	rec := &store.RunRecord{Run: store.Run{Backend: "sim", Repetition: 1, Seed: 7, Transport: "hop", Params: store.Params{}, WarmupS: 1, DurationS: 3, SampleS: store.Some(1.0), Status: store.RunComplete},
		Flows: []store.Flow{flow(0, "hop"), flow(1, "hop"), flow(2, "udp")}}
	for i := range 3 {
		rec.Nodes = append(rec.Nodes, store.Node{Node: i, Name: string(rune('a' + i))})
	}
	hop := func(flow, node int, side string, t float64, inFlight, held, tokens int64) {
		rec.Samples = append(rec.Samples, store.Sample{Flow: flow, Side: side, Node: node, TUs: int64(t * 1e6), BlocksHeld: store.Some(held), BlocksDone: store.Some[int64](0), BlocksWithheld: store.Some[int64](0),
			BlocksInFlight: store.Counted(inFlight), Tokens: store.Counted(tokens)})
	}
	// Two bins of 2 s. Flow 0: the source has 2 and 4 blocks in flight in the first,
	// its relay 1; flow 1 has none.
	hop(0, 0, store.SideSrc, 0.5, 2, 0, 1)
	hop(0, 0, store.SideSrc, 1.5, 4, 0, 3)
	hop(0, 0, store.SideSrc, 2.5, 0, 0, 7)
	hop(0, 1, store.SideRelay, 1, 1, 5, 0)
	hop(1, 0, store.SideSrc, 1, 0, 9, 0)
	for i, n := range []int64{10, 30} {
		rec.Samples = append(rec.Samples, store.Sample{Flow: 2, Side: store.SideDst, Node: 2, TUs: int64(1e6 + 2e6*float64(i)), DeliveredBytes: store.Some(n), Datagrams: store.Counted(n), DatagramsLost: store.Counted(int64(i) * 20)})
	}
	set := stored(t, temp(t), store.Campaign{Name: "p", Backend: "sim"}, []*store.RunRecord{rec})
	lines := func(transport string) map[string][]float64 {
		p, err := set.ProgressOf(context.Background(), set.Groups[0].Find(transport), 2)
		if err != nil || p == nil {
			t.Fatalf("%s: %+v, %v", transport, p, err)
		}
		out := map[string][]float64{}
		for _, l := range p.Lines {
			out[l.Name] = l.Values
		}
		return out
	}
	h, u := lines("hop"), lines("udp")
	if v := h["blocks in flight, of all hops"]; len(v) != 2 || v[0] != (3+1+0)/2.0 || v[1] != 0 {
		t.Errorf("in flight %v", v)
	}
	if v := h["blocks held by relays"]; v[0] != 5 || !math.IsNaN(v[1]) { // a source holds its own
		t.Errorf("held %v", v)
	}
	if v := h["tokens (VBSYN) a second"]; v[0] != 3.0/2/2 || v[1] != 4.0/2 {
		t.Errorf("tokens %v", v)
	}
	if v := u["share of datagrams lost"]; len(u) != 1 || v[0] != 0 || v[1] != 0.5 {
		t.Errorf("UDP says %v", u)
	}
	if p, err := set.ProgressOf(context.Background(), &Series{Transport: "tcp/reno"}, 2); p != nil || err != nil {
		t.Errorf("a series without runs says %+v, %v", p, err)
	}
}
