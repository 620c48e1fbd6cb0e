package run

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

const file = `hopbed: 1
name: two
title: Two nodes
topology:
  generate: {kind: chain, nodes: 3, spacing: 10m}
flows:
  - {pairs: [{src: n01, dst: n03}], transport: $transport}
matrix: {transport: [hop, tcp/cubic]}
repeat: 3
duration: 10s
limits: {reruns: 2}
quick: {repeat: 1, duration: 1s}
`

// scripted is a back end whose n-th call behaves as told.
type scripted struct {
	calls  int
	script func(call int, s *plan.Scenario) (reasons []string, err error)
	seeds  []uint64
}

func (b *scripted) Name() string                                { return "scripted" }
func (b *scripted) Preflight(context.Context, *plan.Plan) error { return nil }
func (b *scripted) Overhead() time.Duration                     { return 0 }
func (b *scripted) Speed() float64                              { return 1 }
func (b *scripted) Close() error                                { return nil }
func (b *scripted) Run(ctx context.Context, s *plan.Scenario, _ backend.Progress, _ *backend.Capture) (*store.RunRecord, error) {
	b.calls++
	b.seeds = append(b.seeds, s.Seed)
	reasons, err := b.script(b.calls, s)
	if err != nil {
		return nil, err
	}
	rec := backend.NewRecord(s, func(int) string { return "" })
	rec.Run.InvalidReasons = reasons
	for i := range rec.Flows {
		f := &rec.Flows[i]
		f.Status, f.Error, f.Bytes = store.FlowOK, "", 1_250_000
		f.GoodputBps = store.Goodput(f.Bytes, rec.Run.DurationS)
	}
	return rec, nil
}

func always(int, *plan.Scenario) ([]string, error) { return nil, nil }

type bench struct {
	t  *testing.T
	st *store.Store
	p  *plan.Plan
}

