package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// surveyor is a scripted back end that measures links as told.
type surveyor struct {
	scripted
	surveys int
	probe   func(call int, s *plan.Scenario) (*etx.Survey, error)
	hops    []int // of each run's flow
}

func (b *surveyor) Probe(_ context.Context, s *plan.Scenario, tell backend.Progress) (*etx.Survey, error) {
	b.surveys++
	if len(s.Flows) > 0 {
		return nil, errors.New("a measurement has flows")
	}
	tell("probe", 0, vtime.Second)
	return b.probe(b.surveys, s)
}

func (b *surveyor) Run(ctx context.Context, s *plan.Scenario, tell backend.Progress, c *backend.Capture) (*store.RunRecord, error) {
	b.hops = append(b.hops, s.Flows[0].Hops())
	return b.scripted.Run(ctx, s, tell, c)
}

// direct hears everything between all three nodes: the flow has one hop.
func direct(int, *plan.Scenario) (*etx.Survey, error) {
	s := &etx.Survey{Nodes: 3, Probes: 100}
	for i := range 3 {
		for j := range 3 {
			if i != j {
				s.Heard = append(s.Heard, etx.Heard{From: i, To: j, Received: 99, Lost: []int{7}})
			}
		}
	}
	return s, nil
}

func setUpMeasured(t *testing.T) *bench {
	t.Helper()
	text := strings.Replace(file, "repeat: 3", "routing: {kind: measured}\nradio: {path-loss: {kind: disk, range: 15m}}\nrepeat: 3", 1)
	text = strings.Replace(text, "spacing: 10m", "spacing: 10m, vary: never", 1)
	e, err := spec.Parse("measured.yaml", []byte(text))
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

// The links are measured once, before the first run, and all runs go over them;
// they are kept with the campaign, and a campaign that goes on has the same.
func TestLinksAreMeasuredOnceAndKept(t *testing.T) {
	b := setUpMeasured(t)
	ctx, stop := context.WithCancel(t.Context())
	be := &surveyor{probe: direct}
	be.script = func(call int, _ *plan.Scenario) ([]string, error) {
		if be.surveys != 1 {
			t.Errorf("run %d after %d measurements", call, be.surveys)
		}
		if call == 2 {
			stop()
			return nil, ctx.Err()
		}
		return nil, nil
	}
	sum, err := b.execute(ctx, be, false)
	if err != nil || !sum.Interrupted {
		t.Fatalf("%+v, %v", sum, err)
	}
	v, err := b.st.Surveys(t.Context(), sum.CampaignID)
	if err != nil || len(v) != 1 || len(v[0].Links) != 6 || v[0].Probes != 100 || v[0].Rate != 2_000_000 || v[0].Size != 134 || v[0].Nodes[2] != "n03" || v[0].Network != b.p.Runs[0].NetworkKey() {
		t.Fatalf("%+v, %v", v, err)
	}
	again := &surveyor{probe: func(int, *plan.Scenario) (*etx.Survey, error) { return nil, errors.New("must not be measured again") }}
	again.script = always
	sum, err = b.execute(t.Context(), again, true)
	if err != nil || !sum.OK() || again.surveys != 0 || len(again.hops) != 5 {
		t.Fatalf("%+v, %v, %d surveys, hops %v", sum, err, again.surveys, again.hops)
	}
	for _, h := range append(be.hops, again.hops...) {
		if h != 1 {
			t.Errorf("a flow of %d hops: the model's routes", h)
		}
	}
	links, err := b.st.Links(t.Context(), store.Filter{})
	if err != nil || len(links) == 0 {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Measured != "probes" || l.Delivery.V != 0.99 {
			t.Errorf("%+v", l)
		}
	}
	runs := b.runs()
	if runs[0].Facts["network"] != v[0].Network {
		t.Errorf("facts %v", runs[0].Facts)
	}
}

func TestASpoiledMeasurementIsRepeated(t *testing.T) {
	b := setUpMeasured(t)
	be := &surveyor{probe: func(call int, s *plan.Scenario) (*etx.Survey, error) {
		if call < 3 {
			return nil, &backend.Spoiled{Reasons: []string{"the host slept"}}
		}
		return direct(call, s)
	}}
	be.script = always
	if sum, err := b.execute(t.Context(), be, false); err != nil || !sum.OK() || be.surveys != 3 {
		t.Errorf("%+v, %v after %d measurements", sum, err, be.surveys)
	}
	be = &surveyor{probe: func(int, *plan.Scenario) (*etx.Survey, error) {
		return nil, &backend.Spoiled{Reasons: []string{"the host slept"}}
	}}
	sum, err := b.execute(t.Context(), be, false)
	if err == nil || !strings.Contains(err.Error(), "the host slept") || be.surveys != 3 || be.calls != 0 {
		t.Errorf("%v after %d measurements and %d runs", err, be.surveys, be.calls)
	}
	if c, err := b.st.Campaign(t.Context(), sum.CampaignID); err != nil || c.Status != store.CampaignFailed {
		t.Errorf("%+v, %v", c, err)
	}
	be = &surveyor{probe: func(int, *plan.Scenario) (*etx.Survey, error) {
		return nil, &backend.Permanent{Err: errors.New("no such radio")}
	}}
	if _, err := b.execute(t.Context(), be, false); err == nil || be.surveys != 1 {
		t.Errorf("%v after %d measurements", err, be.surveys)
	}
}

// A mesh on which a flow has no route ends the campaign before its first run.
func TestMeasuredLinksMayFallApart(t *testing.T) {
	b := setUpMeasured(t)
	be := &surveyor{probe: func(int, *plan.Scenario) (*etx.Survey, error) {
		return &etx.Survey{Nodes: 3, Probes: 100, Heard: []etx.Heard{{From: 0, To: 2, Received: 100}}}, nil
	}}
	if _, err := b.execute(t.Context(), be, false); err == nil || !strings.Contains(err.Error(), "over the measured links") || !strings.Contains(err.Error(), "no route from n01 to n03") || !strings.Contains(err.Error(), "routing.size: 1500B and routing.rate: 11mbit") || be.calls != 0 {
		t.Errorf("%v after %d runs", err, be.calls)
	}
	if _, err := b.execute(t.Context(), &scripted{script: always}, false); err == nil || !strings.Contains(err.Error(), "cannot measure links") {
		t.Errorf("a back end that cannot: %v", err)
	}
}
