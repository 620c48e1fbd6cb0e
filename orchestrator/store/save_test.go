package store

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// counts returns how many rows each table of run results holds.
func counts(t *testing.T, s *Store) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, tab := range []string{"runs", "nodes", "links", "flows", "samples", "messages", "node_stats", "pipes", "events", "artifacts"} {
		var n int
		if err := s.r.Get(&n, "SELECT count(*) FROM "+tab); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			out[tab] = n
		}
	}
	return out
}

func integrity(t *testing.T, s *Store) {
	t.Helper()
	var ok string
	if err := s.r.Get(&ok, "PRAGMA integrity_check"); err != nil || ok != "ok" {
		t.Errorf("integrity_check: %q, %v", ok, err)
	}
	var bad int
	if err := s.r.Get(&bad, "SELECT count(*) FROM pragma_foreign_key_check"); err != nil || bad != 0 {
		t.Errorf("foreign_key_check: %d rows, %v", bad, err)
	}
}

// A run that cannot be saved leaves nothing, whatever part of it is wrong.
func TestFailedSaveLeavesNothing(t *testing.T) {
	for name, breakIt := range map[string]func(*RunRecord){
		"unknown campaign":           func(r *RunRecord) { r.Run.CampaignID = 99 },
		"flow from no node":          func(r *RunRecord) { r.Flows[0].Src = 7 },
		"link to no node":            func(r *RunRecord) { r.Links[0].Dst = 7 },
		"sample of no flow":          func(r *RunRecord) { r.Samples[len(r.Samples)-1].Flow = 7 },
		"same sample twice":          func(r *RunRecord) { r.Samples = append(r.Samples, r.Samples[0]) },
		"delivery above 1":           func(r *RunRecord) { r.Links[0].Delivery = Some(1.5) },
		"unknown access category":    func(r *RunRecord) { r.NodeStats[1].AC = "XX" },
		"same artefact twice":        func(r *RunRecord) { r.Artifacts = append(r.Artifacts, r.Artifacts[0]) },
		"unknown status":             func(r *RunRecord) { r.Run.Status = "fine" },
		"invalid without a reason":   func(r *RunRecord) { r.Run.Status = RunInvalid },
		"complete with a reason":     func(r *RunRecord) { r.Run.InvalidReasons = Strings{"late"} },
		"failed without an error":    func(r *RunRecord) { r.Run.Status = RunFailed },
		"no measured interval":       func(r *RunRecord) { r.Run.DurationS = 0 },
		"goodput is not the bytes":   func(r *RunRecord) { r.Flows[0].GoodputBps = Some(1e6) },
		"unmeasured flow called ok":  func(r *RunRecord) { r.Flows[0].GoodputBps = None[float64]() },
		"failed flow with a goodput": func(r *RunRecord) { r.Flows[0].Status = FlowFailed },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := temp(t)
			c := campaign(t, s)
			rec := record(c.ID, 1, 200)
			breakIt(rec)
			if err := s.SaveRun(ctx, rec); err == nil {
				t.Fatal("saved")
			}
			if n := counts(t, s); len(n) != 0 {
				t.Errorf("left %v", n)
			}
			if err := s.SaveRun(ctx, record(c.ID, 1, 200)); err != nil {
				t.Errorf("the store does not work any more: %v", err)
			}
			integrity(t, s)
		})
	}
}

func TestCancelledSaveLeavesNothing(t *testing.T) {
	s := temp(t)
	c := campaign(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.SaveRun(ctx, record(c.ID, 1, 10)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error: %v", err)
	}
	if n := counts(t, s); len(n) != 0 {
		t.Errorf("left %v", n)
	}
}

func TestFullDatabase(t *testing.T) {
	ctx := context.Background()
	s := temp(t)
	c := campaign(t, s)
	if err := s.SaveRun(ctx, record(c.ID, 1, 10)); err != nil {
		t.Fatal(err)
	}
	before := counts(t, s)
	var pages int
	if err := s.w.Get(&pages, "PRAGMA page_count"); err != nil {
		t.Fatal(err)
	}
	if err := s.w.Get(&pages, "PRAGMA max_page_count = 60"); err != nil || pages != 60 {
		t.Fatalf("max_page_count: %d, %v", pages, err)
	}
	err := s.SaveRun(ctx, record(c.ID, 2, 50_000))
	var full *DiskFullError
	if !errors.As(err, &full) {
		t.Fatalf("error: %v", err)
	}
	if !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("message: %v", err)
	}
	if after := counts(t, s); after["runs"] != before["runs"] || after["samples"] != before["samples"] {
		t.Errorf("before %v, after %v", before, after)
	}
	integrity(t, s)
	if err := s.SaveRun(ctx, record(c.ID, 2, 10)); err != nil {
		t.Errorf("a smaller run no longer fits: %v", err)
	}
}