func setUp(t *testing.T) *bench {
	t.Helper()
	e, err := spec.Parse("two.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &bench{t, st, plan.Build(e)}
}

func (b *bench) execute(ctx context.Context, be backend.Backend, resume bool) (Summary, error) {
	return Execute(ctx, Options{Plan: b.p, Backend: be, Store: b.st, Observe: Silent{}, Resume: resume, Version: "test", Host: store.Facts{}})
}

func (b *bench) runs() []store.Run {
	b.t.Helper()
	runs, err := b.st.Runs(b.t.Context(), store.Filter{})
	if err != nil {
		b.t.Fatal(err)
	}
	return runs
}

func TestEveryRunIsStoredInPairedOrder(t *testing.T) {
	b := setUp(t)
	be := &scripted{script: always}
	sum, err := b.execute(t.Context(), be, false)
	if err != nil || !sum.OK() || sum.Complete != 6 {
		t.Fatalf("%+v, %v", sum, err)
	}
	runs := b.runs()
	if len(runs) != 6 {
		t.Fatalf("%d runs are stored, want 6", len(runs))
	}
	for i := 0; i < 6; i += 2 {
		x, y := runs[i], runs[i+1]
		if x.Seed != y.Seed || x.Repetition != i/2+1 || x.Transport != "hop" || y.Transport != "tcp/cubic" {
			t.Errorf("runs %d and %d are no pair: %+v %+v", i, i+1, x, y)
		}
		if i > 0 && x.Seed == runs[i-2].Seed {
			t.Errorf("repetitions %d and %d share the seed %d", i/2, i/2+1, x.Seed)
		}
	}
	c, err := b.st.Campaign(t.Context(), sum.CampaignID)
	if err != nil || c.Status != store.CampaignComplete {
		t.Errorf("campaign: %+v, %v", c, err)
	}
}

func TestInvalidRunIsRepeatedAndKept(t *testing.T) {
	b := setUp(t)
	be := &scripted{script: func(call int, _ *plan.Scenario) ([]string, error) {
		if call <= 2 {
			return []string{"the medium was late"}, nil
		}
		return nil, nil
	}}
	sum, err := b.execute(t.Context(), be, false)
	if err != nil || !sum.OK() {
		t.Fatalf("%+v, %v", sum, err)
	}
	runs := b.runs()
	if len(runs) != 8 || runs[0].Valid || runs[1].Valid || !runs[2].Valid || runs[2].Attempt != 3 {
		t.Errorf("two invalid attempts must be kept beside the valid third: %+v", runs)
	}
}

func TestInvalidForEverEndsInvalid(t *testing.T) {
	b := setUp(t)
	be := &scripted{script: func(int, *plan.Scenario) ([]string, error) { return []string{"late"}, nil }}
	sum, err := b.execute(t.Context(), be, false)
	if err != nil || sum.OK() || sum.Invalid != 6 || be.calls != 18 {
		t.Errorf("%+v, %v, %d calls; want 6 invalid in 18 calls", sum, err, be.calls)
	}
}

func TestFailedFlowMakesTheRunInvalid(t *testing.T) {
	b := setUp(t)
	rec := backend.NewRecord(mustScenario(t, b.p.Runs[0]), func(int) string { return "" })
	seal(rec, Options{Backend: &scripted{}}, &store.Campaign{}, b.p.Runs[0], time.Now(), nil)
	if rec.Run.Status != store.RunInvalid || len(rec.Run.InvalidReasons) != 1 {
		t.Errorf("a flow without a result left the run %s: %v", rec.Run.Status, rec.Run.InvalidReasons)
	}
}

func mustScenario(t *testing.T, r plan.Run) *plan.Scenario {
	t.Helper()
	s, err := r.Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInterruptedThenResumed(t *testing.T) {
	b := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	be := &scripted{script: func(call int, _ *plan.Scenario) ([]string, error) {
		if call == 4 {
			cancel()
			return nil, context.Canceled
		}
		return nil, nil
	}}
	sum, err := b.execute(ctx, be, false)
	if err != nil || !sum.Interrupted || sum.Complete != 3 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if n := len(b.runs()); n != 3 {
		t.Fatalf("%d runs are stored after the interruption, want the 3 finished", n)
	}
	again := &scripted{script: always}
	sum2, err := b.execute(t.Context(), again, true)
	if err != nil || !sum2.OK() || again.calls != 3 || sum2.CampaignID != sum.CampaignID {
		t.Errorf("resume: %+v, %v, %d calls; want the 3 missing runs in the same campaign", sum2, err, again.calls)
	}
	idle := &scripted{script: always}
	if sum3, err := b.execute(t.Context(), idle, true); err != nil || !sum3.OK() || sum3.CampaignID != sum.CampaignID || sum3.Complete != 6 || idle.calls != 0 {
		t.Errorf("nothing is missing in a complete campaign: %+v, %v, %d calls", sum3, err, idle.calls)
	}
	if sum4, err := b.execute(t.Context(), &scripted{script: always}, false); err != nil || sum4.CampaignID == sum.CampaignID {
		t.Errorf("without resume the plan is run again: %+v, %v", sum4, err)
	}
}

func TestFailureGoesOnAndFatalStops(t *testing.T) {
	b := setUp(t)
	boom := errors.New("node n02: the agent ended")
	be := &scripted{script: func(call int, s *plan.Scenario) ([]string, error) {
		if s.Transport() == "hop" {
			return nil, boom
		}
		return nil, nil
	}}
	sum, err := b.execute(t.Context(), be, false)
	if err != nil || sum.Failed != 3 || sum.Complete != 3 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if r := b.runs()[0]; r.Status != store.RunFailed || r.Error != boom.Error() {
		t.Errorf("the failure is not on record: %+v", r)
	}
	permanent := &scripted{script: func(_ int, s *plan.Scenario) ([]string, error) {
		if s.Transport() == "hop" {
			return nil, &backend.Permanent{Err: boom}
		}
		return nil, nil
	}}
	if sum, err := b.execute(t.Context(), permanent, false); err != nil || sum.Failed != 3 || permanent.calls != 6 {
		t.Errorf("a permanent failure must be met once per run: %+v, %v, %d calls", sum, err, permanent.calls)
	}
	fatal := &scripted{script: func(int, *plan.Scenario) ([]string, error) { return nil, &backend.Fatal{Err: boom} }}
	if _, err := b.execute(t.Context(), fatal, false); !errors.Is(err, boom) {
		t.Errorf("a fatal error must end the campaign, got %v", err)
	}
	if fatal.calls != 1 {
		t.Errorf("%d calls after a fatal error, want 1", fatal.calls)
	}
}
