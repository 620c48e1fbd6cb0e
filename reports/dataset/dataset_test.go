package dataset

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/internal/fixture"
)

func temp(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// runSpec is one run in short: flows are goodputs in b/s over 10 s.
type runSpec struct {
	transport string
	rep       int
	seed      store.Seed
	status    store.RunStatus
	flows     []float64
	backend   string
	radio     string
}

func load(t *testing.T, c store.Campaign, specs ...runSpec) *Set {
	t.Helper()
	c.Name, c.Backend, c.FileText = "x", "sim", "x"
	var records []*store.RunRecord
	for _, s := range specs {
		if s.backend == "" {
			s.backend = "sim"
		}
		r := &store.RunRecord{Run: store.Run{Backend: s.backend, Seed: s.seed, Repetition: s.rep, Params: store.Params{"transport": s.transport}, Transport: s.transport, DurationS: 10, Status: s.status},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}}
		if s.radio != "" {
			r.Run.Params["radio"] = s.radio
		}
		switch s.status {
		case store.RunInvalid:
			r.Run.InvalidReasons = store.Strings{"late"}
		case store.RunFailed:
			r.Run.Error = "died"
		}
		for i, g := range s.flows {
			f := store.Flow{Flow: i, Transport: s.transport, Src: 0, Dst: 1, Hops: 1 + i%2, Bytes: int64(g * 10 / 8), Status: store.FlowOK}
			if math.IsNaN(g) {
				f.Bytes, f.Status = 0, store.FlowFailed
			} else {
				f.GoodputBps = store.Goodput(f.Bytes, 10)
			}
			r.Flows = append(r.Flows, f)
		}
		records = append(records, r)
	}
	return stored(t, temp(t), c, records)
}

// stored is a campaign with these runs, as a report reads it.
func stored(t *testing.T, st *store.Store, c store.Campaign, records []*store.RunRecord) *Set {
	t.Helper()
	ctx := t.Context()
	id, err := st.CreateCampaign(ctx, &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		r.Run.CampaignID = id
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Load(ctx, st, id)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const ok, invalid, failed = store.RunComplete, store.RunInvalid, store.RunFailed

func TestInvalidRunsAreLeftOut(t *testing.T) {
	set := load(t, store.Campaign{Planned: 4},
		runSpec{transport: "hop", rep: 1, seed: 1, status: invalid, flows: []float64{8e9, 8e9}},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{80e3, 160e3}},
		runSpec{transport: "hop", rep: 2, seed: 2, status: failed},
		runSpec{transport: "hop", rep: 2, seed: 2, status: invalid, flows: []float64{8e9, 8e9}},
	)
	if len(set.Runs) != 4 {
		t.Errorf("%d runs are shown, want all 4", len(set.Runs))
	}
	sum := set.Groups[0].Series[0].Summary()
	if sum.Runs != 1 || sum.Flows != 2 || sum.Goodput.Max != 160e3 || sum.AggregateBps != 240e3 {
		t.Errorf("summary: %+v", sum)
	}
	if sum.LeftOut != 1 {
		t.Errorf("%d repetitions are left out, want 1 (repetition 1 was run again)", sum.LeftOut)
	}
	// Of the plan's four runs one has a valid result; three attempts have none.
	if c := set.Counts(); c != (Counts{Planned: 4, Valid: 1, Attempts: 4, Invalid: 2, Failed: 1}) || strings.Join(c.LeftOut(), ", ") != "2 invalid, 1 failed" {
		t.Errorf("counts: %+v", c)
	}
}

func TestBackendsAndConditionsAreNotPooled(t *testing.T) {
	set := load(t, store.Campaign{},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{8e3}},
		runSpec{transport: "hop", rep: 2, seed: 2, status: ok, flows: []float64{8e3}, backend: "netns"},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{8e3}, radio: "open"},
	)
	if len(set.Groups) != 3 {
		t.Fatalf("%d groups", len(set.Groups))
	}
	for _, g := range set.Groups {
		if n := g.Series[0].Summary().Flows; n != 1 {
			t.Errorf("%s has %d flows", g.Title(), n)
		}
	}
	if w := strings.Join(set.Warnings, "; "); !strings.Contains(w, "never pooled") {
		t.Errorf("warnings: %s", w)
	}
}

