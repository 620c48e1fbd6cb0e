package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/orchestrator/store"
)

func TestMain(m *testing.M) {
	// The test binary is hopbed: it starts itself as agent and emulator, and as
	// the whole program.
	table := reexec.Table{}
	maps.Copy(table, parts())
	maps.Copy(table, testParts())
	reexec.Dispatch(table)
	os.Exit(m.Run())
}

// reading opens a database, which the caller closes.
func reading(t *testing.T, db string) *store.Store {
	t.Helper()
	st, err := store.OpenRead(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func runsIn(t *testing.T, db string) []store.Run {
	t.Helper()
	st := reading(t, db)
	defer st.Close()
	runs, err := st.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// hopbed runs one command line in a folder of its own.
func hopbed(t *testing.T, dir string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir(dir)
	errFile, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	var out bytes.Buffer
	status = command(append([]string{"hopbed"}, args...), &out, errFile)
	b, err := os.ReadFile(errFile.Name())
	if err != nil {
		t.Fatal(err)
	}
	return status, out.String(), string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const tiny = `hopbed: 1
name: tiny
topology:
  generate: {kind: chain, nodes: 3, spacing: 200m}
radio: {path-loss: {kind: disk, range: 250m, sense-range: 550m}}
mac: {queues: {bk: {txop: 8160us, ack: none}}}
transports: {hop: {block: 64KiB}}
flows:
  - {pairs: [{src: n01, dst: n03}], transport: $transport}
matrix: {transport: [hop, tcp/cubic]}
repeat: 1
warmup: 500ms
duration: 1500ms
`

// Bad input: a clear message, the right status, and nothing left behind.
func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		args   []string
		status int
		want   []string
	}{
		"no command's name":  {"", []string{"frobnicate"}, 2, []string{`no command "frobnicate"`}},
		"unknown option":     {"", []string{"run", "--frobnicate", "x"}, 2, []string{"frobnicate"}},
		"no experiment":      {"", []string{"run"}, 2, []string{"load30"}},
		"unknown experiment": {"", []string{"run", "laod30"}, 1, []string{"laod30", "hopbed list", `did you mean "load30"?`}},
		"nothing like it":    {"", []string{"run", "frobnicate"}, 1, []string{"frobnicate", "hopbed list"}},
		"negative seed":      {tiny, []string{"check", "f.yaml", "--seed", "-1"}, 1, []string{"--seed: ", "-1"}},
		"negative setting":   {tiny, []string{"check", "f.yaml", "--set", "seed=-1"}, 1, []string{"--set seed: ", "-1"}},
		"zero repetitions":   {tiny, []string{"run", "f.yaml", "--repeat", "0"}, 1, []string{"--repeat: ", "0"}},
		"unknown back end":   {tiny, []string{"run", "f.yaml", "--backend", "cloud"}, 2, []string{"cloud", "netns"}},
		"unknown report":     {tiny, []string{"run", "f.yaml", "--report", "x.pdf"}, 2, []string{".html"}},
		"report's folder":    {tiny, []string{"run", "f.yaml", "--report", "no/x.html"}, 1, []string{"no/x.html"}},
		"unknown key":        {strings.Replace(tiny, "repeat:", "repaet:", 1), []string{"check", "f.yaml"}, 1, []string{"f.yaml:11:1", "repaet", "repeat"}},
		"missing unit":       {strings.Replace(tiny, "1500ms", "1500", 1), []string{"check", "f.yaml"}, 1, []string{"f.yaml:13:", "1500", "unit"}},
		"cycle of variables": {strings.Replace(tiny, "[hop, tcp/cubic]", "[$a], a: [$b], b: [$a]", 1), []string{"check", "f.yaml"}, 1, []string{"f.yaml:10:"}},
		"too many nodes":     {strings.Replace(tiny, "nodes: 3", "nodes: 70000", 1), []string{"check", "f.yaml"}, 1, []string{"f.yaml:4:", "70000", "1000"}},
		"disconnected":       {strings.Replace(tiny, "spacing: 200m", "spacing: 400m", 1), []string{"run", "f.yaml"}, 1, []string{"n01"}},
		"unknown transport":  {strings.Replace(tiny, "tcp/cubic", "tcp/qubic", 1), []string{"check", "f.yaml"}, 1, []string{"f.yaml:10:", "tcp/qubic", "cubic"}},
		"bad assignment":     {tiny, []string{"check", "f.yaml", "--set", "radio.rate=fast"}, 1, []string{"radio.rate", "fast"}},
		"no quick variant":   {tiny, []string{"check", "f.yaml", "--quick"}, 1, []string{"quick"}},
		"no database":        {"", []string{"results"}, 1, []string{"results.db", "--db"}},
		"no such table":      {"", []string{"export", "--table", "secrets"}, 1, nil},
		"table not named":    {"", []string{"export"}, 2, []string{"table"}},
		"run not named":      {"", []string{"show"}, 2, []string{"results"}},
		"stray argument":     {"", []string{"results", "load30"}, 2, []string{"load30", "no argument"}},
		"no subcommand":      {"", []string{"topology", "paint"}, 2, []string{"paint", "topology --help"}},
		"mesh of one node":   {"", []string{"bench", "medium", "--mesh", "1"}, 2, []string{"--mesh 1", "2 to 1000"}},
		"no name for the db": {tiny, []string{"run", "f.yaml", "--db", ""}, 2, []string{"--db"}},
		"report is a folder": {tiny, []string{"run", "f.yaml", "--report", "."}, 2, []string{".html"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.file != "" {
				write(t, filepath.Join(dir, "f.yaml"), c.file)
			}
			status, _, stderr := hopbed(t, dir, c.args...)
			if status != c.status {
				t.Errorf("status %d, want %d; it said: %s", status, c.status, stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("the message lacks %q:\n%s", w, stderr)
				}
			}
			for _, f := range list(t, dir) {
				if f != "f.yaml" {
					t.Errorf("it left %s behind", f)
				}
			}
		})
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestCheckShowsThePlanAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	status, out, stderr := hopbed(t, dir, "check", "f.yaml", "--repeat", "3")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, w := range []string{"2 points × 3 repetitions = 6 runs", "transport=hop", "transport=tcp/cubic", "1 × 2"} {
		if !strings.Contains(out, w) {
			t.Errorf("the plan lacks %q:\n%s", w, out)
		}
	}
	if got := list(t, dir); len(got) != 1 {
		t.Errorf("check changed the folder: %v", got)
	}
}

func TestEveryShippedExperimentCanBeChecked(t *testing.T) {
	dir := t.TempDir()
	status, out, _ := hopbed(t, dir, "list")
	if status != 0 || !strings.Contains(out, "load30") {
		t.Fatalf("list: status %d:\n%s", status, out)
	}
	_, rows, _ := strings.Cut(out, "\n")          // below the heads of the columns
	rows, papers, ok := strings.Cut(rows, "\n\n") // the experiments, then the papers
	if !ok || !strings.Contains(papers, "hop-nsdi09") {
		t.Fatalf("list:\n%s", out)
	}
	for line := range strings.Lines(rows) {
		name := strings.Fields(line)[0]
		if status, _, stderr := hopbed(t, dir, "check", name, "--json"); status != 0 {
			t.Errorf("check %s: status %d: %s", name, status, stderr)
		}
	}
}

func TestOptionsMayFollowArguments(t *testing.T) {
	app := newApp(os.Stdout, os.Stderr)
	for in, want := range map[string]string{
		"hopbed run load30 --quick --report x.html":  "hopbed run --quick --report x.html load30",
		"hopbed run --set a=b load30 --set=c=d":      "hopbed run --set a=b --set=c=d load30",
		"hopbed topology show load30 --repetition 2": "hopbed topology show --repetition 2 load30",
		"hopbed run -q -- --odd":                     "hopbed run -q -- --odd",
		"hopbed --version":                           "hopbed --version",
	} {
		if got := strings.Join(permute(app, strings.Fields(in)), " "); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// With --json every line on standard error is an object, also at a bad end, and
// standard output is one object. With --quiet nothing but the results is said.
func TestOutputForPrograms(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--json", "--report", "r.json")
	var sum struct{ Campaign, Complete int }
	if err := json.Unmarshal([]byte(out), &sum); err != nil || status != exitOK || sum.Campaign != 1 || sum.Complete != 2 {
		t.Errorf("status %d, %v: %s", status, err, out)
	}
	events := map[string]int{}
	parse := func(stderr string) {
		for line := range strings.Lines(stderr) {
			var e struct{ Event string }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
				t.Errorf("no event: %v: %s", err, line)
			}
			events[e.Event]++
		}
	}
	parse(stderr)
	if events["campaign"] != 1 || events["done"] != 2 || events["finished"] != 1 || events["report"] != 1 || events["error"] != 0 {
		t.Errorf("events: %v", events)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "r.json")); err != nil || !json.Valid(b) {
		t.Errorf("the report: %v", err)
	}
	status, _, stderr = hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--json", "--db", "f.yaml")
	parse(stderr)
	if status != exitError || events["error"] != 1 {
		t.Errorf("a run that cannot begin: status %d: %s", status, stderr)
	}

	status, out, stderr = hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--quiet", "--report", "r.md")
	if status != exitOK || stderr != "" || !strings.Contains(out, "tcp/cubic") {
		t.Errorf("quiet: status %d, standard error %q, standard output %q", status, stderr, out)
	}
}

// Standard output that cannot be written is an error, whatever the command.
func TestFullStandardOutput(t *testing.T) {
	for _, args := range [][]string{{"list"}, {"--help"}, {"topology", "show", "smoke"}, {"check", "smoke"}} {
		errFile, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		status := command(append([]string{"hopbed"}, args...), broken{}, errFile)
		errFile.Close()
		if b, _ := os.ReadFile(errFile.Name()); status != exitError || !strings.Contains(string(b), "no room") {
			t.Errorf("%v: status %d: %s", args, status, b)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestHelpComesBeforeOrAfter(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"help", "run"}, {"run", "--help"}} {
		if status, out, _ := hopbed(t, dir, args...); status != exitOK || !strings.Contains(out, "Exit status: 0") {
			t.Errorf("%v: status %d: %s", args, status, out)
		}
	}
}
