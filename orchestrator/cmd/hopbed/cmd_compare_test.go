package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/sim"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// otherSim is the back end of virtual time under another name: what compares
// back ends can be tested without root.
type otherSim struct {
	*sim.Backend
	closed    *int
	preflight error
}

func (otherSim) Name() string   { return "kernel" }
func (o otherSim) Close() error { *o.closed++; return nil }
func (o otherSim) Preflight(ctx context.Context, p *plan.Plan) error {
	if o.preflight != nil {
		return o.preflight
	}
	return o.Backend.Preflight(ctx, p)
}

// withKernel adds a back end "kernel" for one test.
func withKernel(t *testing.T, preflight error) (closed *int) {
	t.Helper()
	old := backends
	t.Cleanup(func() { backends = old })
	closed = new(int)
	backends = append(slices.Clone(old), old[0])
	backends[len(old)].name = "kernel"
	backends[len(old)].open = func(context.Context, *opening) (backend.Backend, error) {
		return otherSim{sim.New(), closed, preflight}, nil
	}
	return closed
}

func TestEveryBackEndOfTheFormatCanBeChosen(t *testing.T) {
	for _, b := range []spec.Backend{spec.BackendSim, spec.BackendNetns} {
		if !slices.Contains(backendNames(), string(b)) {
			t.Errorf("the format knows %s, the program does not", b)
		}
	}
}

// One command, two back ends: two campaigns, one report that compares them, one
// object as summary.
func TestRunOnTwoBackEnds(t *testing.T) {
	closed := withKernel(t, nil)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim,kernel", "--report", "r.html", "--set", "repeat=2")
	if status != 0 || *closed != 1 {
		t.Fatalf("status %d, closed %d times: %s", status, *closed, stderr)
	}
	says(t, out, "campaign 1: tiny, back end sim (", "campaign 2: tiny, back end kernel", "sim / kernel: ratios of 2 points; hopbed compare 1 2 shows each", "goodput ± 5 %")
	says(t, stderr, "campaign 1: tiny on sim, back end 1 of 2", "campaign 2: tiny on kernel, back end 2 of 2")
	html, err := os.ReadFile(filepath.Join(dir, "r.html"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(html), "Comparison: tiny: sim / kernel", "Calibration: ratios sim / kernel", "Campaign 1: tiny on sim", "Campaign 2: tiny on kernel")

	// The newest campaign comes with its partner; the model and itself differ by
	// nothing.
	_, out, _ = hopbed(t, dir, "report", "-o", "r.json")
	b, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatal(out, err)
	}
	var rep report
	if err := json.Unmarshal(b, &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Campaigns) != 2 || len(rep.Comparisons) != 1 || len(rep.Comparisons[0].Points) != 2 || !rep.Comparisons[0].Judged {
		t.Fatalf("%+v", rep)
	}
	for _, p := range rep.Comparisons[0].Points {
		for _, q := range p.Quantities {
			if q.Ratio != nil && q.Ratio.Value != 1 || q.Verdict == "missed" {
				t.Errorf("%s of %s: %+v", q.Quantity, p.Transport, q)
			}
		}
		if len(p.Quantities) < 2 {
			t.Errorf("%s has %d quantities", p.Transport, len(p.Quantities))
		}
	}

	status, out, stderr = hopbed(t, dir, "run", "f.yaml", "--backend", "sim,kernel", "--resume", "--json", "--set", "repeat=2")
	var sum struct {
		Complete  int
		Campaigns []struct {
			Campaign, Complete int
			Backend            string
		}
	}
	if err := json.Unmarshal([]byte(out), &sum); err != nil || status != 0 || sum.Complete != 8 || len(sum.Campaigns) != 2 || sum.Campaigns[0].Campaign != 1 || sum.Campaigns[1].Campaign != 2 || sum.Campaigns[1].Backend != "kernel" {
		t.Errorf("resume: status %d, %v: %s", status, err, out)
	}
	if strings.Count(stderr, "is complete: nothing is missing") != 2 {
		t.Errorf("resume does not say what is missing: %s", stderr)
	}
}