func TestPairingNeedsTheSameConditions(t *testing.T) {
	set := load(t, store.Campaign{},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{80e3}},
		runSpec{transport: "hop", rep: 2, seed: 2, status: ok, flows: []float64{80e3}},
		runSpec{transport: "hop", rep: 3, seed: 3, status: ok, flows: []float64{80e3}},
		runSpec{transport: "tcp/cubic", rep: 1, seed: 1, status: ok, flows: []float64{8e3}},
		runSpec{transport: "tcp/cubic", rep: 2, seed: 99, status: ok, flows: []float64{8e3}},
		runSpec{transport: "tcp/cubic", rep: 4, seed: 4, status: ok, flows: []float64{8e3}},
	)
	g := &set.Groups[0]
	base := g.Baseline("")
	if base == nil || base.Transport != "tcp/cubic" {
		t.Fatalf("baseline: %v", base)
	}
	r := Compare(g.Find("hop"), base, 1)
	if r.Repetitions != 1 || r.Median.Value != 10 || r.Median.HasInterval {
		t.Errorf("ratio: %+v", r)
	}
	w := strings.Join(r.Warnings, "; ")
	if !strings.Contains(w, "different seeds") || !strings.Contains(w, "2 repetitions of hop and tcp/cubic have no valid partner") {
		t.Errorf("warnings: %s", w)
	}
}

func TestUnmeasuredAndStarvedFlows(t *testing.T) {
	set := load(t, store.Campaign{Quick: true},
		runSpec{transport: "tcp/cubic", rep: 1, seed: 1, status: ok, flows: []float64{0, 9_600, 16_000, math.NaN()}})
	sum := set.Groups[0].Series[0].Summary()
	if sum.Flows != 3 || sum.StarvedShare != 2.0/3 || sum.Goodput.Median != 9_600 {
		t.Errorf("summary: %+v", sum)
	}
	w := strings.Join(set.Warnings, "; ")
	if !strings.Contains(w, "1 flow of a valid run could not be measured") || !strings.Contains(w, QuickNotice) {
		t.Errorf("warnings: %s", w)
	}
}

func TestByHops(t *testing.T) {
	set := load(t, store.Campaign{},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{80e3, 40e3}},
		runSpec{transport: "tcp/cubic", rep: 1, seed: 1, status: ok, flows: []float64{40e3, 8e3}},
		runSpec{transport: "hop", rep: 2, seed: 2, status: ok, flows: []float64{80e3}},
		runSpec{transport: "tcp/cubic", rep: 2, seed: 2, status: ok, flows: []float64{40e3}},
	)
	g := &set.Groups[0]
	rows := ByHops(g, g.Baseline(""), 1)
	if len(rows) != 2 || rows[0].Hops != 1 || rows[1].Hops != 2 {
		t.Fatalf("rows: %+v", rows)
	}
	one, two := rows[0].Cells[0].Gain, rows[1].Cells[0].Gain
	if one.Value != 2 || one.N != 2 || two.Value != 5 || two.N != 1 {
		t.Errorf("gains: %+v and %+v", one, two)
	}
}

func TestGoodputOverTimeHasGaps(t *testing.T) {
	ctx := context.Background()
	st := temp(t)
	o := fixture.Load30(1)
	o.Flows, o.DurationS, o.SampleS = 14, 150, 0.5
	id, err := fixture.Fill(ctx, st, o)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Load(ctx, st, id)
	if err != nil {
		t.Fatal(err)
	}
	band, err := set.GoodputOverTime(ctx, set.Groups[0].Find("hop"))
	if err != nil {
		t.Fatal(err)
	}
	if band.WarmupS != 20 || len(band.Bins) != int(170/band.BinS) {
		t.Fatalf("%g s bins, %d of them", band.BinS, len(band.Bins))
	}
	for _, b := range band.Bins {
		want := 14
		// Flows 0 and 7 have no samples between 95 and 115 s, so no bin that has
		// an edge there.
		if b.StartS+band.BinS > 95 && b.StartS < 115 {
			want = 12
		}
		if b.Flows != want || !b.OK {
			t.Errorf("bin at %g s: %d flows, want %d", b.StartS, b.Flows, want)
		}
		for i := 1; i < len(b.QBps); i++ {
			if b.QBps[i] < b.QBps[i-1] {
				t.Errorf("bin at %g s: quantiles %v", b.StartS, b.QBps)
			}
		}
	}
}