func TestResume(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	c := campaign(t, s)
	late := record(c.ID, 1, 1)
	late.Run.Status, late.Run.InvalidReasons = RunInvalid, Strings{"lateness p99 3 ms is above 1 ms"}
	failed := record(c.ID, 2, 1)
	failed.Run.Status, failed.Run.Error = RunFailed, "agent of n02 died"
	for _, r := range []*RunRecord{late, record(c.ID, 1, 1), failed} {
		if err := s.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.FinishCampaign(ctx, c.ID, CampaignInterrupted, "Ctrl-C"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, path)
	got, err := s.Resumable(ctx, c.FileSHA256, c.Seed, "sim", false)
	if err != nil || got == nil || got.ID != c.ID {
		t.Fatalf("resumable: %v, %v", got, err)
	}
	for _, other := range []struct {
		sha     string
		seed    Seed
		backend string
		quick   bool
	}{{"0", c.Seed, "sim", false}, {c.FileSHA256, 1, "sim", false}, {c.FileSHA256, c.Seed, "netns", false}, {c.FileSHA256, c.Seed, "sim", true}} {
		if got, err := s.Resumable(ctx, other.sha, other.seed, other.backend, other.quick); err != nil || got != nil {
			t.Errorf("%+v resumes %v, %v", other, got, err)
		}
	}
	done, err := s.Done(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	one, two := record(c.ID, 1, 0).Run, record(c.ID, 2, 0).Run
	if len(done) != 1 || done[one.Key()] != 2 {
		t.Errorf("done: %v", done)
	}
	tries, err := s.Attempts(ctx, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if tries[one.Key()] != 2 || tries[two.Key()] != 1 {
		t.Errorf("attempts: %v", tries)
	}
	if err := s.ReopenCampaign(ctx, c.ID); err != nil {
		t.Fatal(err)
	}
	again := record(c.ID, 2, 1)
	if err := s.SaveRun(ctx, again); err != nil || again.Run.Attempt != 2 {
		t.Errorf("attempt %d, %v", again.Run.Attempt, err)
	}
	// A second result for a run that is done would count twice.
	if err := s.SaveRun(ctx, record(c.ID, 1, 1)); err == nil {
		t.Error("a complete run was saved twice")
	}
	if err := s.FinishCampaign(ctx, c.ID, CampaignComplete, ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resumable(ctx, c.FileSHA256, c.Seed, "sim", false); err != nil || got != nil {
		t.Errorf("a complete campaign is resumable: %v, %v", got, err)
	}
}

// A campaign can be read while it is written.
func TestReadWhileWriting(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "results.db")
	w := open(t, path)
	c := campaign(t, w)
	r, err := OpenRead(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for rep := 1; rep <= 3; rep++ {
		if err := w.SaveRun(ctx, record(c.ID, rep, 100)); err != nil {
			t.Fatal(err)
		}
		if n := counts(t, r)["samples"]; n != 100*rep {
			t.Errorf("after run %d the reader sees %d samples", rep, n)
		}
	}
	if err := r.SaveRun(ctx, record(c.ID, 4, 1)); err == nil || !strings.Contains(err.Error(), "reading only") {
		t.Errorf("a store opened for reading writes: %v", err)
	}
}

func BenchmarkSaveRun(b *testing.B) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(b.TempDir(), "results.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := &Campaign{Name: "bench", Backend: "sim", FileText: "x"}
	if _, err := s.CreateCampaign(ctx, c); err != nil {
		b.Fatal(err)
	}
	// As a run leaves them: in the order of time, 30 flows with two sides.
	const flows, n = 30, 100_000
	r := record(c.ID, 1, 0)
	r.Flows = nil
	for f := range flows {
		r.Flows = append(r.Flows, Flow{Flow: f, Transport: "tcp/cubic", Src: 0, Dst: 1, Hops: 1, GoodputBps: Some(0.0), Status: FlowOK})
	}
	for i := range int64(n / flows / 2) {
		for f := range flows {
			r.Samples = append(r.Samples, Sample{Flow: f, Side: SideDst, Node: 1, TUs: i * 100_000, DeliveredBytes: Some(i * 1400)},
				Sample{Flow: f, Side: SideSrc, TUs: i * 100_000, SentBytes: Some(i * 1500), RetransBytes: Some(i), RetransSegments: Some(i), AckedBytes: Some(i * 1400), NotSentBytes: Some[int64](65536),
					CwndPackets: Some(float64(i % 40)), SsthreshPackets: Some(20.0), InFlightPackets: Some(float64(i % 40)), LostPackets: Some(i % 3), SRTTUs: Some(90_000 + i), MinRTTUs: Some[int64](9000),
					RTTVarUs: Some(20_000 + i), RTOUs: Some(200_000 + i), DeliveryRateBps: Some(50_000 + i), CAState: Some("open")})
		}
	}
	for b.Loop() {
		r.Run.Repetition++
		r.Run.Attempt = 0
		if err := s.SaveRun(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

// The goodput of a flow with a start or stop of its own is over the part of the
// measured interval in which it was meant to run.
func TestGoodputOfPartOfTheInterval(t *testing.T) {
	run := Run{WarmupS: 5, DurationS: 30}
	for _, c := range []struct{ start, stop, want float64 }{
		{0, 0, 30}, {0, 35, 30}, {10, 35, 25}, {0, 20, 15}, {10, 20, 10}, {2, 40, 30}, {40, 50, 0},
	} {
		f := Flow{StartS: c.start, StopS: c.stop}
		if got := f.MeasuredS(&run); got != c.want {
			t.Errorf("from %g to %g s: %g s, want %g", c.start, c.stop, got, c.want)
		}
	}
	s := temp(t)
	c := campaign(t, s)
	rec := record(c.ID, 1, 0)
	f := &rec.Flows[0]
	f.StartS, f.StopS = 10, 20
	if err := s.SaveRun(t.Context(), rec); err == nil || !strings.Contains(err.Error(), "/ 10 s") {
		t.Errorf("a goodput over the whole interval was taken for one over 10 s: %v", err)
	}
	f.GoodputBps = Goodput(f.Bytes, 10)
	if err := s.SaveRun(t.Context(), rec); err != nil {
		t.Error(err)
	}
}

// A count is known or missing, 0 included, and is never negative.
func TestCount(t *testing.T) {
	var c Count
	if n, ok := c.Get(); n != 0 || ok {
		t.Errorf("the zero Count is %d, %v", n, ok)
	}
	for _, n := range []int64{0, 1, 1 << 62} {
		var back Count
		v, err := Counted(n).Value()
		if err != nil || back.Scan(v) != nil || back != Counted(n) {
			t.Errorf("%d became %v, %v", n, back, err)
		}
		if got, ok := back.Get(); got != n || !ok {
			t.Errorf("%d is %d, %v", n, got, ok)
		}
	}
	if v, err := c.Value(); v != nil || err != nil {
		t.Errorf("missing is stored as %v, %v", v, err)
	}
	for _, bad := range []any{int64(-1), int64(math.MaxInt64), "x"} {
		if err := c.Scan(bad); err == nil {
			t.Errorf("%v is a count", bad)
		}
	}
}

// A run with as many messages as one may have; ns/message is what matters.
func BenchmarkSaveMessages(b *testing.B) {
	const n = 1_000_000
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(b.TempDir(), "r.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := &Campaign{Name: "x", Backend: "sim", FileText: "x"}
	if _, err := s.CreateCampaign(ctx, c); err != nil {
		b.Fatal(err)
	}
	rep := 0
	for b.Loop() {
		rep++
		rec := record(c.ID, rep, 0)
		rec.Messages = make([]Message, n)
		for i := range rec.Messages {
			rec.Messages[i] = Message{Message: i, Size: 1400, ReadyUs: int64(i) * 300, DelayUs: Some(int64(i % 7001))}
		}
		if err := s.SaveRun(ctx, rec); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
}
