package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/reference"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
)

var updateVerdicts = flag.Bool("update-verdicts", false, "record the verdicts of the papers anew")

func papers(t *testing.T) []*reference.Paper {
	t.Helper()
	p, err := reference.Papers()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestClaimsCanBeTaken: every claim and value names a measure that there is, with
// parameters that it takes, of an experiment that is shipped, and of transports
// and points that this experiment has; every statement has a claim.
func TestClaimsCanBeTaken(t *testing.T) {
	for _, p := range papers(t) {
		said := map[int]bool{}
		for i := range p.Experiments {
			e := &p.Experiments[i]
			for _, r := range e.Runs {
				if _, ok := library.Source(r.Experiment); !ok {
					t.Errorf("%s/%s runs %s, which is not shipped", p.ID, e.ID, r.Experiment)
				}
			}
			for _, q := range asked(e) {
				said[q.Statement] = true
				if q.Measure == "" && q.Statement == 0 {
					continue
				}
				if err := takable(&q); err != nil {
					t.Errorf("%s: %v", q.ID, err)
				}
			}
		}
		for _, s := range p.Statements {
			if !said[s.Number] {
				t.Errorf("%s: statement %d has no claim", p.ID, s.Number)
			}
		}
	}
}

func takable(q *question) error {
	m := claims.Find(q.Measure)
	switch {
	case m == nil:
		return fmt.Errorf("there is no measure %q; there are %s", q.Measure, strings.Join(claims.Names(), ", "))
	case q.AboveMeasure != "" && claims.Find(q.AboveMeasure) == nil:
		return fmt.Errorf("there is no measure %q", q.AboveMeasure)
	case q.experiment == "":
		return fmt.Errorf("no experiment has its value")
	}
	for k := range q.With {
		if !slices.Contains(m.With, k) {
			return fmt.Errorf("%s has no parameter %s", m.Name, k)
		}
	}
	e, err := read(q.experiment)
	if err != nil {
		return err
	}
	var transports []string
	points := 0
	for _, pt := range e.Points() {
		for _, f := range pt.Config.Flows {
			transports = append(transports, string(f.Transport))
		}
		has := map[string]string{}
		for _, v := range pt.Params {
			has[v.Name] = v.Value
		}
		fits := true
		for k, v := range q.Where {
			fits = fits && has[k] == v
		}
		if fits {
			points++
		}
	}
	if points == 0 {
		return fmt.Errorf("%s has no point with %v", q.experiment, q.Where)
	}
	for _, want := range []string{q.Of, q.To} {
		if want != "" && !slices.ContainsFunc(transports, func(t string) bool { return t == want || strings.HasPrefix(t, want+"/") }) {
			return fmt.Errorf("%s does not run %s", q.experiment, want)
		}
	}
	return nil
}

// TestVerdictsAreAsRecorded runs the papers on sim in their fixed short form and
// compares the verdicts with those of testdata/verdicts. A change of one is for
// review: look at why, then record it with -update-verdicts.
func TestVerdictsAreAsRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the experiments of the papers")
	}
	for _, p := range papers(t) {
		if !slices.ContainsFunc(p.Experiments, func(e reference.Experiment) bool {
			return slices.ContainsFunc(e.Runs, func(r reference.Run) bool { return len(r.Short) > 0 })
		}) {
			continue
		}
		t.Run(p.ID, func(t *testing.T) {
			got := shortVerdicts(t, p.ID)
			path := filepath.Join("testdata", "verdicts", p.ID+".txt")
			if *updateVerdicts {
				if err := os.WriteFile(path, []byte(got.text()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			compareVerdicts(t, path, parseVerdicts(t, string(b)), got)
		})
	}
}

// recorded are the verdicts of a paper's claims, by id.
type recorded struct {
	ids     []string
	verdict map[string]claims.Verdict
}

func (r *recorded) text() string {
	var b strings.Builder
	b.WriteString("# Verdicts of the short form on sim: statement/claim, verdict. Written by\n# go test ./orchestrator/cmd/hopbed -run TestVerdictsAreAsRecorded -update-verdicts\n")
	for _, id := range r.ids {
		fmt.Fprintf(&b, "%s\t%s\n", id, r.verdict[id])
	}
	return b.String()
}

func parseVerdicts(t *testing.T, text string) *recorded {
	t.Helper()
	r := &recorded{verdict: map[string]claims.Verdict{}}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, v, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("%q: want a claim and its verdict", line)
		}
		r.ids = append(r.ids, id)
		r.verdict[id] = claims.Verdict(v)
	}
	return r
}

func compareVerdicts(t *testing.T, path string, want, got *recorded) {
	t.Helper()
	for _, id := range got.ids {
		was, is := want.verdict[id], got.verdict[id]
		switch {
		case was == "":
			t.Errorf("%s has nothing of %s, which is “%s”: record it with -update-verdicts", path, id, is)
		case is.Worse(was):
			t.Errorf("%s has become worse: “%s”, recorded is “%s”", id, is, was)
		case is != was:
			t.Errorf("%s has become better: “%s”, recorded is “%s”: record it with -update-verdicts", id, is, was)
		}
	}
	for _, id := range want.ids {
		if !slices.Contains(got.ids, id) {
			t.Errorf("%s has %s, which is not asked any more", path, id)
		}
	}
}