// What the bins add up to is what was delivered.
func TestBinsAreExact(t *testing.T) {
	e := edges{binUs: 1e6, toleranceUs: 0.15e6, values: make([][]float64, 10)}
	for i := range 101 { // 100 ms steps, 1,000 B each, then 2,000 B from 5 s
		b := int64(i) * 1000
		if i > 50 {
			b += int64(i-50) * 1000
		}
		e.add(3, int64(i)*100_000, b)
	}
	for i, v := range e.values {
		want := 80_000.0
		if i >= 5 {
			want = 160_000
		}
		if len(v) != 1 || v[0] != want {
			t.Errorf("bin %d: %v, want %v", i, v, want)
		}
	}
	// A flow without a sample near an edge has no value on either side of it.
	g := edges{binUs: 1e6, toleranceUs: 0.15e6, values: make([][]float64, 4)}
	for _, ms := range []int64{0, 500, 900, 1300, 1900, 2000, 3000, 4000} {
		g.add(0, ms*1000, ms)
	}
	for i, want := range []int{0, 0, 1, 1} {
		if len(g.values[i]) != want {
			t.Errorf("with a gap, bin %d: %v", i, g.values[i])
		}
	}
}

func TestTopologyAndAirtime(t *testing.T) {
	ctx := context.Background()
	st := temp(t)
	o := fixture.Load30(2)
	o.DurationS, o.SampleS, o.Vary = 10, 5, false
	id, err := fixture.Fill(ctx, st, o)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Load(ctx, st, id)
	if err != nil {
		t.Fatal(err)
	}
	g := &set.Groups[0]
	nets, err := set.Networks(ctx, g)
	if err != nil || len(nets) != 1 || nets[0].Repetition != 1 || len(nets[0].Nodes) != 20 || len(nets[0].Flows) != 30 || len(nets[0].Links) == 0 {
		t.Errorf("networks: %+v, %v", nets, err)
	}
	o.Vary = true
	if id, err = fixture.Fill(ctx, st, o); err != nil {
		t.Fatal(err)
	}
	moved, err := Load(ctx, st, id)
	if err != nil {
		t.Fatal(err)
	}
	if nets, err := moved.Networks(ctx, &moved.Groups[0]); err != nil || len(nets) != 2 || nets[1].Repetition != 2 {
		t.Errorf("networks of two placements: %d, %v", len(nets), err)
	}
	air, err := set.AirtimeOf(ctx, &g.Series[1])
	if err != nil || len(air) != 20 {
		t.Fatalf("airtime: %d nodes, %v", len(air), err)
	}
	for _, a := range air {
		if sum := a.Tx + a.Rx + a.Busy + a.Idle; math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: shares add up to %v", a.Name, sum)
		}
	}
}

// Flows one after the other over a link share its capacity: their goodputs, each
// over its own time, have no sum.
func TestAggregateOfFlowsAtDifferentTimes(t *testing.T) {
	r := Rep{Run: store.Run{Repetition: 1, Seed: 1, WarmupS: 0.2, DurationS: 0.8}}
	for i, at := range [][2]float64{{0, 0.4}, {0.4, 0.6}, {0.6, 1}} { // of which 0.2, 0.2 and 0.4 s are measured
		r.Flows = append(r.Flows, store.Flow{Flow: i, StartS: at[0], StopS: at[1], GoodputBps: store.Some(10e6)})
	}
	s := Series{Transport: "hop", Reps: []Rep{r}}
	if got := s.Summary().AggregateBps; math.Abs(got-10e6) > 1 {
		t.Errorf("aggregate %g, want the capacity", got)
	}
	if got := s.SummariseReps().Aggregate.Median; math.Abs(got-10e6) > 1 {
		t.Errorf("sweep: aggregate %g", got)
	}
	half := s
	half.Reps = []Rep{r}
	half.Reps[0].Flows = []store.Flow{r.Flows[0], r.Flows[1]}
	if c := Compare(&s, &half, 1); math.Abs(c.Aggregate.Value-2) > 1e-6 {
		t.Errorf("ratio of aggregates %v", c.Aggregate)
	}
	if r.Throughout() {
		t.Error("the flows are said to run throughout")
	}
	for i := range r.Flows {
		r.Flows[i].StartS, r.Flows[i].StopS = 0, 1
	}
	if !r.Throughout() || s.Summary().AggregateBps != 30e6 {
		t.Errorf("throughout: %v, %g", r.Throughout(), s.Summary().AggregateBps)
	}
}