type report struct {
	Campaigns   []struct{ Backend string }
	Comparisons []struct {
		A, B struct {
			Label, Backend, Database, Transport string
			Campaign                            int
		}
		Judged bool
		Points []struct {
			Transport  string
			Quantities []struct {
				Quantity, Verdict string
				Ratio             *struct{ Value float64 }
			}
		}
	}
}

// The second back end is examined before the first one runs.
func TestPreflightOfAllComesFirst(t *testing.T) {
	withKernel(t, &backend.ErrUnsupported{Backend: "kernel", What: "hopbed run", Because: "there is no kernel", Do: "get one"})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim,kernel")
	if status != exitError || !strings.Contains(stderr, "there is no kernel") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if got := list(t, dir); len(got) != 1 {
		t.Errorf("it left %v behind", got)
	}
}

// The file's back ends hold unless the command line says otherwise.
func TestBackEndsOfTheFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny+"backends: [sim]\n")
	if status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--quiet"); status != 0 || !strings.Contains(out, "back end sim") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
	for args, want := range map[string]string{"sim,sim": "sim stands there twice", "sim,": `no back end ""`, "sim,cloud": `no back end "cloud"`} {
		if status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", args); status != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("--backend %s: status %d: %s", args, status, stderr)
		}
	}
}

// compare takes campaigns by number, databases by name, and transports.
func TestCompare(t *testing.T) {
	withKernel(t, nil)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	for _, args := range [][]string{{"--db", "a.db", "--backend", "kernel"}, {"--db", "b.db", "--backend", "sim"}, {"--db", "b.db", "--backend", "sim", "--set", "repeat=2"}} {
		if status, _, stderr := hopbed(t, dir, append([]string{"run", "f.yaml", "--quiet"}, args...)...); status != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		want   []string
	}{
		"two databases":      {[]string{"a.db", "b.db"}, 0, []string{"tiny: sim / kernel", "A: campaign 2 of b.db, back end sim (", "B: campaign 1 of a.db, back end kernel", "the experiments differ", "aim ± 5", "| hop "}},
		"and their campaign": {[]string{"a.db", "b.db#1"}, 0, []string{"A: campaign 1 of b.db", "Calibration: ratios sim / kernel"}},
		"one database":       {[]string{"1", "2", "--db", "b.db"}, 0, []string{"campaign 1 / campaign 2 (sim)", "A: campaign 1, back end sim"}},
		"two transports":     {[]string{"hop", "tcp/cubic", "--db", "a.db"}, 0, []string{"hop / tcp/cubic (kernel)", "all flows", "back end kernel"}},
		"of one campaign":    {[]string{"hop", "tcp/cubic", "--db", "b.db", "--campaign", "1"}, 0, []string{"A: hop, campaign 1, back end sim"}},
		"unknown transport":  {[]string{"hop", "tcp/reno", "--db", "a.db"}, 1, []string{`no transport "tcp/reno"`, "it has hop, tcp/cubic"}},
		"unknown campaign":   {[]string{"1", "7", "--db", "a.db"}, 1, []string{"campaign 7"}},
		"no database":        {[]string{"c.db", "a.db"}, 1, []string{"there is no database c.db"}},
		"no number":          {[]string{"a.db#x", "b.db"}, 2, []string{"a.db#x", "number"}},
		"one only":           {[]string{"1"}, 2, []string{"two campaigns or two transports"}},
		"of two kinds":       {[]string{"1", "hop"}, 2, []string{"cannot be compared with a transport"}},
		"needless option":    {[]string{"1", "2", "--campaign", "1", "--db", "b.db"}, 2, []string{"--campaign is for two transports"}},
		"two outputs":        {[]string{"1", "2", "--json", "-o", "x.md"}, 2, []string{"--json"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, stderr := hopbed(t, dir, append([]string{"compare"}, c.args...)...)
			if status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, stderr)
			}
			says(t, strings.ReplaceAll(out+stderr, "\u00a0", " "), c.want...)
		})
	}
	for _, format := range []string{"x.html", "x.md", "x.json"} {
		if status, out, stderr := hopbed(t, dir, "compare", "a.db", "b.db", "-o", format); status != 0 || out != "" {
			t.Errorf("%s: status %d: %s%s", format, status, out, stderr)
		}
		b, err := os.ReadFile(filepath.Join(dir, format))
		if err != nil || !strings.Contains(string(b), "kernel") || !strings.Contains(string(b), "goodput") {
			t.Errorf("%s: %v: %.300s", format, err, b)
		}
	}
	status, out, _ := hopbed(t, dir, "compare", "a.db", "b.db", "--json")
	var rep report
	if err := json.Unmarshal([]byte(out), &rep); err != nil || status != 0 || len(rep.Comparisons) != 1 || len(rep.Campaigns) != 0 {
		t.Fatalf("status %d, %v: %s", status, err, out)
	}
	if k := rep.Comparisons[0]; k.A.Database != "b.db" || k.A.Campaign != 2 || k.B.Database != "a.db" || k.A.Label != "sim" || !k.Judged {
		t.Errorf("%+v", k)
	}
}