// shortVerdicts runs a paper's short form and returns where its claims point to.
func shortVerdicts(t *testing.T, id string) *recorded {
	t.Helper()
	ctx := context.Background()
	p, figures, err := figuresOf(id)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := jobsOf(figures, "sim", short, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(ctx, filepath.Join(t.TempDir(), "short.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sums, err := carryOut(ctx, jobs, "sim", run.Options{Store: st, Observe: run.Silent{}, Version: "test"})
	if err != nil || !addUp(sums).OK() {
		t.Fatalf("%v; %s", err, shortfalls(sums))
	}
	sets, err := setsOf(ctx, st, campaigns(sums))
	if err != nil {
		t.Fatal(err)
	}
	pack, err := verdicts(ctx, p, figures, sets)
	if err != nil {
		t.Fatal(err)
	}
	out := &recorded{verdict: map[string]claims.Verdict{}}
	for i := range pack.Statements {
		s := &pack.Statements[i]
		for j := range s.Findings {
			f := &s.Findings[j]
			if f.Statement == 0 {
				continue
			}
			id := fmt.Sprintf("%d/%s", f.Statement, f.ID[strings.LastIndex(f.ID, "/")+1:])
			out.ids = append(out.ids, id)
			out.verdict[id] = f.Indication
			t.Logf("%s: %s, ours %.3g (n %d), %s", id, f.Indication, f.Ours.Value, f.Ours.N, f.Why)
		}
	}
	return out
}

// TestFiguresShareTheirCampaigns: what two figures want is run once, in the length
// that is asked for, and the command line has the last word.
func TestFiguresShareTheirCampaigns(t *testing.T) {
	_, figures, err := figuresOf("hop-nsdi09")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backend string
		form    length
		changes []spec.Assignment
		load30  int
	}{
		{"sim", full, nil, 12}, {"netns", full, nil, 5}, {"sim", quick, nil, 1}, {"sim", full, []spec.Assignment{{Key: "repeat", Value: "2"}}, 2},
	} {
		jobs, err := jobsOf(figures, c.backend, c.form, c.changes)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]*job{}
		for _, j := range jobs {
			if seen[j.name] != nil {
				t.Errorf("%s is run twice", j.name)
			}
			seen[j.name] = j
		}
		if got := seen["load30"].experiment.Base().Repeat; got != c.load30 {
			t.Errorf("load30 on %s has %d repetitions, want %d", c.backend, got, c.load30)
		}
		if got := len(seen["hidden"].figures); got != 2 {
			t.Errorf("hidden is for %d figures, want withholding and breakdown", got)
		}
	}
	for name, want := range map[string]string{"nix": "hop-nsdi09", "hop-nsdi09/nix": "loss-sweep"} {
		if _, _, err := figuresOf(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReproduce runs a figure, goes on without running anything, and runs one of
// its runs again.
func TestReproduce(t *testing.T) {
	dir := t.TempDir()
	status, out, errs := hopbed(t, dir, "reproduce", "hop-nsdi09/arq-cost", "--quick", "-q", "--db", "a.db", "--report", "a.md")
	if status != exitOK || !strings.Contains(out, "arq-cost-range") || !strings.Contains(out, "not testable (points to: matches)") {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	b, err := os.ReadFile(filepath.Join(dir, "a.md"))
	if err != nil || !strings.Contains(string(b), "## Verdicts") || strings.Index(string(b), "## Verdicts") > strings.Index(string(b), "back end") {
		t.Errorf("the report does not begin with the verdicts: %v\n%.600s", err, b)
	}
	status, again, errs := hopbed(t, dir, "reproduce", "hop-nsdi09/arq-cost", "--quick", "--db", "a.db", "--resume")
	if status != exitOK || !strings.Contains(errs, "nothing is missing") || !strings.Contains(again, "arq-cost-range") {
		t.Errorf("resumed: status %d\n%s%s", status, again, errs)
	}
	status, out, errs = hopbed(t, dir, "reproduce", "--from", "a.db", "5")
	if status != exitOK || !strings.Contains(out, "The same") || !strings.Contains(out, "trace hash") {
		t.Errorf("again: status %d\n%s%s", status, out, errs)
	}
	for _, args := range [][]string{{"reproduce"}, {"reproduce", "hop-nsdi09", "--backend", "ssh"}, {"reproduce", "--from", "a.db", "x"}, {"reproduce", "--from", "a.db", "1", "--quick"}} {
		if status, _, errs := hopbed(t, dir, args...); status != exitUsage {
			t.Errorf("%q: status %d, %s", args, status, errs)
		}
	}
	if status, _, errs := hopbed(t, dir, "reproduce", "--from", "none.db", "1"); status != exitError || !strings.Contains(errs, "there is no database") {
		t.Errorf("without a database: status %d, %s", status, errs)
	}
}

// TestAnotherRunIsNotTheSame: a run whose hash is another one's is told so.
func TestAnotherRunIsNotTheSame(t *testing.T) {
	dir := t.TempDir()
	if status, _, errs := hopbed(t, dir, "reproduce", "hop-nsdi09/arq-cost", "--quick", "-q", "--db", "a.db"); status != exitOK {
		t.Fatal(errs)
	}
	ctx := context.Background()
	st, err := store.Open(ctx, filepath.Join(dir, "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := st.Run(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := st.Campaign(ctx, old.CampaignID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := planAgain(k, old); err != nil {
		t.Error(err)
	}
	other := *old
	other.Seed++
	if _, err := planAgain(k, &other); err == nil || !strings.Contains(err.Error(), "has no run of") {
		t.Errorf("a run that is not of the experiment: %v", err)
	}
	st.Close()
}
