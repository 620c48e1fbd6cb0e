package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// sweepRuns are a sweep over losses, with two transports and two flows each.
func sweepRuns(reps int, size int64) []*store.RunRecord {
	var runs []*store.RunRecord
	for rep := 1; rep <= reps; rep++ {
		for i, loss := range []string{"0%", "1%", "10%"} {
			for j, tr := range []string{"hop", "tcp/cubic"} {
				r := &store.RunRecord{Run: store.Run{Repetition: rep, Transport: tr, Status: store.RunComplete, Params: store.Params{"loss": loss, "transport": tr}}}
				for f := range 2 {
					bytes := int64(1e6 * rep / (1 + i) / (1 + j*i) * (1 + f))
					fl := store.Flow{Flow: f, Transport: tr, Dst: 1, Hops: 1, Bytes: bytes, GoodputBps: store.Goodput(bytes, 10), Status: store.FlowOK}
					if size > 0 {
						fl.Size = store.Some(size)
						if i < 2 {
							fl.CompletionS = store.Some(float64(1+i) / float64(rep))
						}
					}
					r.Flows = append(r.Flows, fl)
				}
				runs = append(runs, r)
			}
		}
	}
	return runs
}

// A campaign whose points differ in more than the transport shows all points in
// one table, and each variable in a figure.
func TestVariablesHaveTablesAndFigures(t *testing.T) {
	r := buildRuns(t, 30, sweepRuns(5, 0)...)
	s := &r.Sections[0]
	if len(s.Figures) != 1 || len(s.Groups) != 3 {
		t.Fatalf("%d figures, %d groups", len(s.Figures), len(s.Groups))
	}
	var csv bytes.Buffer
	if err := s.Figures[0].CSV(&csv); err != nil {
		t.Fatal(err)
	}
	// Flows of 8·10⁵ and 16·10⁵·rep b/s: the median flow of the median repetition.
	if want := ",0%,hop,2.4e+06,3.6e+06,4.8e+06,5,sim\r\n"; !strings.Contains(csv.String(), want) || strings.Count(csv.String(), "\r\n") != 7 {
		t.Errorf("the figure's numbers lack %q:\n%s", want, csv.String())
	}
	text := written(t, r)
	for ext, want := range map[string][]string{
		"md":   {"Goodput of the median flow at each point (sim)", "Aggregate goodput at each point (sim)", "| 10%", "3.60\u00a0Mb/s (2.40\u00a0Mb/s–4.80\u00a0Mb/s)"},
		"html": {"Goodput of the median flow at each point (sim)", "Goodput against loss", "back end: sim"},
		"json": {`"c1-variable-1"`, `"median_flow_quartiles"`, `"aggregate_quartiles"`},
	} {
		for _, w := range want {
			if !strings.Contains(text[ext], w) {
				t.Errorf("%s does not say %q", ext, w)
			}
		}
	}
	if !json.Valid([]byte(text["json"])) {
		t.Error("the JSON report is none")
	}
	single := buildRuns(t, 1, &store.RunRecord{Run: store.Run{Repetition: 1, Transport: "hop", Status: store.RunComplete, Params: store.Params{"loss": "1%", "transport": "hop"}}, Flows: []store.Flow{oneFlow(0, "hop")}})
	if s := &single.Sections[0]; len(s.Figures) != 0 || len(s.pointTables()) != 0 {
		t.Error("a single point has a sweep")
	}
}

// Sized flows have completion times, in tables and in figures, and no goodput
// over time.
func TestFiguresOfSizedFlowsAreTimes(t *testing.T) {
	r := buildRuns(t, 12, sweepRuns(2, 1e6)...)
	seen := map[string]bool{}
	for _, f := range r.Figures() {
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil {
			t.Fatal(err)
		}
		seen[f.ID] = true
		if strings.Contains(csv.String(), "_bps") || strings.Contains(string(f.SVG()), "b/s") {
			t.Errorf("%s shows the goodput of sized flows:\n%.300s", f.ID, csv.String())
		}
		if f.ID == "c1g3-completion-times" && (strings.Count(csv.String(), ",10,0,") != 8 || !strings.Contains(string(f.SVG()), "hb-hollow")) {
			t.Errorf("flows that had not completed are not told:\n%s", csv.String())
		}
	}
	for i := 1; i <= 3; i++ {
		if !seen[fmt.Sprintf("c1g%d-completion-times", i)] || seen[fmt.Sprintf("c1g%d-goodput-time", i)] {
			t.Errorf("figures %v", seen)
		}
	}
	md := written(t, r)["md"]
	for _, want := range []string{"Completion time of the median flow at each point (sim)", "| 10%", "≥\u00a010.0\u00a0s (10.0\u00a0s–10.0\u00a0s)"} {
		if !strings.Contains(md, want) {
			t.Errorf("it does not say %q:\n%.3000s", want, md)
		}
	}
	if strings.Contains(md, "Aggregate goodput at each point") {
		t.Error("sized flows have an aggregate goodput")
	}
}

// A campaign of very many points has them in tables and variables in figures,
// and says why there is no figure of each.
func TestVeryManyPointsHaveNoFiguresOfEach(t *testing.T) {
	var runs []*store.RunRecord
	for i := range maxDrawn + 1 {
		runs = append(runs, &store.RunRecord{Run: store.Run{Repetition: 1, Transport: "hop", Status: store.RunComplete, Params: store.Params{"delay": fmt.Sprintf("%dms", i), "transport": "hop"}}, Flows: []store.Flow{oneFlow(0, "hop")}})
	}
	r := buildRuns(t, maxDrawn+1, runs...)
	if n := len(r.Figures()); n != 1 {
		t.Errorf("%d figures, want that of the variable", n)
	}
	for ext, text := range written(t, r) {
		if ext != "json" && !strings.Contains(text, "49 points are too many for figures of each") {
			t.Errorf("%s does not say why", ext)
		}
		if !strings.Contains(text, "48ms") {
			t.Errorf("%s lacks the last point", ext)
		}
	}
}