// Every output says which back end a number came from.
func TestEveryOutputNamesTheBackEnd(t *testing.T) {
	dir := t.TempDir()
	id := putRuns(t, dir, store.Campaign{Name: "x", Backend: "netns"}, &store.RunRecord{
		Run:       store.Run{Repetition: 1, Transport: "tcp/cubic", Params: store.Params{"transport": "tcp/cubic"}},
		Flows:     []store.Flow{{Transport: "tcp/cubic", Dst: 1, Bytes: 1e6, GoodputBps: store.Goodput(1e6, 10), Status: store.FlowOK}},
		Links:     []store.Link{{Src: 0, Dst: 1}},
		Samples:   []store.Sample{{Side: store.SideDst, Node: 1}},
		Messages:  []store.Message{{Size: 100, ReadyUs: 5, DelayUs: store.Some(int64(7))}},
		NodeStats: []store.NodeStat{{Node: 0, AC: store.ACAll}},
		Pipes:     []store.Pipe{{Src: 0, Dst: 1}},
		Events:    []store.Event{{Kind: "connected"}},
		Artifacts: []store.Artifact{{Path: "x.pcapng"}},
	})
	if id != 1 {
		t.Fatal(id)
	}
	st, err := store.Open(t.Context(), filepath.Join(dir, "results.db"))
	if err != nil {
		t.Fatal(err)
	}
	survey := &store.Survey{CampaignID: 1, Network: "n", Repetition: 1, Started: store.StampOf(time.Unix(1_700_000_000, 0)), Nodes: store.Strings{"a", "b"},
		Probes: 10, PeriodS: 1, Size: 134, Rate: 2e6, Links: []store.SurveyLink{{Src: 0, Dst: 1, Received: 8}}}
	if err := errors.Join(st.SaveSurvey(t.Context(), survey), st.Close()); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"results"}, {"results", "--campaign", "1"}, {"show", "1"}, {"report"}}
	for _, table := range store.ExportTables() {
		commands = append(commands, []string{"export", "--table", table}, []string{"export", "--table", table, "--format", "json"})
	}
	for _, ext := range []string{"html", "md", "json"} {
		commands = append(commands, []string{"report", "-o", "r." + ext})
	}
	for _, args := range commands {
		status, out, stderr := hopbed(t, dir, args...)
		if slices.Contains(args, "-o") {
			b, err := os.ReadFile(filepath.Join(dir, args[len(args)-1]))
			if err != nil {
				t.Fatal(err)
			}
			out = string(b)
		}
		if status != 0 || !regexp.MustCompile(`\bnetns\b`).MatchString(out) {
			t.Errorf("%v: status %d; it does not name the back end: %s\n%.500s", args, status, stderr, out)
		}
	}
}
