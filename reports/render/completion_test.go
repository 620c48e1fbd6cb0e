package render

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/reports/claims"
)

// Sized flows are compared by completion time: nothing in the report speaks of
// their goodput as a result.
func TestSizedFlowsAreComparedByCompletionTime(t *testing.T) {
	o := small(5)
	o.Size = 300_000
	r := build(t, Options{Published: published, Version: "v0.0.0-test"}, o)
	g := &r.Sections[0].Groups[0]
	if !g.Data.Sized || len(g.Ratios) == 0 {
		t.Fatalf("sized %v, %d ratios", g.Data.Sized, len(g.Ratios))
	}
	hop, tcp := g.Summary[0].Completion, g.Summary[1].Completion
	if hop == nil || tcp == nil || hop.Done <= tcp.Done || tcp.Done == tcp.Flows {
		t.Fatalf("hop %+v, TCP %+v: the made-up data have no slow TCP flow", hop, tcp)
	}
	if v := g.Ratios[0].Median.Value; g.Ratios[0].Transport != "hop" || v <= 1 {
		t.Errorf("the faster transport has a speed-up of %v", v)
	}
	md := written(t, r)["md"]
	body, _, _ := strings.Cut(md, "## How the numbers")
	for _, no := range []string{"starved", "aggregate", "Goodput of flows", "Ratio to"} {
		if strings.Contains(strings.ReplaceAll(body, "The aggregate is comparable", ""), no) {
			t.Errorf("the report of sized flows says %q", no)
		}
	}
	for _, want := range []string{"Completion time of flows", "Speed-up over tcp/cubic", "flows completed, median time", "≥", "had not completed"} {
		if !strings.Contains(body, want) {
			t.Errorf("the report of sized flows does not say %q", want)
		}
	}
	for _, c := range r.Sections[0].Claims {
		if c.Verdict != claims.NotTested {
			t.Errorf("%s, a claim about goodput, is judged: %s", c.ID, c.Verdict)
		}
	}
	for _, f := range g.Figures {
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil {
			t.Fatal(err)
		}
		if head, _, _ := strings.Cut(csv.String(), "\n"); strings.Contains(head, "goodput") {
			t.Errorf("the figure %s shows %s", f.ID, head)
		}
	}
	path := filepath.Join("testdata", "sized.md")
	if *update {
		if err := os.WriteFile(path, []byte(md), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if md != string(want) {
		t.Errorf("%s is not as recorded: look at it and run the test with -update", path)
	}
}
