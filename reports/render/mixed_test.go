package render

import (
	"context"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"

	"github.com/hopbed/hopbed/reports/claims"
)

// buildRuns builds the report of a campaign without a title.
func buildRuns(t *testing.T, planned int64, runs ...*store.RunRecord) *Report {
	t.Helper()
	ctx := context.Background()
	st := temp(t)
	c := &store.Campaign{Name: "nameless", Backend: "sim", FileText: "hopbed: 1", Planned: planned, Reference: "test"}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		r.Run.CampaignID, r.Run.Backend, r.Run.DurationS, r.Run.Seed = c.ID, "sim", 10, store.Seed(r.Run.Repetition)
		r.Nodes = []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}
		if r.Run.Status == store.RunComplete {
			r.NodeStats = []store.NodeStat{{Node: 0, AC: store.ACAll, AirtimeTxUs: store.Some[int64](4), AirtimeRxUs: store.Some[int64](1), AirtimeBusyUs: store.Some[int64](1), AirtimeIdleUs: store.Some[int64](4)}}
		}
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Build(ctx, st, []int64{c.ID}, Options{Published: published})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func oneFlow(id int, transport string) store.Flow {
	return store.Flow{Flow: id, Transport: transport, Dst: 1, Hops: 1, Bytes: 1e5, GoodputBps: store.Goodput(1e5, 10), Status: store.FlowOK}
}

// Transports that ran at once are not set in relation to each other.
func TestTransportsOfOneRunHaveNoRatio(t *testing.T) {
	var runs []*store.RunRecord
	for rep := 1; rep <= 2; rep++ {
		runs = append(runs, &store.RunRecord{Run: store.Run{Repetition: rep, Transport: "mixed", Status: store.RunComplete}, Flows: []store.Flow{oneFlow(0, "hop"), oneFlow(1, "tcp/cubic")}})
	}
	r := buildRuns(t, 2, runs...)
	g := &r.Sections[0].Groups[0]
	if g.Baseline != "" || len(g.Ratios) > 0 || len(g.Airtime) != 1 || len(g.Summary) != 2 {
		t.Errorf("baseline %q, %d ratios, airtime of %d", g.Baseline, len(g.Ratios), len(g.Airtime))
	}
	for _, c := range r.Sections[0].Claims {
		if c.Verdict != claims.NotTested {
			t.Errorf("%s: %s", c.ID, c.Verdict)
		}
	}
	text := written(t, r)
	for _, want := range []string{"shared the channel", "all transports together", "nameless", "hopbed’s own model of TCP"} {
		if !strings.Contains(text["md"], want) || !strings.Contains(text["html"], want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, want := range []string{`"title": "nameless"`, `"transports_shared_the_channel": true`, "hopbed’s own model of TCP"} {
		if !strings.Contains(text["json"], want) {
			t.Errorf("the JSON report does not say %s", want)
		}
	}
	// One flow of each transport: nothing is shared nor ranked among them.
	for _, no := range []string{"Jain's index", "By hop count", "goodput-ranked"} {
		if strings.Contains(text["html"], no) {
			t.Errorf("a report of single flows has %q", no)
		}
	}
}

func TestATransportWithoutAValidRunSaysSo(t *testing.T) {
	r := buildRuns(t, 2,
		&store.RunRecord{Run: store.Run{Repetition: 1, Transport: "hop", Params: store.Params{"transport": "hop"}, Status: store.RunComplete}, Flows: []store.Flow{oneFlow(0, "hop"), oneFlow(1, "hop")}},
		&store.RunRecord{Run: store.Run{Repetition: 1, Transport: "tcp/cubic", Params: store.Params{"transport": "tcp/cubic"}, Status: store.RunFailed, Error: "died"}},
		&store.RunRecord{Run: store.Run{Repetition: 1, Transport: "tcp/cubic", Params: store.Params{"transport": "tcp/cubic"}, Status: store.RunFailed, Error: "died"}},
	)
	for _, f := range r.Figures() {
		if strings.HasSuffix(f.ID, "airtime") && !strings.Contains(string(f.SVG()), "no valid run") {
			t.Error("the figure of airtime does not say why there is none")
		}
		if strings.Contains(f.ID, "gain") {
			t.Error("there is a figure of gains without a gain")
		}
	}
	want := "1 of the 2 runs of the plan has a valid result: statistics rest on it. Of 3 attempts, 2 are left out of every statistic (2 failed; reasons below)."
	if got, ok := r.Sections[0].validity(); got != want || ok {
		t.Errorf("%v: %s", ok, got)
	}
}
