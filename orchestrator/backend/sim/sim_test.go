package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
)

func silent(string, vtime.Duration, vtime.Duration) {}

// shipped is a shipped experiment, changed by assignments such as "repeat=1".
func shipped(t testing.TB, name string, sets ...string) *plan.Plan {
	t.Helper()
	src, ok := library.Source(name)
	if !ok {
		t.Fatalf("%s is not shipped", name)
	}
	return parsed(t, string(src), sets...)
}

func parsed(t testing.TB, src string, sets ...string) *plan.Plan {
	t.Helper()
	e, err := spec.Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var as []spec.Assignment
	for _, s := range sets {
		a, err := spec.ParseAssignment(s)
		if err != nil {
			t.Fatal(err)
		}
		as = append(as, a)
	}
	if err := e.Set(as...); err != nil {
		t.Fatal(err)
	}
	return plan.Build(e)
}

func scenario(t testing.TB, r plan.Run) *plan.Scenario {
	t.Helper()
	s, err := r.Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func carryOut(t testing.TB, r plan.Run) *store.RunRecord {
	t.Helper()
	rec, err := New().Run(t.Context(), scenario(t, r), silent, nil)
	if err != nil {
		t.Fatalf("%s: %v", r.Label(), err)
	}
	return rec
}

// TestRecordHasWhatALiveRunHas: flows, samples of every side in the order of the
// store, radio counters, facts.
func TestRecordHasWhatALiveRunHas(t *testing.T) {
	for _, r := range shipped(t, "smoke").Runs {
		rec := carryOut(t, r)
		f := rec.Flows[0]
		if len(rec.Flows) != 1 || f.Status != store.FlowOK || f.GoodputBps.V < 1.5e6 || len(rec.Run.InvalidReasons) != 0 {
			t.Fatalf("%s: %+v %v", r.Label(), f, rec.Run.InvalidReasons)
		}
		if rec.Run.TraceHash == "" || rec.Run.Events.V == 0 || rec.Nodes[0].Address == "" || rec.Run.LatenessP99Us.OK {
			t.Errorf("%s: %+v", r.Label(), rec.Run)
		}
		checkSamples(t, r, rec)
		var sum int64
		for _, s := range rec.NodeStats {
			if s.AC == store.ACAll {
				total := s.AirtimeTxUs.V + s.AirtimeRxUs.V + s.AirtimeBusyUs.V + s.AirtimeIdleUs.V
				if want := int64(r.Config().Duration) / 1000; total < want-10 || total > want+10 {
					t.Errorf("%s: node %d: airtimes add up to %d of %d µs", r.Label(), s.Node, total, want)
				}
				sum += s.Successes.V
			}
		}
		if sum == 0 {
			t.Errorf("%s: nothing on the air", r.Label())
		}
		isTCP := r.Config().Flows[0].Transport.Family() != spec.FamilyHop
		if isTCP != (f.CC == "cubic") || isTCP != f.SetupS.OK || isTCP == f.Blocks.OK || f.SentBytes.V == 0 {
			t.Errorf("%s: %+v", r.Label(), f)
		}
		if isTCP && (len(rec.Events) == 0 || rec.Events[0].Kind != "connected") {
			t.Errorf("%s: events %+v", r.Label(), rec.Events)
		}
	}
}

func checkSamples(t *testing.T, r plan.Run, rec *store.RunRecord) {
	t.Helper()
	c := r.Config()
	n := map[string]int{}
	for i, s := range rec.Samples {
		n[s.Side]++
		if i > 0 {
			p := rec.Samples[i-1]
			if p.Side > s.Side || p.Side == s.Side && p.TUs >= s.TUs {
				t.Fatalf("%s: sample %d (%s, %d µs) comes after (%s, %d µs)", r.Label(), i, s.Side, s.TUs, p.Side, p.TUs)
			}
		}
		if s.TUs%(int64(c.Sample)/1000) != 0 {
			t.Errorf("%s: a sample at %d µs", r.Label(), s.TUs)
		}
	}
	all := int((c.Warmup+c.Duration)/c.Sample) + 1
	atRelay := int((c.Warmup+c.Duration)/vtime.Second) + 1
	if n[store.SideDst] != all || n[store.SideSrc] < all-3 {
		t.Errorf("%s: %v samples, want %d at each end", r.Label(), n, all)
	}
	if last := rec.Samples[n[store.SideDst]-1]; last.DeliveredBytes.V != rec.Flows[0].Counters["total_bytes"] {
		t.Errorf("%s: %d B in the last sample, %d in the account", r.Label(), last.DeliveredBytes.V, rec.Flows[0].Counters["total_bytes"])
	}
	// The goodput is the difference of the counter over the measured interval.
	at := int(c.Warmup / c.Sample)
	if got := rec.Samples[n[store.SideDst]-1].DeliveredBytes.V - rec.Samples[at].DeliveredBytes.V; got != rec.Flows[0].Bytes {
		t.Errorf("%s: %d B by the samples, %d B measured", r.Label(), got, rec.Flows[0].Bytes)
	}
	src := rec.Samples[len(rec.Samples)-1]
	switch c.Flows[0].Transport.Family() {
	case spec.FamilyHop:
		if !src.BlocksDone.OK || !src.DataFrames.OK || n[store.SideRelay] != atRelay {
			t.Errorf("%s: %+v", r.Label(), src)
		}
	default:
		if !src.CwndPackets.OK || !src.SRTTUs.OK || !src.RTOUs.OK || !src.CAState.OK || !src.AckedBytes.OK {
			t.Errorf("%s: %+v", r.Label(), src)
		}
	}
}

// TestChainsAgreeWithAnIndependentModel: one flow over 1 to 4 hops, within 5 % of
// what another model of the same chain gave (TCP cubic 4995, 2549, 1589, 1333;
// Hop 8112, 4048, 2717, 2097 kb/s).
func TestChainsAgreeWithAnIndependentModel(t *testing.T) {
	want := map[string][]float64{"tcp/cubic": {4995, 2549, 1589, 1333}, "hop": {8112, 4048, 2717, 2097}}
	for _, r := range shipped(t, "chain", "repeat=1").Runs {
		hops := len(scenario(t, r).Topology.Nodes) - 1
		if hops > 4 {
			continue
		}
		w := want[r.Transport()][hops-1] * 1e3
		if g := carryOut(t, r).Flows[0].GoodputBps.V; math.Abs(g/w-1) > 0.05 {
			t.Errorf("%s over %d hops: %.0f kb/s, want %.0f", r.Transport(), hops, g/1e3, w/1e3)
		}
	}
}

const lossy = `hopbed: 1
name: lossy
topology:
  nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [10m, 0m]}, {name: c, at: [20m, 0m]}]
  links: [{from: a, to: b, delivery: 100%}, {from: b, to: c, delivery: 100%}]
radio: {drop: $drop}
flows:
  - {pairs: [{src: a, dst: c}], transport: $transport}
matrix: {drop: [0%, 30%, 100%], transport: [tcp/reno, hop, udp, hop-by-hop-tcp/westwood]}
warmup: 1s
duration: 10s
`

// TestDropAfterTheMAC: loss that the MAC does not repair, over listed links. A
// flow that nothing gets through is an outcome, not a failure.
func TestDropAfterTheMAC(t *testing.T) {
	clean := map[string]float64{}
	for _, r := range parsed(t, lossy).Runs {
		f := carryOut(t, r).Flows[0]
		if f.Status == store.FlowFailed || !f.GoodputBps.OK {
			t.Errorf("%s: %+v", r.Label(), f)
		}
		switch r.Config().Radio.Drop {
		case 0:
			clean[r.Transport()] = f.GoodputBps.V
		case 1:
			if f.GoodputBps.V != 0 {
				t.Errorf("%s: %v b/s", r.Label(), f.GoodputBps)
			}
		default:
			if f.GoodputBps.V <= 0 || f.GoodputBps.V > 0.75*clean[r.Transport()] {
				t.Errorf("%s: %.0f b/s, without loss %.0f", r.Label(), f.GoodputBps.V, clean[r.Transport()])
			}
		}
	}
}

// TestWhatTheModelLacksIsSaidBefore.
func TestWhatTheModelLacksIsSaidBefore(t *testing.T) {
	p := shipped(t, "onehop", "matrix.transport=[tcp/vegas]")
	err := New().Preflight(t.Context(), p)
	var u *backend.ErrUnsupported
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "tcp/vegas") || !strings.Contains(err.Error(), "cubic") {
		t.Errorf("%v", err)
	}
	if _, err := New().Run(t.Context(), scenario(t, p.Runs[0]), silent, nil); !backend.IsPermanent(err) {
		t.Errorf("the run's error is not permanent: %v", err)
	}
	err = New().Preflight(t.Context(), shipped(t, "onehop", "mac.fragment=512B"))
	if !errors.As(err, &u) || u.What != "mac.fragment" {
		t.Errorf("%v", err)
	}
	if err := New().Preflight(t.Context(), shipped(t, "load30")); err != nil {
		t.Error(err)
	}
}

