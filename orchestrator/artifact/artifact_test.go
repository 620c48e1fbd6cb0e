package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

const text = `hopbed: 1
name: two
title: Two nodes
topology: {generate: {kind: chain, nodes: 2, spacing: 10m}}
flows: [{pairs: [{src: n01, dst: n02}], transport: $transport}]
matrix: {transport: [hop, tcp/cubic]}
repeat: 6
duration: 10s
`

func parsed(t *testing.T, sets ...string) *plan.Plan {
	t.Helper()
	e, err := spec.Parse("two.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		a, err := spec.ParseAssignment(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Set(a); err != nil {
			t.Fatal(err)
		}
	}
	return plan.Build(e)
}

func single(t *testing.T) *plan.Plan {
	return parsed(t, "repeat=1", "matrix.transport=[tcp/cubic]")
}

// attempt writes into both files as a back end does, and ends with a status.
func attempt(t *testing.T, f *Files, p *plan.Plan, status store.RunStatus, words string) (*store.RunRecord, error) {
	t.Helper()
	s, err := p.Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	r := f.Begin(s, "sim")
	rec := backend.NewRecord(s, func(int) string { return "" })
	rec.Run.Status = status
	if c := r.Capture(); c != nil {
		for _, file := range []*os.File{c.Packets, c.Events} {
			if file != nil {
				if _, err := file.WriteString(words); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return rec, r.End(rec)
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestNames(t *testing.T) {
	many, one := parsed(t), single(t)
	for _, c := range []struct {
		p        *plan.Plan
		run      int
		name     string
		backends int
		want     string
	}{
		{one, 0, "d/out.pcapng", 1, "d/out.pcapng"},
		{one, 0, "out.pcapng", 2, "out-netns.pcapng"},
		{many, 0, "out.pcapng", 1, "out-netns-01-transport=hop-r1.pcapng"},
		{many, 11, "./a.b/out", 1, "./a.b/out-netns-12-transport=tcp-cubic-r6"},
		{many, 1, ".out", 2, ".out-netns-02-transport=tcp-cubic-r1"},
	} {
		f := New(Wanted{Packets: c.name}, c.p, c.backends)
		if got := f.path(c.name, c.p.Runs[c.run], "netns"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for label, want := range map[string]string{
		"a=1, b=$x/../y\n": "a=1-b=-x-..-y", "../../etc": "etc", "ü": "", strings.Repeat("x", 99): strings.Repeat("x", maxLabel),
	} {
		if got := safe(label); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
	if New(Wanted{}, one, 1) != nil {
		t.Error("no file is wanted: want nil")
	}
}

// The file of a complete run has its name and is on record, with size and hash.
func TestCompleteRun(t *testing.T) {
	dir := t.TempDir()
	p := single(t)
	f := New(Wanted{Packets: filepath.Join(dir, "c.pcapng"), Events: filepath.Join(dir, "c.log")}, p, 1)
	rec, err := attempt(t, f, p, store.RunComplete, "# abc\n")
	if err != nil || len(rec.Artifacts) != 2 || len(rec.Run.Warnings) != 0 {
		t.Fatalf("%v, %+v, %v", err, rec.Artifacts, rec.Run.Warnings)
	}
	// sha256 of "# abc\n"
	if a := rec.Artifacts[0]; a != (store.Artifact{Kind: KindPackets, Path: filepath.Join(dir, "c.pcapng"), SHA256: "c96d70129517a804082ed92c0ff5cc78c880c661376df954acf1d349484a7715", Bytes: 6}) {
		t.Errorf("%+v", a)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"c.log", "c.pcapng"}) {
		t.Errorf("files %v", got)
	}
	log, err := os.ReadFile(filepath.Join(dir, "c.log"))
	if want := "# abc\n   0.000000000  n01  flow 0 begins: tcp/cubic to n02\n"; err != nil || !strings.HasPrefix(string(log), want) || rec.Artifacts[1].Bytes != int64(len(log)) {
		t.Errorf("%v, log %q", err, log)
	}
}

// Of several attempts the valid one's file is kept; until there is one the others
// have names of their own, and are not on record.
func TestAttempts(t *testing.T) {
	dir := t.TempDir()
	p := single(t)
	path := filepath.Join(dir, "c.pcapng")
	f := New(Wanted{Packets: path}, p, 1)
	for _, c := range []struct {
		status store.RunStatus
		files  []string
	}{
		{store.RunInvalid, []string{"c-invalid.pcapng"}},
		{store.RunInvalid, []string{"c-invalid.pcapng"}},
		{store.RunFailed, []string{"c-failed.pcapng", "c-invalid.pcapng"}},
		{store.RunComplete, []string{"c.pcapng"}},
	} {
		rec, err := attempt(t, f, p, c.status, string(c.status))
		if got := list(t, dir); err != nil || !slices.Equal(got, c.files) {
			t.Errorf("%s: files %v, %v", c.status, got, err)
		}
		if (len(rec.Artifacts) == 1) != (c.status == store.RunComplete) || (len(rec.Events) == 1) == (c.status == store.RunComplete) {
			t.Errorf("%s: %+v, %+v", c.status, rec.Artifacts, rec.Events)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "complete" {
		t.Errorf("%q, %v", b, err)
	}
}

// The user's stop leaves nothing.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	p := single(t)
	f := New(Wanted{Packets: filepath.Join(dir, "c.pcapng")}, p, 1)
	s, err := p.Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	r := f.Begin(s, "sim")
	r.Discard()
	if got := list(t, dir); len(got) != 0 {
		t.Errorf("files %v", got)
	}
	var none *Recording
	none.Discard()
	if none.Capture() != nil || none.End(nil) != nil {
		t.Error("a recording of nothing does something")
	}
}

// Files that exist are refused before anything begins, unless they may be
// replaced.
func TestExistingFiles(t *testing.T) {
	dir := t.TempDir()
	p := single(t)
	path := filepath.Join(dir, "c.pcapng")
	if err := os.WriteFile(path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := Wanted{Packets: path}
	if err := New(w, p, 1).Check(p.Runs, "sim"); err == nil || !strings.Contains(err.Error(), "--overwrite") {
		t.Errorf("%v", err)
	}
	// One that has come meanwhile: the run keeps its result and says where its
	// file is.
	rec, err := attempt(t, New(w, p, 1), p, store.RunComplete, "new")
	if err == nil || len(rec.Artifacts) != 0 || len(rec.Run.Warnings) != 1 || !strings.Contains(rec.Run.Warnings[0], path+partSuffix) {
		t.Errorf("%v, %v", err, rec.Run.Warnings)
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("%q", b)
	}
	w.Overwrite = true
	if err := New(w, p, 1).Check(p.Runs, "sim"); err != nil {
		t.Error(err)
	}
	if _, err := attempt(t, New(w, p, 1), p, store.RunComplete, "new"); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("%q", b)
	}
}

// Places where no file can be.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	p := single(t)
	linked := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(dir, linked); err != nil {
		linked = dir // a system without links
	}
	for name, c := range map[string]struct {
		w    Wanted
		want string
	}{
		"no folder":                {Wanted{Packets: filepath.Join(dir, "no", "c.pcapng")}, "does not exist"},
		"a folder":                 {Wanted{Events: dir}, "no ordinary file"},
		"one name":                 {Wanted{Packets: filepath.Join(dir, "c"), Events: filepath.Join(dir, "c")}, "the same file"},
		"one file":                 {Wanted{Packets: filepath.Join(dir, "c"), Events: dir + "/../" + filepath.Base(dir) + "/c"}, "the same file"},
		"one file by a link":       {Wanted{Packets: filepath.Join(dir, "c"), Events: filepath.Join(linked, "c")}, "the same file"},
		"standard output":          {Wanted{Events: "-"}, "standard output"},
		"standard output, packets": {Wanted{Packets: "-"}, "standard output"},
		"the name of unfinished":   {Wanted{Packets: filepath.Join(dir, "c.part"), Events: filepath.Join(dir, "c")}, "unfinished"},
	} {
		if err := New(c.w, p, 1).Place(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, w := range []Wanted{{Packets: filepath.Join(dir, "c")}, {Packets: filepath.Join(dir, "c"), Events: filepath.Join(dir, "d")}} {
		if err := New(w, p, 1).Place(); err != nil || len(list(t, dir)) != 0 {
			t.Errorf("%v, files %v", err, list(t, dir))
		}
	}
}

// Other files of the command are not replaced even if files may be, by whatever
// path and for whichever run; nor are they where a run writes meanwhile.
func TestOtherFilesOfTheCommand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f.yaml", "c-sim-01-transport=hop-r1.pcapng", "d.part"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	many, one := parsed(t), single(t)
	for _, c := range []struct {
		p           *plan.Plan
		trace, keep string
		refused     bool
	}{
		{one, "f.yaml", "f.yaml", true},
		{one, "../" + filepath.Base(dir) + "/f.yaml", "f.yaml", true},
		{one, "d", "d.part", true},
		{one, "new.db", "new.db", true}, // not there yet
		{one, "g.yaml", "f.yaml", false},
		{many, "c.pcapng", "c-sim-01-transport=hop-r1.pcapng", true},
		{many, "f.yaml", "f.yaml", false}, // each run's file has a name of its own
	} {
		f := New(Wanted{Packets: dir + "/" + c.trace, Overwrite: true, Keep: []string{"", dir + "/" + c.keep}}, c.p, 1)
		if err := f.Check(c.p.Runs, "sim"); (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), c.trace[:1]) {
			t.Errorf("%s beside %s: %v", c.trace, c.keep, err)
		}
	}
}

// A folder that vanishes while runs go on costs the files, not the runs.
func TestLostFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	p := single(t)
	rec, err := attempt(t, New(Wanted{Packets: filepath.Join(dir, "c.pcapng")}, p, 1), p, store.RunComplete, "x")
	if err == nil || len(rec.Run.Warnings) != 1 || !strings.Contains(rec.Run.Warnings[0], "c.pcapng") || rec.Run.Status != store.RunComplete {
		t.Errorf("%v, %+v", err, rec.Run)
	}
}

// What a scenario does not have cannot be captured.
func TestFits(t *testing.T) {
	p := single(t)
	s, err := p.Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	if err := New(Wanted{Packets: "c", At: []string{"air"}}, p, 1).Fits(s); err != nil {
		t.Error(err)
	}
	if err := New(Wanted{Packets: "c", At: []string{"n01:eth0"}}, p, 1).Fits(s); err == nil || !strings.Contains(err.Error(), "only air") {
		t.Errorf("%v", err)
	}
}

// A full disk: what was written is kept, a file of nothing is not, and the
// warning is one line.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	p := single(t)
	s, err := p.Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	r := New(Wanted{Packets: filepath.Join(dir, "c.pcapng"), Events: filepath.Join(dir, "c.log")}, p, 1).Begin(s, "sim")
	rec := backend.NewRecord(s, func(int) string { return "" })
	rec.Run.Status = store.RunComplete
	c := r.Capture()
	if _, err := c.Events.WriteString("# begun\n"); err != nil {
		t.Fatal(err)
	}
	full := &fs.PathError{Op: "write", Path: "x.part", Err: errors.New("no space left")}
	c.PacketsErr, c.EventsErr = full, full
	err = r.End(rec)
	want := "missing or incomplete: " + dir + "/c.pcapng: no space left; " + dir + "/c.pcapng: nothing could be written, so there is no file; " + dir + "/c.log: no space left"
	if err == nil || filepath.ToSlash(err.Error()) != filepath.ToSlash(want) || !slices.Equal(rec.Run.Warnings, []string{err.Error()}) || !errors.Is(err, full.Err) {
		t.Errorf("%v, warnings %q", err, rec.Run.Warnings)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"c.log"}) || len(rec.Artifacts) != 1 {
		t.Errorf("files %v, on record %+v", got, rec.Artifacts)
	}
}
