package render

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/internal/fixture"
)

var update = flag.Bool("update", false, "write the golden files anew")

// published are made-up claims about the made-up data.
func published(*store.Campaign) ([]claims.Claim, error) {
	return []claims.Claim{
		{ID: "test/ratio", Text: "The median goodput of 30 flows is 90 times that of TCP.", Value: new(90.0), Unit: "×", Source: "P §5.3", Measure: "median-ratio", Of: "hop", To: "tcp/cubic",
			Threshold: &claims.Threshold{Min: new(10.0), Source: "R"}, MinRepetitions: 5},
		{ID: "test/aggregate", Text: "The aggregate is comparable or better.", Unit: "×", Source: "P §5.3", Measure: "pooled-aggregate-ratio", Of: "hop", To: "tcp/cubic", Threshold: &claims.Threshold{Min: new(0.9), Source: "R"}},
		{ID: "test/jain", Text: "Hop is fairer than TCP by Jain's index.", Source: "P §5.3", Measure: "jain-difference", Of: "hop", To: "tcp/cubic", Threshold: &claims.Threshold{Above: new(0.0), Source: "R"}},
		{ID: "test/reverse", Text: "The made-up transport is slower than TCP.", Value: new(0.5), Unit: "×", Source: "nobody", Measure: "pooled-median-ratio", Of: "hop", To: "tcp/cubic", Threshold: &claims.Threshold{Max: new(0.7)}},
		{ID: "test/place", Text: "The lower quartile improves 28 times over single links of that building.", Value: new(28.0), Unit: "×", Source: "P §1", NotTestable: "the links are those of one building"},
	}, nil
}

// small is a campaign that is made in an instant.
func small(reps int) fixture.Options {
	o := fixture.Load30(reps)
	o.Nodes, o.Flows, o.DurationS, o.SampleS = 9, 8, 60, 2
	return o
}