// TestStopEndsARunSoon.
func TestStopEndsARunSoon(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seconds := 0
	rec, err := New().Run(ctx, scenario(t, shipped(t, "onehop").Runs[0]), func(phase string, at, length vtime.Duration) {
		if seconds++; seconds == 3 {
			cancel()
		}
		if length != 65*vtime.Second || at > 2*vtime.Second || phase != "warm-up" {
			t.Errorf("%s at %v of %v", phase, at, length)
		}
	}, nil)
	if !errors.Is(err, context.Canceled) || rec != nil {
		t.Errorf("%v, %v", rec, err)
	}
}

// TestCampaignDoesNotDependOnTheCores: the same records, with one run at a time
// and with several, over the radio and over wires.
func TestCampaignDoesNotDependOnTheCores(t *testing.T) {
	results := func(procs int, p *plan.Plan) []string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "r.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		sum, err := run.Execute(t.Context(), run.Options{Plan: p, Backend: New(), Store: st, Observe: run.Silent{}, Version: "test", Host: store.Facts{}})
		if err != nil || !sum.OK() || sum.Complete != len(p.Runs) {
			t.Fatalf("%+v, %v", sum, err)
		}
		runs, err := st.Runs(t.Context(), store.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(runs, func(x, y store.Run) int { return int(x.ID - y.ID) })
		var out []string
		for _, r := range runs {
			f := store.Filter{RunIDs: []int64{r.ID}}
			flows, err := st.Flows(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			pipes, err := st.Pipes(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %d %s %+v %+v", r.Transport, r.Repetition, r.TraceHash, flows, pipes))
		}
		return out
	}
	for name, p := range map[string]*plan.Plan{
		"smoke": shipped(t, "smoke", "repeat=3"), "access-point": shipped(t, "access-point", "repeat=2", "duration=6s", "warmup=5s"),
	} {
		one := results(1, p)
		for _, procs := range []int{2, 7} {
			if got := results(procs, p); !reflect.DeepEqual(got, one) {
				t.Errorf("%s with %d at once:\n%v\nwith one:\n%v", name, procs, got, one)
			}
		}
	}
}

// TestRunsAreRepeatable: whole records, not only their hashes.
func TestRunsAreRepeatable(t *testing.T) {
	for _, r := range slices.Concat(shipped(t, "smoke").Runs, shipped(t, "access-point", "repeat=1", "duration=10s").Runs) {
		a, b := carryOut(t, r), carryOut(t, r)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs of one scenario differ", r.Label())
		}
	}
}
