package render

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/internal/fixture"
)

// twoBackEnds are a campaign on the kernel and the same one on the model, whose
// goodputs are 12 % higher.
func twoBackEnds(reps int) []fixture.Options {
	kernel, model := small(reps), small(reps)
	model.Backend, model.Factor = "sim", 1.12
	return []fixture.Options{kernel, model}
}

// A report of a campaign that was run on two back ends compares them, in every
// format, and pools nothing.
func TestTwoBackEndsAreCompared(t *testing.T) {
	r := build(t, Options{Version: "v0.0.0-test"}, twoBackEnds(6)...)
	if len(r.Comparisons) != 1 || len(r.Sections) != 2 {
		t.Fatalf("%d comparisons, %d sections", len(r.Comparisons), len(r.Sections))
	}
	c := r.Comparisons[0].Data
	if c.A.Label != "sim" || c.B.Label != "netns" || !c.Judged || len(c.Points) != 3 {
		t.Errorf("%s to %s, judged %v, %d points", c.A.Label, c.B.Label, c.Judged, len(c.Points))
	}
	text := written(t, r)
	for ext, out := range text {
		out = strings.ReplaceAll(out, "\u00a0", " ")
		want := []string{"×1.120", "sim / netns", "missed", "aim ± 5 %", "Poisson", "Calibration: ratios sim / netns"}
		if ext == "json" {
			want = []string{`"comparisons": [`, `"judged": true`, `"verdict": "missed"`, `"within": 0.05`, "Poisson", `"quantity": "rtt"`}
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s does not say %q", ext, w)
			}
		}
	}
	var out struct {
		Comparisons []struct {
			Points []struct {
				Transport   string
				Repetitions []int
				Quantities  []struct {
					Quantity, Verdict string
					A, B              float64
					Ratio             *struct {
						Value    float64
						Interval *[2]float64
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text["json"]), &out); err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Comparisons[0].Points {
		found := 0
		for _, q := range p.Quantities {
			switch q.Quantity {
			case "goodput":
				found++
				if q.Ratio.Interval == nil || q.Ratio.Value < 1.119 || q.Ratio.Value > 1.121 || q.A < q.B || q.Verdict != "missed" {
					t.Errorf("%s: goodput %+v", p.Transport, q)
				}
			case "rtt":
				found++
				if q.Verdict != "met" || q.A > q.B {
					t.Errorf("%s: round-trip time %+v", p.Transport, q)
				}
			}
		}
		if want := 2; p.Transport == "hop" {
			if found != 1 {
				t.Errorf("hop has %d of goodput and round-trip time", found)
			}
		} else if found != want {
			t.Errorf("%s has %d of goodput and round-trip time", p.Transport, found)
		}
		if len(p.Repetitions) != 6 {
			t.Errorf("%s: repetitions %v", p.Transport, p.Repetitions)
		}
	}
	figures := map[string]bool{}
	for _, f := range r.Comparisons[0].Figures {
		figures[f.ID] = true
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil || !strings.Contains(csv.String(), "sim / netns") || !strings.Contains(string(f.SVG()), "back end: sim / netns") {
			t.Errorf("%s does not say where its numbers came from: %v", f.ID, err)
		}
	}
	for _, id := range []string{"c1-c2-goodput", "c1-c2-rtt", "c1-c2-retransmitted-share", "c1-c2-data-frames"} {
		if !figures[id] {
			t.Errorf("there is no figure %s: %v", id, figures)
		}
	}
	// The campaigns themselves stay apart.
	for _, s := range r.Sections {
		if n := s.Groups[0].Summary[0].Flows; n != 48 {
			t.Errorf("a section has %d flows, want 48", n)
		}
	}
}

// Where the sum over the flows agrees and the flows do not, every format says so.
func TestFlowsThatDifferAreShown(t *testing.T) {
	st := temp(t)
	ctx := context.Background()
	var ids []int64
	for _, backend := range []string{"netns", "sim"} {
		c := &store.Campaign{Name: "x", Backend: backend, FileText: "hopbed: 1", Planned: 5}
		id, err := st.CreateCampaign(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		for rep := 1; rep <= 5; rep++ {
			r := &store.RunRecord{Run: store.Run{CampaignID: id, Backend: backend, Seed: store.Seed(rep), Repetition: rep, Transport: "udp", DurationS: 10, Status: store.RunComplete},
				Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}}
			for i := range 2 {
				f := store.Flow{Flow: i, Transport: "udp", Dst: 1, Hops: 1, StopS: 10, Status: store.FlowOK}
				if (i == 0) == (backend == "sim") {
					f.Bytes = 5e6
				}
				f.GoodputBps = store.Goodput(f.Bytes, 10)
				r.Flows = append(r.Flows, f)
			}
			if err := st.SaveRun(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.FinishCampaign(ctx, id, store.CampaignComplete, ""); err != nil {
			t.Fatal(err)
		}
	}
	var sets []*dataset.Set
	for _, id := range ids {
		set, err := dataset.Load(ctx, st, id)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	c, err := dataset.CompareCampaigns(ctx, sets[0], sets[1], BootstrapSeed)
	if err != nil {
		t.Fatal(err)
	}
	for ext, out := range written(t, Compared(c, "v0.0.0-test")) {
		out = strings.ReplaceAll(out, "\u00a0", " ")
		want := []string{"flows differ", "the sum met it but the flows differ at 1 point", "Flow by flow: sim / netns", "flow 0 ×∞", "100.0 %", "50.0 % / 50.0 %", "flows 0, 1 starved on one side in all repetitions", "(½ Σ"}
		if ext == "json" {
			want = []string{`"verdict": "flows differ"`, `"flows_differ": 1`, `"another_flows_share": 1`, `"by_chance": 0`, `"starved_share_a": 0.5`, `"flow_rule": "Where a point`, "flows 0, 1 starved on one side"}
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s does not say %q", ext, w)
			}
		}
	}
}

// What keeps two back ends from being compared is said in the comparison's place.
func TestRefusedComparisonSaysWhy(t *testing.T) {
	ctx := context.Background()
	st := temp(t)
	var ids []int64
	for i, backend := range []string{"netns", "sim"} {
		c := &store.Campaign{Name: "x", Backend: backend, FileText: "hopbed: 1", Planned: 1, Quick: true}
		if _, err := st.CreateCampaign(ctx, c); err != nil {
			t.Fatal(err)
		}
		r := &store.RunRecord{Run: store.Run{CampaignID: c.ID, Backend: backend, Repetition: 1 + i, Seed: store.Seed(i), Transport: "hop", DurationS: 10, Status: store.RunComplete},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}, Flows: []store.Flow{oneFlow(0, "hop")}}
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	r, err := Build(ctx, st, ids, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for ext, text := range written(t, r) {
		if !strings.Contains(text, "have no valid repetition in common") || !strings.Contains(text, "sim") || !strings.Contains(text, dataset.QuickNotice) {
			t.Errorf("%s does not say why there is no comparison:\n%.1500s", ext, text)
		}
	}
}

// Campaigns of different experiments, or of one back end, stand side by side
// without a comparison.
func TestOnlyTheSameExperimentIsCompared(t *testing.T) {
	other := small(2)
	other.Backend, other.Quick = "sim", true
	if r := build(t, Options{}, small(2), other); len(r.Comparisons) != 0 {
		t.Error("a shortened campaign was compared with a full one")
	}
	if r := build(t, Options{}, small(2), small(2)); len(r.Comparisons) != 0 {
		t.Error("two campaigns of one back end were compared")
	}
}

// Every table and every figure of a report says which back end its numbers came
// from.
func TestEveryTableAndFigureNamesItsBackEnd(t *testing.T) {
	r := build(t, Options{Published: published}, twoBackEnds(2)...)
	tables := map[string][]Table{}
	for i := range r.Comparisons {
		tables["sim / netns"] = append(tables["sim / netns"], r.Comparisons[i].tables()...)
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		b := s.Set.Campaign.Backend
		tables[b] = append(tables[b], s.tables()...)
		for j := range s.Groups {
			tables[b] = append(tables[b], s.Groups[j].tables()...)
			for _, f := range s.Groups[j].allFigures() {
				var csv bytes.Buffer
				if err := f.CSV(&csv); err != nil {
					t.Fatal(err)
				}
				head, rows, _ := strings.Cut(csv.String(), "\r\n")
				if !strings.HasSuffix(head, ",backend") || strings.Count(rows, ","+b+"\r\n") != strings.Count(rows, "\r\n") || !strings.Contains(string(f.SVG()), "back end: "+b) {
					t.Errorf("%s does not name %s: %s", f.ID, b, head)
				}
			}
		}
	}
	n := 0
	for backend, all := range tables {
		for _, tab := range all {
			n++
			if !strings.Contains(tab.Title, backend) {
				t.Errorf("the table %q does not name %s", tab.Title, backend)
			}
		}
	}
	if n < 14 {
		t.Errorf("%d tables", n)
	}
}

// A report of a comparison alone has the terms that it needs.
func TestComparisonAlone(t *testing.T) {
	r := build(t, Options{}, twoBackEnds(2)...)
	alone := Compared(r.Comparisons[0].Data, "v0.0.0-test")
	if alone.Title != "load30: sim / netns" {
		t.Errorf("title %q", alone.Title)
	}
	for ext, text := range written(t, alone) {
		if !strings.Contains(text, "netns") || strings.Contains(text, "Jain’s index: (Σx)²") {
			t.Errorf("%s:\n%.2000s", ext, text)
		}
	}
	for _, term := range ofComparisons {
		found := false
		for _, d := range definitions() {
			found = found || d.Term == term
		}
		if !found {
			t.Errorf("there is no definition of %s", term)
		}
	}
	for _, q := range dataset.Quantities() {
		if w := quantityWords[q]; w.short == "" || w.title == "" || w.unit == "" || w.format == nil {
			t.Errorf("the quantity %s has no words", q)
		}
	}
}
