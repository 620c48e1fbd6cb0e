package dataset

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// goodputs are runs of one point, one for each list of goodputs in Mb/s.
func goodputs(each ...[]float64) []sideRun {
	var out []sideRun
	for i, g := range each {
		r := sideRun{transport: "udp", rep: i + 1}
		for _, v := range g {
			r.goodputs = append(r.goodputs, v*1e6)
		}
		out = append(out, r)
	}
	return out
}

func repeated(n int, g ...float64) []sideRun {
	each := make([][]float64, n)
	for i := range each {
		each[i] = g
	}
	return goodputs(each...)
}

// A sum that the model meets is not met where its flows get something else.
func TestFlowsThatDifferBehindEqualSums(t *testing.T) {
	high, low := []float64{9, 1}, []float64{1, 9}
	for _, c := range []struct {
		name       string
		sim, netns []sideRun
		want       Verdict
		sure       bool
		why        string
		moved      float64
	}{
		{"alike", repeated(6, 3, 1), repeated(6, 2.95, 1.05), Met, true, "", 0.0125},
		{"exchanged", repeated(6, 0, 4.9), repeated(6, 4.87, 0.03), FlowsDiffer, true, "flow 0 starved on one side in all repetitions, served on the other; 99 % of the goodput is another flow's; the share of starved flows differs by 0.5", 0.99388},
		{"exchanged once", repeated(1, 0, 4.9), repeated(1, 4.87, 0.03), FlowsDiffer, false, "99 % of the goodput", 0.99388},
		{"uneven", repeated(6, 4, 0.9), repeated(6, 3, 1.9), FlowsDiffer, true, "20 % of the goodput is another flow's; Jain's index differs by 0.24", 0.20408},
		// The first of ten gets nothing on one side: 10 % in all.
		{"one of ten starved", repeated(6, 0, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.2), repeated(6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), FlowsDiffer, true, "flow 0 starved on one side", 0.1},
		// Which flow leads changes from repetition to repetition, on both sides.
		{"chance", goodputs(high, high, low, high, high, low), goodputs(high, low, high, low, high, low), Met, false, "the differences between repetitions explain up to", 0.8 / 6},
	} {
		st := temp(t)
		k := side(t, st, store.Campaign{Backend: "netns"}, c.netns...)
		m := side(t, st, store.Campaign{Backend: "sim"}, c.sim...)
		got, err := CompareCampaigns(context.Background(), m, k, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := &got.Points[0]
		if p.PerFlow == nil {
			t.Fatalf("%s: the flows are not compared", c.name)
		}
		if math.Abs(p.PerFlow.Moved-c.moved) > 1e-4 {
			t.Errorf("%s: moved %g, want %g", c.name, p.PerFlow.Moved, c.moved)
		}
		q := p.Find(QuantityGoodput)
		if math.Abs(q.Ratio.Value-1) > 0.05 {
			t.Fatalf("%s: the sums differ, %v: it tests nothing", c.name, q.Ratio)
		}
		if q.Verdict != c.want || q.Sure != c.sure || !strings.Contains(q.Why, c.why) {
			t.Errorf("%s: %q, sure %v, %q; want %q, %v, %q", c.name, q.Verdict, q.Sure, q.Why, c.want, c.sure, c.why)
		}
		tally := got.Tally()[0]
		if differ := c.want == FlowsDiffer; tally.FlowsDiffer == 1 != differ || tally.Met == 1 == differ || tally.Unsure == 1 == c.sure {
			t.Errorf("%s: tally %+v", c.name, tally)
		}
	}
}

// Sums that miss the aim stay missed, and without a model nothing is judged.
func TestFlowsDoNotMendOrJudgeWhatTheyShouldNot(t *testing.T) {
	st := temp(t)
	netns := side(t, st, store.Campaign{Backend: "netns"}, repeated(6, 2, 2)...)
	sim := side(t, st, store.Campaign{Backend: "sim"}, repeated(6, 3, 0)...)
	c, err := CompareCampaigns(context.Background(), sim, netns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if q := c.Points[0].Find(QuantityGoodput); q.Verdict != Missed || c.Points[0].PerFlow.Verdict != FlowsDiffer {
		t.Errorf("%+v, %+v", q, c.Points[0].PerFlow)
	}
	again := side(t, st, store.Campaign{Backend: "netns"}, repeated(6, 4, 0)...)
	if c, err = CompareCampaigns(context.Background(), netns, again, 1); err != nil {
		t.Fatal(err)
	}
	f := c.Points[0].PerFlow
	if q := c.Points[0].Find(QuantityGoodput); q.Verdict != NotJudged || f.Verdict != NotJudged || f.Moved != 0.5 || f.Starved != [2]float64{0, 0.5} || f.Jain != [2]float64{1, 0.5} {
		t.Errorf("%+v, %+v", q, f)
	}
	single := side(t, st, store.Campaign{Backend: "sim"}, repeated(6, 4)...)
	if c, err = CompareCampaigns(context.Background(), single, netns, 1); err != nil {
		t.Fatal(err)
	}
	if p := &c.Points[0]; p.PerFlow != nil || !strings.Contains(strings.Join(p.Warnings, " "), "the sides have different flows in 6 repetitions: those are compared by their sums alone") {
		t.Errorf("one flow beside two: %+v, %v", p.PerFlow, p.Warnings)
	}
}

// With other flows in each repetition what one got cannot be averaged: chance is
// not known, and a difference not sure.
func TestEachRepetitionWithOtherFlows(t *testing.T) {
	var p Pairs
	for rep := 1; rep <= 6; rep++ {
		flows := func(a, b float64) Rep {
			r := Rep{Run: store.Run{Repetition: rep}}
			for i, g := range []float64{a, b} {
				r.Flows = append(r.Flows, store.Flow{Flow: i, Src: rep, Dst: 20 + i, GoodputBps: store.Some(g)})
			}
			return r
		}
		x, y := 8e5, 2e5 // turned round each time: averages would hide it
		if rep%2 == 0 {
			x, y = y, x
		}
		p.Repetitions = append(p.Repetitions, rep)
		p.a, p.b = append(p.a, flows(x, y)), append(p.b, flows(y, x))
	}
	c, warning := compareFlows(&p, 1)
	c.judge()
	if warning != "" || c.Same || math.Abs(c.Moved-0.6) > 1e-12 || !math.IsNaN(c.Chance) || c.Verdict != FlowsDiffer || c.Sure || c.Furthest.Repetition == 0 {
		t.Errorf("%+v, %q", c, warning)
	}
}

// Transfers are compared flow by flow by the time that they took.
func TestSizedFlowByFlow(t *testing.T) {
	p := Pairs{Repetitions: []int{1}, a: []Rep{times(1, 2, 8)}, b: []Rep{times(1, 8, 2)}}
	c, _ := compareFlows(&p, 1)
	c.judge()
	if math.Abs(c.Moved-0.6) > 1e-12 || c.Furthest.Ratio != 0.25 || !math.IsNaN(c.Jain[0]) || c.Starved != [2]float64{} || c.Verdict != FlowsDiffer || !strings.Contains(c.Why, "60 % of the completion times") {
		t.Errorf("%+v", c)
	}
	for _, w := range []struct{ x, y, want float64 }{{0, 0, 1}, {1, 0, math.Inf(1)}, {0, 1, 0}, {3, 2, 1.5}} {
		if got := flowRatio(w.x, w.y); got != w.want {
			t.Errorf("%g to %g: %g", w.x, w.y, got)
		}
	}
}