func temp(t testing.TB) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// build fills a database and builds the report of its campaigns.
func build(t testing.TB, o Options, fills ...fixture.Options) *Report {
	t.Helper()
	ctx := context.Background()
	st := temp(t)
	var ids []int64
	for _, f := range fills {
		id, err := fixture.Fill(ctx, st, f)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	r, err := Build(ctx, st, ids, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Sections { // the only thing that the clock decides
		r.Sections[i].Set.Campaign.Finished = store.StampOf(time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC))
	}
	return r
}

// written is the report in each format.
func written(t testing.TB, r *Report) map[string]string {
	t.Helper()
	out := map[string]string{}
	for ext, f := range map[string]func(*Report, io.Writer) error{"html": (*Report).HTML, "md": (*Report).Markdown, "json": (*Report).JSON} {
		var b bytes.Buffer
		if err := f(r, &b); err != nil {
			t.Fatal(err)
		}
		out[ext] = b.String()
	}
	return out
}

func TestGolden(t *testing.T) {
	r := build(t, Options{Published: published, Version: "v0.0.0-test"}, small(3))
	got := written(t, r)
	again := written(t, build(t, Options{Published: published, Version: "v0.0.0-test"}, small(3)))
	for _, ext := range []string{"md", "json", "html"} {
		if got[ext] != again[ext] {
			t.Errorf("two reports of the same results differ in %s", ext)
		}
		if ext == "html" {
			continue // its parts have golden files of their own: the tables here, the figures in package figure
		}
		path := filepath.Join("testdata", "report."+ext)
		if *update {
			if err := os.WriteFile(path, []byte(got[ext]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got[ext] != string(want) {
			t.Errorf("%s is not as recorded: look at it and run the test with -update", path)
		}
	}
}

func TestQuickIsMarkedAndTestsNothing(t *testing.T) {
	o := small(1)
	o.Quick = true
	r := build(t, Options{Published: published}, o)
	for ext, text := range written(t, r) {
		if !strings.Contains(text, dataset.QuickNotice) {
			t.Errorf("%s does not say %q", ext, dataset.QuickNotice)
		}
	}
	for _, f := range r.Figures() {
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(f.SVG()), dataset.QuickNotice) || !strings.Contains(csv.String(), dataset.QuickNotice) {
			t.Errorf("the figure %s goes without the notice", f.ID)
		}
	}
	for _, c := range r.Sections[0].Claims {
		if c.Verdict != claims.NotTested {
			t.Errorf("%s: %s", c.ID, c.Verdict)
		}
	}
	md := written(t, r)["md"]
	if !strings.Contains(md, "1 repetition: no interval can be given") || strings.Contains(md, "(95 %: ") {
		t.Errorf("one repetition has an interval, or its absence is not told:\n%s", md)
	}
}

func TestVerdicts(t *testing.T) {
	r := build(t, Options{Published: published}, small(5))
	want := map[string]claims.Verdict{"test/ratio": claims.Matches, "test/aggregate": claims.Matches, "test/jain": claims.Matches, "test/reverse": claims.Differs, "test/place": claims.NotTested}
	for _, c := range r.Sections[0].Claims {
		if c.Verdict != want[c.ID] {
			t.Errorf("%s: %s (%s), want %s; ours %+v", c.ID, c.Verdict, c.Why, want[c.ID], c.Ours)
		}
	}
}

func TestInvalidRunsAreShownWithTheirReason(t *testing.T) {
	r := build(t, Options{}, small(2))
	for ext, text := range written(t, r) {
		if !strings.Contains(text, "lateness p99 2.345 ms is above 1 ms") {
			t.Errorf("%s does not show the reason of the invalid run", ext)
		}
	}
	if md := written(t, r)["md"]; !strings.Contains(md, "All 6 runs of the plan have a valid result. Of 7 attempts, 1 is left out of every statistic (1 invalid; reasons below).") {
		t.Errorf("validity:\n%s", md)
	}
}

func TestCampaignsStayApart(t *testing.T) {
	sim := small(2)
	sim.Backend = "sim"
	r := build(t, Options{}, small(2), sim)
	if len(r.Sections) != 2 {
		t.Fatalf("%d sections", len(r.Sections))
	}
	for _, s := range r.Sections {
		if n := s.Groups[0].Summary[0].Flows; n != 16 {
			t.Errorf("a section has %d flows, want 16", n)
		}
	}
	md := written(t, r)["md"]
	for _, want := range []string{"## Campaign 1: load30", "## Campaign 2: load30", "back end: netns", "back end: sim"} {
		if !strings.Contains(md, want) {
			t.Errorf("no %q", want)
		}
	}
	// In virtual time there is no lateness to show.
	if n := strings.Count(md, "| longest stall "); n != 1 {
		t.Errorf("%d tables with a stall, want that of the live campaign only", n)
	}
	ids := map[string]bool{}
	for _, f := range r.Figures() {
		if ids[f.ID] {
			t.Errorf("two figures are called %s", f.ID)
		}
		ids[f.ID] = true
	}
}

// A campaign with nothing valid still has a report that says so.
func TestNothingValid(t *testing.T) {
	ctx := context.Background()
	for name, runs := range map[string][]store.Run{
		"no run":         nil,
		"all failed":     {{Status: store.RunFailed, Error: "agent of n02 died", Repetition: 1, Transport: "hop", Params: store.Params{"transport": "hop"}, Backend: "netns"}},
		"one of a pair":  {{Status: store.RunInterrupted, Repetition: 1, Transport: "tcp/cubic", Params: store.Params{"transport": "tcp/cubic"}, Backend: "netns"}},
		"no parameters":  {{Status: store.RunFailed, Error: "x", Repetition: 1, Backend: "netns"}},
		"several points": {{Status: store.RunFailed, Error: "x", Repetition: 1, Transport: "hop", Params: store.Params{"loss": "10%"}, Backend: "netns"}, {Status: store.RunFailed, Error: "x", Repetition: 1, Transport: "hop", Params: store.Params{"loss": "20%"}, Backend: "netns"}},
	} {
		t.Run(name, func(t *testing.T) {
			st := temp(t)
			c := &store.Campaign{Name: "x", Backend: "netns", FileText: "hopbed: 1", Planned: 3, Reference: "test"}
			if _, err := st.CreateCampaign(ctx, c); err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				r.CampaignID = c.ID
				if err := st.SaveRun(ctx, &store.RunRecord{Run: r}); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Build(ctx, st, []int64{c.ID}, Options{Published: published})
			if err != nil {
				t.Fatal(err)
			}
			for ext, text := range written(t, r) {
				if ext != "json" && !strings.Contains(text, "None of the 3 runs of the plan has a valid result.") {
					t.Errorf("%s does not say that nothing is valid", ext)
				}
				if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
					t.Errorf("%s has a number that is none", ext)
				}
			}
			for _, s := range r.Sections {
				for _, c := range s.Claims {
					if c.Verdict != claims.NotTested {
						t.Errorf("%s: %s", c.ID, c.Verdict)
					}
				}
			}
		})
	}
}

// JSON holds what programs need, and no number that JSON cannot hold.
func TestJSON(t *testing.T) {
	r := build(t, Options{Published: published}, small(5))
	r.Sections[0].Claims[1].Ours.Hi = math.Inf(1)
	var out struct {
		Campaigns []struct {
			Seed   string           `json:"seed"`
			Claims []map[string]any `json:"claims"`
		} `json:"campaigns"`
	}
	if err := json.Unmarshal([]byte(written(t, r)["json"]), &out); err != nil {
		t.Fatal(err)
	}
	found := out.Campaigns[0].Claims
	if out.Campaigns[0].Seed != "11" || len(found) != 5 {
		t.Fatalf("seed %q, %d claims", out.Campaigns[0].Seed, len(found))
	}
	for _, key := range []string{"id", "verdict", "value", "interval", "published", "threshold"} {
		if _, ok := found[0][key]; !ok {
			t.Errorf("a claim has no %q: %v", key, found[0])
		}
	}
	if iv := found[1]["interval"].([]any); iv[0] == nil || iv[1] != nil {
		t.Errorf("an interval without an upper end is %v", iv)
	}
}

func TestWriteFigures(t *testing.T) {
	r := build(t, Options{}, small(2))
	dir := filepath.Join(t.TempDir(), "figures")
	if err := r.WriteFigures(dir); err != nil {
		t.Fatal(err)
	}
	if len(r.Figures()) < 7 {
		t.Errorf("%d figures only", len(r.Figures()))
	}
	for _, f := range r.Figures() {
		svg, err := os.ReadFile(filepath.Join(dir, f.ID+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(svg, new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
		data, err := os.Open(filepath.Join(dir, f.ID+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(data).ReadAll()
		data.Close()
		if err != nil || len(rows) < 2 {
			t.Errorf("%s: %d rows, %v", f.ID, len(rows), err)
		}
		img, err := os.Open(filepath.Join(dir, f.ID+".png"))
		if err != nil {
			t.Fatal(err)
		}
		config, err := png.DecodeConfig(img)
		img.Close()
		if err != nil || config.Width != figure.Width*figure.PNGScale {
			t.Errorf("%s: an image %d wide, %v", f.ID, config.Width, err)
		}
		pgf, err := os.ReadFile(filepath.Join(dir, f.ID+".dat"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(pgf)), "\n")
		for _, l := range lines {
			if len(lines) != len(rows) || strings.Count(l, "\t") != len(rows[0])-1 {
				t.Fatalf("%s.dat has not the CSV file's %d rows and %d columns: %q", f.ID, len(rows), len(rows[0]), l)
			}
		}
	}
	if err := r.WriteFigures("/dev/null/x"); err == nil {
		t.Error("figures were written into a file")
	}
}

func TestUnknownCampaign(t *testing.T) {
	st := temp(t)
	if _, err := Build(context.Background(), st, []int64{7}, Options{}); err == nil || !strings.Contains(err.Error(), "campaign 7") {
		t.Errorf("error: %v", err)
	}
	if _, err := Build(context.Background(), st, nil, Options{}); err == nil {
		t.Error("a report of nothing")
	}
}
