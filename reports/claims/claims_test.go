package claims

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// point is a run's flows at a point of the matrix.
type point struct {
	params    store.Params
	transport string
	rep       int
	flows     []store.Flow
}

func stored(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// loaded stores runs of 60 s and reads them back as a campaign.
func loaded(t *testing.T, quick bool, points ...point) *dataset.Set {
	t.Helper()
	ctx := context.Background()
	st := stored(t)
	c := &store.Campaign{Name: "x", Backend: "sim", FileText: "hopbed: 1", Planned: int64(len(points)), Quick: quick}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		params := store.Params{"transport": p.transport}
		for k, v := range p.params {
			params[k] = v
		}
		for i := range p.flows {
			f := &p.flows[i]
			f.Flow, f.Transport, f.Status, f.Dst = i, p.transport, store.FlowOK, 1
		}
		r := &store.RunRecord{
			Run:   store.Run{CampaignID: c.ID, Backend: "sim", Params: params, Transport: p.transport, Repetition: p.rep, Seed: store.Seed(p.rep), DurationS: 60, Status: store.RunComplete, Quick: quick},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}, Flows: p.flows,
		}
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	set, err := dataset.Load(ctx, st, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// goodputs are flows of these goodputs in kb/s.
func goodputs(kbps ...float64) []store.Flow {
	var out []store.Flow
	for _, g := range kbps {
		bytes := int64(g * 1000 * 60 / 8)
		out = append(out, store.Flow{Hops: 1, Bytes: bytes, GoodputBps: store.Goodput(bytes, 60)})
	}
	return out
}

// twoToOne has Hop twice as fast as TCP in each of five repetitions.
func twoToOne(t *testing.T, quick bool) *dataset.Set {
	var p []point
	for rep := 1; rep <= 5; rep++ {
		k := float64(100 * rep)
		p = append(p, point{nil, "hop", rep, goodputs(2*k, 4*k, 6*k)}, point{nil, "tcp/cubic", rep, goodputs(k, 2*k, 3*k)})
	}
	return loaded(t, quick, p...)
}

func TestVerdicts(t *testing.T) {
	set, quick := twoToOne(t, false), twoToOne(t, true)
	hop := Claim{Measure: "median-ratio", Of: "hop", To: "tcp"}
	with := func(f func(*Claim)) Claim {
		c := hop
		f(&c)
		return c
	}
	min := func(v float64) func(*Claim) { return func(c *Claim) { c.Threshold = &Threshold{Min: &v} } }
	for name, c := range map[string]struct {
		c    Claim
		want Verdict
		why  string
	}{
		"above the threshold":             {with(min(1.9)), Matches, "our value is ≥ 1.9"},
		"below the threshold, right side": {with(min(3)), SameDirection, "not ≥ 3"},
		"no threshold, right side":        {with(func(c *Claim) { c.Value = new(90.0) }), SameDirection, "no threshold"},
		"no threshold, wrong side":        {with(func(c *Claim) { c.Value = new(0.5) }), Differs, "no threshold"},
		"within a range":                  {with(func(c *Claim) { c.Threshold = &Threshold{Min: new(1.0), Max: new(3.0)} }), Matches, "≥ 1 and ≤ 3"},
		"over a limit":                    {with(func(c *Claim) { c.Threshold = &Threshold{Max: new(1.0)} }), Differs, "not ≤ 1"},
		"no number":                       {hop, NotTested, "no number"},
		"unknown measure":                 {with(func(c *Claim) { c.Measure = "beauty" }), NotTested, "beauty"},
		"no measure":                      {with(func(c *Claim) { c.Measure = "" }), NotTested, "no value for it"},
		"another transport":               {with(func(c *Claim) { c.Of, c.Value = "udp", new(1.0) }), NotTested, "needs udp"},
		"another point":                   {with(func(c *Claim) { c.Where, c.Value = map[string]string{"loss": "20%"}, new(1.0) }), NotTested, "no point of this campaign is as the statement wants with loss=20%"},
		"too few repetitions":             {with(func(c *Claim) { c.Value, c.MinRepetitions = new(2.0), 12 }), NotTested, "needs 12 repetitions, there are 5"},
		"too short":                       {with(func(c *Claim) { c.Value, c.MinDurationS = new(2.0), 300 }), NotTested, "needs runs of 300 s, these have 60 s"},
		"not above another":               {with(func(c *Claim) { c.AboveMeasure = "q1-ratio" }), Differs, "not > 0"},
		"best of the others":              {with(func(c *Claim) { c.To, c.Value = "best-other", new(2.0) }), SameDirection, "no threshold"},
	} {
		got, err := Judge(context.Background(), set, []Claim{c.c})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Verdict != c.want || !strings.Contains(got[0].Why, c.why) {
			t.Errorf("%s: %s (%s), want %s with %q", name, got[0].Verdict, got[0].Why, c.want, c.why)
		}
	}
	got, err := Judge(context.Background(), quick, []Claim{with(min(1.9))})
	if err != nil || got[0].Verdict != NotTested || got[0].Indication != Matches || got[0].Why != dataset.QuickNotice {
		t.Errorf("of a shortened campaign: %+v, %v", got, err)
	}
}

// TestGeneralMeasures: against values that were worked out by hand.
func TestGeneralMeasures(t *testing.T) {
	var p []point
	for rep, x := range [][2][]float64{{{10, 20, 30, 40}, {10, 10, 10, 10}}, {{40, 40, 40, 40}, {5, 10, 15, 20}}, {{0, 0, 0, 0}, {0, 0, 0, 0}}} {
		p = append(p, point{nil, "hop", rep + 1, goodputs(x[0]...)}, point{nil, "tcp/cubic", rep + 1, goodputs(x[1]...)})
	}
	set := loaded(t, false, p...)
	for name, want := range map[string]float64{
		"median-ratio":           2.5,       // of 2.5, 3.2 and (0/0) 1
		"aggregate-ratio":        2.5,       // of 2.5, 3.2 and 1
		"pooled-mean-ratio":      260. / 90, // sums of 12 flows
		"pooled-aggregate-ratio": 260. / 90,
	} {
		got, err := Judge(context.Background(), set, []Claim{{Measure: name, Of: "hop", To: "tcp", Value: &want}})
		if err != nil || math.Abs(got[0].Ours.Value-want) > 1e-9 {
			t.Errorf("%s = %v, want %v (%v)", name, got[0].Ours.Value, want, err)
		}
	}
}

// TestTheTable: names are there once, and every measure says what it is.
func TestTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range tables {
		for _, m := range table {
			if seen[m.Name] || m.Name == "" || m.About == "" || m.Take == nil {
				t.Errorf("the measure %q is there twice, or lacks something", m.Name)
			}
			seen[m.Name] = true
		}
	}
	if len(Names()) != len(seen) || !slices.Contains(Names(), "median-ratio") {
		t.Errorf("names %q", Names())
	}
}

func TestTheWorstPartDecidesAStatement(t *testing.T) {
	for _, c := range []struct {
		parts []Verdict
		want  Verdict
	}{
		{nil, NotTested},
		{[]Verdict{Matches, Matches}, Matches},
		{[]Verdict{Matches, NotTested}, NotTested},
		{[]Verdict{SameDirection, NotTested}, SameDirection},
		{[]Verdict{Differs, Matches, SameDirection}, Differs},
	} {
		p := Pack{Statements: []Statement{{Number: 1}}}
		for _, v := range c.parts {
			p.Add([]Finding{{Claim: Claim{Statement: 1}, Verdict: v, Indication: v}})
		}
		if got := p.Statements[0].Verdict(); got != c.want || p.Counts()[c.want] != 1 || len(p.Statements) != 1 {
			t.Errorf("%v: %s, want %s", c.parts, got, c.want)
		}
	}
}
