package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/artifact"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// writing is scripted with a capture: it writes the number of its call.
type writing struct{ scripted }

func (b *writing) Run(ctx context.Context, s *plan.Scenario, tell backend.Progress, c *backend.Capture) (*store.RunRecord, error) {
	rec, err := b.scripted.Run(ctx, s, tell, c)
	if c != nil {
		if _, werr := c.Packets.WriteString(strings.Repeat("x", b.calls)); werr != nil {
			return nil, werr
		}
	}
	return rec, err
}

func (b *bench) withFiles(ctx context.Context, w artifact.Wanted, be backend.Backend, resume bool) (Summary, error) {
	return Execute(ctx, Options{Plan: b.p, Backend: be, Store: b.st, Observe: Silent{}, Resume: resume, Files: artifact.New(w, b.p, 1), Version: "test", Host: store.Facts{}})
}

func (b *bench) files(dir string) (names []string) {
	b.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Of a run that is repeated the valid attempt's file is kept and on record.
func TestFileOfTheValidAttempt(t *testing.T) {
	b := setUp(t)
	dir := t.TempDir()
	be := &writing{scripted{script: func(call int, _ *plan.Scenario) ([]string, error) {
		if call == 1 {
			return []string{"the medium was late"}, nil
		}
		return nil, nil
	}}}
	sum, err := b.withFiles(t.Context(), artifact.Wanted{Packets: filepath.Join(dir, "c.pcapng")}, be, false)
	if err != nil || !sum.OK() || sum.Unkept != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if got := b.files(dir); len(got) != 6 || got[0] != "c-scripted-1-transport=hop-r1.pcapng" {
		t.Errorf("files %v", got)
	}
	all, err := b.st.Artifacts(t.Context(), store.Filter{})
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v", all, err)
	}
	runs := b.runs()
	for i, a := range all {
		// The first run took two calls.
		if a.Bytes != int64(i+2) || !slices.ContainsFunc(runs, func(r store.Run) bool { return r.ID == a.RunID && r.Valid }) {
			t.Errorf("%+v", a)
		}
	}
}

// Files that exist are refused before a campaign begins, or goes on.
func TestExistingFilesAreRefused(t *testing.T) {
	b := setUp(t)
	dir := t.TempDir()
	w := artifact.Wanted{Packets: filepath.Join(dir, "c.pcapng")}
	precious := filepath.Join(dir, "c-scripted-5-transport=hop-r3.pcapng")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	be := &writing{scripted{script: always}}
	if _, err := b.withFiles(t.Context(), w, be, false); err == nil || !strings.Contains(err.Error(), precious) || be.calls != 0 {
		t.Errorf("%v after %d calls", err, be.calls)
	}
	if all, err := b.st.Campaigns(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("campaigns %v, %v", all, err)
	}
	// A campaign that was interrupted has files of what is finished: these are no
	// obstacle to going on.
	if err := os.Remove(precious); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopping := &writing{scripted{script: func(call int, _ *plan.Scenario) ([]string, error) {
		if call == 4 {
			cancel()
			return nil, context.Canceled
		}
		return nil, nil
	}}}
	if sum, err := b.withFiles(ctx, w, stopping, false); err != nil || !sum.Interrupted || len(b.files(dir)) != 3 {
		t.Fatalf("%+v, %v, files %v", sum, err, b.files(dir))
	}
	if sum, err := b.withFiles(t.Context(), w, be, true); err != nil || !sum.OK() || be.calls != 3 || len(b.files(dir)) != 6 {
		t.Errorf("resume: %+v, %v, %d calls, files %v", sum, err, be.calls, b.files(dir))
	}
}

// Files that cannot be kept cost no run, and are counted.
func TestLostFilesAreCounted(t *testing.T) {
	b := setUp(t)
	dir := filepath.Join(t.TempDir(), "gone")
	sum, err := b.withFiles(t.Context(), artifact.Wanted{Packets: filepath.Join(dir, "c.pcapng")}, &scripted{script: always}, false)
	if err != nil || !sum.OK() || sum.Unkept != 6 {
		t.Errorf("%+v, %v", sum, err)
	}
	for _, r := range b.runs() {
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no such file") {
			t.Errorf("warnings %v", r.Warnings)
		}
	}
}
