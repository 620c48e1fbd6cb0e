package dataset

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// sideRun is one run of one side in short; what is nil or 0 is not stored.
type sideRun struct {
	loss, transport string
	rep             int
	seed            store.Seed
	goodputs        []float64 // b/s, one flow each
	segments, again int64     // of every flow
	timeouts        int64
	rttMs           float64
	frames          int64
	sized           float64 // completion time in s; -1: not completed
}

// side stores a campaign with its runs and loads it.
func side(t *testing.T, st *store.Store, c store.Campaign, runs ...sideRun) *Set {
	t.Helper()
	if c.Name == "" {
		c.Name = "calibrate"
	}
	if c.FileText == "" {
		c.FileText = "x"
	}
	c.Status, c.Planned = store.CampaignComplete, int64(len(runs))
	var records []*store.RunRecord
	for _, s := range runs {
		if s.seed == 0 {
			s.seed = store.Seed(100 + s.rep)
		}
		r := &store.RunRecord{Run: store.Run{Backend: c.Backend, Seed: s.seed, Repetition: s.rep, Params: store.Params{"transport": s.transport}, Transport: s.transport,
			WarmupS: 5, DurationS: 60, Status: store.RunComplete},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}}
		if s.loss != "" {
			r.Run.Params["loss"] = s.loss
		}
		for i, g := range s.goodputs {
			f := store.Flow{Flow: i, Transport: s.transport, Dst: 1, Hops: 1, StopS: 65, Bytes: int64(g * 60 / 8), Status: store.FlowOK}
			f.GoodputBps = store.Goodput(f.Bytes, 60)
			if s.segments > 0 {
				f.SentBytes, f.RetransBytes, f.Timeouts = store.Some(1460*s.segments), store.Some(1460*s.again), store.Some(s.timeouts)
			}
			if s.sized != 0 {
				f.Size = store.Some[int64](1e6)
				if s.sized > 0 {
					f.CompletionS = store.Some(s.sized)
				}
			}
			r.Flows = append(r.Flows, f)
			smp := store.Sample{Flow: i, Side: store.SideSrc, TUs: 30e6}
			if s.rttMs > 0 {
				smp.SRTTUs = store.Some(int64(1000 * s.rttMs))
			}
			if s.frames > 0 {
				smp.DataFrames = store.Some(s.frames)
			}
			r.Samples = append(r.Samples, smp)
		}
		records = append(records, r)
	}
	return stored(t, st, c, records)
}

// steady is n repetitions of which every value is multiplied by a spread around
// the given one, the same on both sides.
func steady(n int, r sideRun) []sideRun {
	out := make([]sideRun, n)
	for i := range out {
		k := 1 + 0.1*math.Sin(float64(i+1))
		out[i] = r
		out[i].rep = i + 1
		out[i].goodputs = nil
		for _, g := range r.goodputs {
			out[i].goodputs = append(out[i].goodputs, k*g)
		}
		out[i].rttMs = k * r.rttMs
	}
	return out
}

