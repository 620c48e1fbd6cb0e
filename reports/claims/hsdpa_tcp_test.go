package claims

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// cellRun is a run of one variant over a cell, of 60 s after a warm-up of 10 s.
type cellRun struct {
	transport     string
	rep           int
	kbps          float64
	sent, retrans int64
	timeouts      int64
	rttMs         []int64 // samples of the measured interval
}

func cellSet(t *testing.T, runs ...cellRun) *dataset.Set {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, filepath.Join(t.TempDir(), "r.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	c := &store.Campaign{Name: "x", Backend: "sim", FileText: "hopbed: 1", Planned: int64(len(runs))}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		bytes := int64(r.kbps * 1000 * 60 / 8)
		rec := &store.RunRecord{
			Run: store.Run{CampaignID: c.ID, Backend: "sim", Params: store.Params{"transport": r.transport, "direction": "down"}, Transport: r.transport,
				Repetition: r.rep, Seed: store.Seed(r.rep), WarmupS: 10, DurationS: 60, Status: store.RunComplete},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}},
			Flows: []store.Flow{{Transport: r.transport, Status: store.FlowOK, Dst: 1, Hops: 1, Bytes: bytes, GoodputBps: store.Goodput(bytes, 60),
				SentBytes: store.Some(r.sent), RetransBytes: store.Some(r.retrans), Timeouts: store.Some(r.timeouts)}},
		}
		sample := func(side string, node int, second float64, ms int64) {
			rec.Samples = append(rec.Samples, store.Sample{Side: side, Node: node, TUs: int64(second * 1e6), SRTTUs: store.Some(ms * 1000)})
		}
		sample(store.SideSrc, 0, 5, 9_000) // of the warm-up
		for i, ms := range r.rttMs {
			sample(store.SideSrc, 0, 11+float64(i), ms)
			sample(store.SideDst, 1, 11+float64(i), 7_000) // not the sender's
		}
		if err := st.SaveRun(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	set, err := dataset.Load(ctx, st, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func taken(t *testing.T, set *dataset.Set, measure, of, to string) (Sample, error) {
	t.Helper()
	m := Find(measure)
	if m == nil {
		t.Fatalf("there is no measure %s", measure)
	}
	return m.Take(context.Background(), &Request{Set: set, Of: of, To: to, Where: map[string]string{"direction": "down"}})
}

// Two repetitions of three variants, counted by hand.
func twoOfThree(t *testing.T) *dataset.Set {
	return cellSet(t,
		cellRun{"tcp/reno", 1, 1000, 1000_000, 10_000, 1, []int64{400, 500, 600}},
		cellRun{"tcp/cubic", 1, 1100, 1000_000, 30_000, 2, []int64{900, 1000, 1100}},
		cellRun{"tcp/westwood", 1, 900, 1000_000, 5_000, 0, []int64{300, 400, 500}},
		cellRun{"tcp/reno", 2, 2000, 3000_000, 10_000, 1, []int64{200}},
		cellRun{"tcp/cubic", 2, 2100, 1000_000, 10_000, 4, []int64{600}},
		cellRun{"tcp/westwood", 2, 2300, 1000_000, 0, 1, []int64{100}},
	)
}

func TestMeasuresOfACell(t *testing.T) {
	set := twoOfThree(t)
	for _, c := range []struct {
		measure, of, to string
		want            float64
	}{
		{"rtt-ratio", "tcp/cubic", "tcp/reno", 2.5},                // 1000/500 and 600/200
		{"rtt-ratio", "tcp/westwood", "tcp/reno", (0.8 + 0.5) / 2}, // 400/500 and 100/200
		{"power-ratio", "tcp/reno", "tcp/cubic", (2/1.1 + 10/3.5) / 2},
		{"retransmission-ratio", "tcp/cubic", "tcp/reno", (40. / 2000) / (20. / 4000)},
		{"timeouts-ratio", "tcp/cubic", "tcp/reno", 3},
		{"goodput-spread", "tcp", "", 1600. / 1500}, // 1500, 1600, 1600 kb/s
		{"rtt-spread", "tcp", "", 800. / 250},       // 350, 800, 250 ms
	} {
		s, err := taken(t, set, c.measure, c.of, c.to)
		if err != nil {
			t.Errorf("%s: %v", c.measure, err)
			continue
		}
		if got := s.Statistic(indices(s.N)); math.Abs(got-c.want) > 1e-6 || s.N != 2 || s.Seconds != 60 || len(s.Details) != 1 {
			t.Errorf("%s of %s to %s: %v of %d repetitions of %v s, %q; want %v", c.measure, c.of, c.to, got, s.N, s.Seconds, s.Details, c.want)
		}
	}
}

// A variant that could not run is missing, never replaced: what needs it is not
// testable, and a spread is that of the others.
func TestMissingVariants(t *testing.T) {
	set := cellSet(t,
		cellRun{"tcp/reno", 1, 1000, 1000, 0, 0, []int64{100}},
		cellRun{"tcp/cubic", 1, 1500, 1000, 0, 0, []int64{100}},
		cellRun{"tcp/cubic", 2, 1500, 1000, 0, 0, nil},
	)
	var not *NotTestableError
	if _, err := taken(t, set, "rtt-ratio", "tcp/westwood", "tcp/reno"); !errors.As(err, &not) || !strings.Contains(not.Because, "tcp/westwood") {
		t.Errorf("without westwood: %v", err)
	}
	s, err := taken(t, set, "goodput-spread", "tcp", "")
	if err != nil || s.N != 1 || s.Statistic(indices(1)) != 1.5 {
		t.Errorf("a spread of two: %+v, %v", s, err)
	}
	s, err = taken(t, set, "timeouts-ratio", "tcp/cubic", "tcp/reno")
	if err != nil || !math.IsNaN(s.Statistic(indices(s.N))) {
		t.Errorf("no timeouts at all make no ratio: %v", err)
	}
	alone := cellSet(t, cellRun{"tcp/reno", 1, 1000, 1000, 0, 0, nil})
	if _, err := taken(t, alone, "goodput-spread", "tcp", ""); !errors.As(err, &not) {
		t.Errorf("a spread of one: %v", err)
	}
	unsampled := cellSet(t, cellRun{"tcp/reno", 1, 1000, 1000, 0, 0, nil}, cellRun{"tcp/cubic", 1, 1000, 1000, 0, 0, nil})
	if _, err := taken(t, unsampled, "rtt-spread", "tcp", ""); !errors.As(err, &not) || !strings.Contains(not.Because, "no samples") {
		t.Errorf("without samples: %v", err)
	}
}
