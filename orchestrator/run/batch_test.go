package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// named is a scripted back end with a name and a speed of its own.
type named struct {
	scripted
	name  string
	speed float64
}

func (b *named) Name() string   { return b.name }
func (b *named) Speed() float64 { return b.speed }

func newNamed(name string, script func(int, *plan.Scenario) ([]string, error)) *named {
	return &named{scripted{script: script}, name, 1}
}

// started notes the campaigns that an observer is told of.
type started struct {
	Silent
	campaigns []Campaign
}

func (o *started) CampaignStarted(c Campaign) { o.campaigns = append(o.campaigns, c) }

func (b *bench) all(ctx context.Context, obs Observer, resume bool, on ...backend.Backend) ([]Summary, error) {
	return ExecuteAll(ctx, Options{Plan: b.p, Store: b.st, Observe: obs, Resume: resume, Version: "test", Host: store.Facts{}}, on)
}

func TestTwoBackEndsAreTwoCampaigns(t *testing.T) {
	b := setUp(t)
	fast, slow := newNamed("sim", always), newNamed("netns", always)
	fast.speed = 10
	obs := &started{}
	sums, err := b.all(t.Context(), obs, false, fast, slow)
	if err != nil || len(sums) != 2 || !sums[0].OK() || !sums[1].OK() || sums[0].Backend != "sim" || sums[1].Backend != "netns" || sums[0].CampaignID == sums[1].CampaignID {
		t.Fatalf("%+v, %v", sums, err)
	}
	ids, err := b.st.Batch(t.Context(), sums[1].CampaignID)
	if err != nil || !slices.Equal(ids, []int64{sums[0].CampaignID, sums[1].CampaignID}) {
		t.Errorf("batch %v, %v", ids, err)
	}
	for _, r := range b.runs() {
		want := "sim"
		if r.CampaignID == sums[1].CampaignID {
			want = "netns"
		}
		if r.Backend != want {
			t.Errorf("a run of campaign %d came from %s", r.CampaignID, r.Backend)
		}
	}
	if !slices.Equal(fast.seeds, slow.seeds) {
		t.Errorf("the back ends met different seeds: %v, %v", fast.seeds, slow.seeds)
	}
	c := obs.campaigns
	if len(c) != 2 || c[0].Part != 1 || c[0].Parts != 2 || c[1].Part != 2 || c[0].Expected != 6*time.Second || c[0].Later != 60*time.Second || c[1].Later != 0 {
		t.Errorf("the observer was told %+v", c)
	}
	if _, err := b.execute(t.Context(), slow, false); err != nil {
		t.Fatal(err)
	}
	last, err := b.st.LatestCampaign(t.Context())
	if err != nil || last.Batch.OK {
		t.Errorf("a campaign of one back end is in a batch: %+v, %v", last, err)
	}
}

// What was stopped on the second back end goes on there, and what is complete
// on the first is not run again.
func TestEachBackEndIsResumed(t *testing.T) {
	b := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	stopping := newNamed("netns", func(call int, _ *plan.Scenario) ([]string, error) {
		if call == 3 {
			cancel()
			return nil, context.Canceled
		}
		return nil, nil
	})
	sums, err := b.all(ctx, Silent{}, false, newNamed("sim", always), stopping)
	if err != nil || len(sums) != 2 || !sums[0].OK() || !sums[1].Interrupted || sums[1].Complete != 2 {
		t.Fatalf("%+v, %v", sums, err)
	}
	idle, rest := newNamed("sim", always), newNamed("netns", always)
	again, err := b.all(t.Context(), Silent{}, true, idle, rest)
	if err != nil || len(again) != 2 || !again[0].OK() || !again[1].OK() || idle.calls != 0 || rest.calls != 4 ||
		again[0].CampaignID != sums[0].CampaignID || again[1].CampaignID != sums[1].CampaignID {
		t.Errorf("resume: %+v, %v, %d and %d calls", again, err, idle.calls, rest.calls)
	}
}

// A stop between two back ends leaves the second unbegun, and says so.
func TestStopOnTheFirstBackEnd(t *testing.T) {
	b := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := newNamed("sim", func(call int, _ *plan.Scenario) ([]string, error) {
		if call == 6 {
			cancel() // with the last run, which is still finished
		}
		return nil, nil
	})
	second := newNamed("netns", always)
	sums, err := b.all(ctx, Silent{}, false, first, second)
	if err != nil || len(sums) != 1 || !sums[0].Interrupted || second.calls != 0 {
		t.Errorf("%+v, %v, %d calls", sums, err, second.calls)
	}
}

// A back end that fails altogether does not cost the results of the other.
func TestABackEndThatFailsDoesNotStopTheNext(t *testing.T) {
	b := setUp(t)
	boom := errors.New("the host has no TAP devices")
	broken := newNamed("netns", func(int, *plan.Scenario) ([]string, error) { return nil, &backend.Fatal{Err: boom} })
	sums, err := b.all(t.Context(), Silent{}, false, broken, newNamed("sim", always))
	if !errors.Is(err, boom) || len(sums) != 2 || sums[0].OK() || !sums[1].OK() {
		t.Errorf("%+v, %v", sums, err)
	}
	if err := b.st.Close(); err != nil {
		t.Fatal(err)
	}
	next := newNamed("sim", always)
	if _, err := b.all(t.Context(), Silent{}, false, newNamed("netns", always), next); err == nil || next.calls != 0 {
		t.Errorf("without a database the next back end was tried: %v, %d calls", err, next.calls)
	}
}

// The text of a file that the experiment names is not kept, but which it was
// is: a changed trace makes another experiment.
func TestFilesOfAnExperimentAreOnRecord(t *testing.T) {
	dir := t.TempDir()
	const trace = `hopbed: 1
name: traced
topology:
  nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [9m, 0m]}]
  pipes: [{ends: [a, b], trace: {file: umts.down}, queue: {packets: 50}}]
flows: [{pairs: [{src: a, dst: b}], transport: tcp/cubic}]
duration: 1s
`
	load := func(lines string) (text string, about store.Facts) {
		t.Helper()
		path := filepath.Join(dir, "traced.yaml")
		if err := errors.Join(os.WriteFile(path, []byte(trace), 0o644), os.WriteFile(filepath.Join(dir, "umts.down"), []byte(lines), 0o644)); err != nil {
			t.Fatal(err)
		}
		e, err := spec.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return Text(e), facts(store.Facts{"cpus": "2"}, e)
	}
	one, about := load("1\n2\n9\n")
	other, _ := load("1\n2\n8\n")
	if one == other {
		t.Errorf("two traces, one experiment:\n%s", one)
	}
	if f := about["file umts.down"]; about["cpus"] != "2" || !strings.HasPrefix(f, "6 bytes, sha256 ") || !strings.Contains(one, strings.TrimPrefix(f, "6 bytes, ")) {
		t.Errorf("facts %v\n%s", about, one)
	}
	if _, err := spec.ParseFiles("stored", []byte(one), spec.Unread); err != nil {
		t.Errorf("the stored text is no experiment any more: %v", err)
	}
}