func TestModelAndKernelAreComparedPointByPoint(t *testing.T) {
	st := temp(t)
	ctx := context.Background()
	cubic := sideRun{loss: "1%", transport: "tcp/cubic", goodputs: []float64{1e6, 3e6}, segments: 20_000, again: 400, timeouts: 13, rttMs: 80}
	kernel := side(t, st, store.Campaign{Backend: "netns"}, steady(6, cubic)...)
	near := cubic
	near.goodputs, near.again, near.timeouts, near.rttMs = []float64{1.02e6, 3.06e6}, 500, 26, 79
	simulated := side(t, st, store.Campaign{Backend: "sim"}, steady(6, near)...)
	c, err := CompareCampaigns(ctx, kernel, simulated, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.A.Label != "sim" || c.B.Label != "netns" || !c.Judged || c.Backends() != "sim / netns" || len(c.Points) != 1 || len(c.Warnings) != 0 {
		t.Fatalf("%s to %s, judged %v, %d points, %v", c.A.Label, c.B.Label, c.Judged, len(c.Points), c.Warnings)
	}
	p := &c.Points[0]
	if p.Name() != "loss=1%, tcp/cubic" || len(p.Repetitions) != 6 || p.Flows != 2 {
		t.Errorf("point %+v", p)
	}
	for _, w := range []struct {
		q       Quantity
		ratio   float64
		verdict Verdict
		sure    bool
	}{
		{QuantityGoodput, 1.02, Met, true},
		{QuantityRetransmitted, 1.25, Missed, true}, // 2.5 % beside 2 %
		{QuantityRTT, 79.0 / 80, Met, true},
		{QuantityTimeouts, 2, NotJudged, false},
	} {
		k := p.Find(w.q)
		if k == nil {
			t.Errorf("%s is not there", w.q)
			continue
		}
		if math.Abs(k.Ratio.Value-w.ratio) > 1e-3 || k.Verdict != w.verdict || k.Sure != w.sure || k.Ratio.N != 6 {
			t.Errorf("%s: ratio %v, %q (sure: %v, %s), want %g, %q", w.q, k.Ratio, k.Verdict, k.Sure, k.Why, w.ratio, w.verdict)
		}
	}
	// Sums over flows; 26 time-outs each of 2 flows in 65 s.
	if k := p.Find(QuantityGoodput); math.Abs(k.B/4e6-1) > 0.1 {
		t.Errorf("goodput %g, want the sum over the flows", k.B)
	}
	if k := p.Find(QuantityTimeouts); math.Abs(k.A-24) > 1e-9 || math.Abs(k.Difference.Value-12) > 1e-9 || k.Counts.A != 6*2*26 {
		t.Errorf("time-outs %+v, %+v", k, k.Counts)
	}
	if k := p.Find(QuantityJainIndex); k == nil || math.Abs(k.A-0.8) > 1e-4 || math.Abs(k.Difference.Value) > 1e-4 || k.Ratio.N != 0 {
		t.Errorf("Jain's index %+v", k)
	}
	if p.Find(QuantityFrames) != nil || p.Find(QuantityCompletionTime) != nil {
		t.Error("TCP flows without a size have frames of Hop or completion times")
	}
	if tally := c.Tally(); len(tally) != 3 || tally[0] != (Tally{Aim: Aims[0], Met: 1}) || tally[1] != (Tally{Aim: Aims[2], Missed: 1}) {
		t.Errorf("tally %+v", tally)
	}
}

// Verdicts that rest on few repetitions or few events say so.
func TestVerdictsKnowTheirLimits(t *testing.T) {
	for name, w := range map[string]struct {
		reps         int
		again, other int64 // of 20,000 segments, in each repetition: sim, netns
		q            Quantity
		verdict      Verdict
		sure         bool
		why          string
	}{
		"many, near":          {6, 100, 104, QuantityRetransmitted, Met, true, ""},
		"many, far":           {6, 100, 200, QuantityRetransmitted, Missed, true, ""},
		"some, apart":         {6, 30, 38, QuantityRetransmitted, Missed, false, "180 beside 228 events"},
		"few, equal":          {6, 2, 2, QuantityRetransmitted, TooFew, false, "12 beside 12 events"},
		"few, somewhat apart": {6, 2, 3, QuantityRetransmitted, TooFew, false, "12 beside 18"},
		"few, far apart":      {6, 1, 40, QuantityRetransmitted, Missed, true, "too far apart"},
		"some beside none":    {6, 0, 1, QuantityRetransmitted, TooFew, false, "0 beside 6"},
		"many beside none":    {6, 100, 0, QuantityRetransmitted, Missed, true, "600 beside 0"},
		"none":                {6, 0, 0, QuantityRetransmitted, Met, true, "none on either side"},
		"two repetitions":     {2, 300, 300, QuantityRetransmitted, Met, false, "2 repetitions"},
		"one repetition":      {1, 300, 900, QuantityRetransmitted, Missed, false, "one repetition"},
		"goodput":             {3, 0, 0, QuantityGoodput, Met, false, "3 repetitions"},
	} {
		t.Run(name, func(t *testing.T) {
			st := temp(t)
			run := func(again int64) []sideRun {
				return steady(w.reps, sideRun{transport: "tcp/reno", goodputs: []float64{1e6}, segments: 20_000, again: again, rttMs: 20})
			}
			a := side(t, st, store.Campaign{Backend: "sim"}, run(w.again)...)
			b := side(t, st, store.Campaign{Backend: "netns"}, run(w.other)...)
			c, err := CompareCampaigns(context.Background(), a, b, 1)
			if err != nil {
				t.Fatal(err)
			}
			k := c.Points[0].Find(w.q)
			if k.Verdict != w.verdict || k.Sure != w.sure || !strings.Contains(k.Why, w.why) {
				t.Errorf("%q (sure: %v, %s), want %q, %v, %q", k.Verdict, k.Sure, k.Why, w.verdict, w.sure, w.why)
			}
		})
	}
}

// An interval that reaches over the edge of the aim leaves doubt.
func TestDoubtAtTheEdgeOfAnAim(t *testing.T) {
	st := temp(t)
	base := steady(8, sideRun{transport: "hop", goodputs: []float64{1e6}, frames: 1000})
	other := steady(8, sideRun{transport: "hop", goodputs: []float64{1e6}, frames: 1300})
	for i := range other {
		other[i].goodputs[0] *= []float64{1.0, 1.08, 1.03, 1.07, 1.02, 1.09, 1.04, 1.0}[i]
	}
	a := side(t, st, store.Campaign{Backend: "sim"}, other...)
	b := side(t, st, store.Campaign{Backend: "netns"}, base...)
	c, err := CompareCampaigns(context.Background(), a, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Points[0]
	if k := p.Find(QuantityGoodput); k.Verdict != Met || k.Sure || !strings.Contains(k.Why, "edge") {
		t.Errorf("ratio %v: %q, sure %v: %s", k.Ratio, k.Verdict, k.Sure, k.Why)
	}
	// Hop has no TCP to speak of, but frames.
	if k := p.Find(QuantityFrames); k == nil || math.Abs(k.Ratio.Value-1.3) > 1e-9 || k.Verdict != NotJudged {
		t.Errorf("frames %+v", k)
	}
	if len(p.Quantities) != 2 {
		t.Errorf("quantities %+v", p.Quantities)
	}
	if tally := c.Tally(); len(tally) != 1 || tally[0].Met != 1 || tally[0].Unsure != 1 {
		t.Errorf("tally %+v", tally)
	}
}

// What is not the same is told, and what cannot be compared is refused.
func TestWhatDiffersBesideTheBackEndIsTold(t *testing.T) {
	st := temp(t)
	ctx := context.Background()
	run := func(loss string, seed store.Seed) sideRun {
		return sideRun{loss: loss, transport: "tcp/reno", rep: 1, seed: seed, goodputs: []float64{1e6}, segments: 9, rttMs: 1}
	}
	a := side(t, st, store.Campaign{Backend: "sim", Version: "v1", Quick: true}, run("1%", 7), run("2%", 7))
	b := side(t, st, store.Campaign{Backend: "netns", Version: "v2", FileText: "y"}, run("2%", 7), run("3%", 7))
	c, err := CompareCampaigns(ctx, a, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Points) != 1 || c.Points[0].Condition["loss"] != "2%" {
		t.Errorf("points %+v", c.Points)
	}
	said := strings.Join(c.Warnings, "\n")
	for _, want := range []string{"the experiments differ", "v1 and v2", QuickNotice, "1 point of campaign 1 has no counterpart", "1 point of campaign 2 has no counterpart"} {
		if !strings.Contains(said, want) {
			t.Errorf("the warnings do not say %q:\n%s", want, said)
		}
	}
	for name, other := range map[string]*Set{
		"no point in common":      side(t, st, store.Campaign{Backend: "netns"}, run("5%", 7)),
		"run both with the same":  side(t, st, store.Campaign{Backend: "netns", Seed: 9}, run("1%", 8)),
		"no valid repetition in ": side(t, st, store.Campaign{Backend: "netns"}, sideRun{loss: "1%", transport: "tcp/reno", rep: 2, seed: 7, goodputs: []float64{1}}),
	} {
		if _, err := CompareCampaigns(ctx, a, other, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// Two campaigns of one back end, and two transports of one campaign, are
// compared and not judged.
func TestComparisonsWithoutAnAim(t *testing.T) {
	st := temp(t)
	ctx := context.Background()
	var runs []sideRun
	for i, loss := range []string{"0%", "1%"} {
		for j, tr := range []string{"tcp/cubic", "tcp/reno"} {
			runs = append(runs, steady(5, sideRun{loss: loss, transport: tr, goodputs: []float64{float64(1+i) * float64(1+j) * 1e6}, segments: 10_000, again: 2, rttMs: 10})...)
		}
	}
	a, b := side(t, st, store.Campaign{Backend: "sim"}, runs...), side(t, st, store.Campaign{Backend: "sim"}, runs...)
	c, err := CompareCampaigns(ctx, a, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.Judged || c.Backends() != "sim" || c.A.Label != "campaign 1" || c.B.Label != "campaign 2" || len(c.Points) != 4 || len(c.Tally()) != 1 {
		t.Errorf("%+v, tally %+v", c, c.Tally())
	}
	if k := c.Points[0].Find(QuantityGoodput); k.Ratio.Value != 1 || k.Verdict != NotJudged {
		t.Errorf("goodput %+v", k)
	}
	if k := c.Points[0].Find(QuantityRetransmitted); k.Verdict != TooFew {
		t.Errorf("ten events on either side: %q", k.Verdict)
	}
	c, err = CompareTransports(ctx, a, "tcp/reno", "tcp/cubic", 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.Judged || len(c.Points) != 2 || c.Points[1].Name() != "loss=1%" || c.A.Label != "tcp/reno" {
		t.Errorf("%+v", c)
	}
	for i := range c.Points {
		if k := c.Points[i].Find(QuantityGoodput); math.Abs(k.Ratio.Value-2) > 1e-9 {
			t.Errorf("point %d: %+v", i, k)
		}
	}
	if _, err := CompareTransports(ctx, a, "tcp/reno", "hop", 1); err == nil || !strings.Contains(err.Error(), "hop of campaign 1") {
		t.Errorf("a transport that is not there: %v", err)
	}
}

// Sized flows are compared by the time they took.
func TestSizedFlowsAreComparedByTime(t *testing.T) {
	st := temp(t)
	sized := func(s float64) []sideRun {
		return steady(5, sideRun{transport: "tcp/reno", goodputs: []float64{1e5, 1e5}, segments: 700, sized: s, rttMs: 5})
	}
	a := side(t, st, store.Campaign{Backend: "sim"}, sized(20)...)
	b := side(t, st, store.Campaign{Backend: "netns"}, sized(25)...)
	c, err := CompareCampaigns(context.Background(), a, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Points[0]
	if p.Find(QuantityGoodput) != nil || p.Find(QuantityJainIndex) != nil {
		t.Errorf("the goodput of sized flows: %+v", p.Quantities)
	}
	if k := p.Find(QuantityCompletionTime); k == nil || math.Abs(k.Ratio.Value-0.8) > 1e-9 || k.Verdict != Missed || !k.Sure {
		t.Errorf("completion time %+v", k)
	}
	// Time-outs are counted over the time that the flow lived.
	if k := p.Find(QuantityTimeouts); k == nil || fmt.Sprintf("%.3f", k.A) != "0.000" {
		t.Errorf("time-outs %+v", k)
	}
}
