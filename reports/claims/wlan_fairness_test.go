package claims

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// apRun is a run of two uploads and a download through an access point.
type apRun struct {
	params     store.Params
	rep        int
	up, down   float64 // kb/s a flow
	drops      int64
	cwnd       [2]float64 // of an upload and the download, in the measured interval
	noDownload bool
}

func accessPoint(t *testing.T, runs ...apRun) *dataset.Set {
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
		params := store.Params{}
		for k, v := range r.params {
			params[k] = v
		}
		rec := &store.RunRecord{
			Run:       store.Run{CampaignID: c.ID, Backend: "sim", Params: params, Transport: "tcp/reno", Repetition: r.rep, Seed: store.Seed(r.rep), WarmupS: 10, DurationS: 60, Status: store.RunComplete},
			Nodes:     []store.Node{{Node: 0, Name: "server", Wired: true}, {Node: 1, Name: "ap", Bridge: true}, {Node: 2, Name: "sta"}},
			NodeStats: []store.NodeStat{{Node: 1, AC: store.ACAll, DropsQueue: store.Some(r.drops)}, {Node: 2, AC: store.ACAll, DropsQueue: store.Some(int64(1000))}},
		}
		flow := func(src, dst int, kbps, cwnd float64) {
			f := goodputs(kbps)[0]
			id := len(rec.Flows)
			f.Flow, f.Src, f.Dst, f.Transport, f.Status = id, src, dst, "tcp/reno", store.FlowOK
			rec.Flows = append(rec.Flows, f)
			for s := range 4 {
				sample := store.Sample{Flow: id, Side: store.SideSrc, Node: src, TUs: int64(10+s) * 1e6, CwndPackets: store.Some(cwnd)}
				if s == 0 {
					sample.TUs, sample.CwndPackets = 5e6, store.Some(1.0) // in the warm-up
				}
				rec.Samples = append(rec.Samples, sample)
			}
		}
		flow(2, 0, r.up, r.cwnd[0])
		flow(2, 0, r.up, r.cwnd[0]+1)
		if !r.noDownload {
			flow(0, 2, r.down, r.cwnd[1])
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

func buffer(b string, more ...string) store.Params {
	p := store.Params{"buffer": b}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// The paper's quantities of a made-up campaign whose values are known by hand.
func TestMeasuresOfWLANFairness(t *testing.T) {
	set := accessPoint(t,
		apRun{params: buffer("100"), rep: 1, up: 900, down: 1000, cwnd: [2]float64{84, 90}},
		apRun{params: buffer("100"), rep: 2, up: 1100, down: 1000, cwnd: [2]float64{84, 90}},
		apRun{params: buffer("60"), rep: 1, up: 3000, down: 1500, drops: 4, cwnd: [2]float64{42, 15}},
		apRun{params: buffer("60"), rep: 2, up: 3000, down: 500, drops: 8, cwnd: [2]float64{41, 12}},
		apRun{params: buffer("70"), rep: 1, up: 2000, down: 1000, drops: 3, cwnd: [2]float64{42, 21}},
		apRun{params: buffer("70"), rep: 2, up: 2000, down: 1000, drops: 1, cwnd: [2]float64{42, 21}},
	)
	over := func(more ...string) Params {
		p := Params{"over": "buffer"}
		for i := 0; i < len(more); i += 2 {
			p[more[i]] = more[i+1]
		}
		return p
	}
	for _, c := range []struct {
		measure string
		where   map[string]string
		with    Params
		want    float64
	}{
		{"up-down-ratio", map[string]string{"buffer": "60"}, nil, 3},
		{"least-up-down-ratio", nil, over(), 1},
		{"greatest-up-down-ratio", nil, over(), 3},
		{"greatest-up-down-ratio", nil, over("from", "65", "to", "99"), 2},
		{"greatest-ratio-step", nil, over(), 2.0 / 3},
		{"least-ratio-step", nil, over(), 0.5},
		// 4·42/(3·18) = 3.11 at 60, and 2 at 70.
		{"ratio-deviation", nil, over("to", "70", "window", "42"), math.Abs(3/(56.0/18) - 1)},
		{"first-fair-buffer", nil, over(), 100},
		{"first-fair-buffer", nil, over("ratio", "2"), 70},
		{"first-fair-buffer", nil, over("to", "70"), math.Inf(1)},
		{"window-share", nil, over("window", "42"), 0.75}, // one upload of two in one repetition of two
		// 3·(60−42)/4 = 13.5 and the mean is 13.5; 21 at 70 is 21.
		{"window-deviation", nil, over("to", "70", "window", "42"), 0},
		{"window-deviation", map[string]string{"buffer": "70"}, over("window", "42", "acks", "0.5"), 1 - 21/36.75},
		{"queue-drops", nil, over(), 6},
		{"queue-drops", map[string]string{"buffer": "100"}, nil, 0},
	} {
		m := Find(c.measure)
		s, err := m.Take(t.Context(), &Request{Set: set, Of: "tcp", Where: c.where, With: c.with})
		if err != nil {
			t.Errorf("%s %v %v: %v", c.measure, c.where, c.with, err)
			continue
		}
		if got := s.Statistic(indices(s.N)); s.N != 2 || s.Seconds != 60 || !(math.Abs(got-c.want) < 1e-9 || got == c.want) {
			t.Errorf("%s %v %v: %v of %d repetitions of %v s, want %v of 2 of 60 s", c.measure, c.where, c.with, got, s.N, s.Seconds, c.want)
		}
		for name := range c.with {
			if !contains(m.With, name) {
				t.Errorf("%s does not say that it takes %s", c.measure, name)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestTotalsOfTwoSettings(t *testing.T) {
	set := accessPoint(t,
		apRun{params: buffer("10", "rewriting", "true"), rep: 1, up: 1000, down: 1000},
		apRun{params: buffer("10", "rewriting", "false"), rep: 1, up: 1600, down: 0},
		apRun{params: buffer("20", "rewriting", "true"), rep: 1, up: 1000, down: 1000},
		apRun{params: buffer("20", "rewriting", "false"), rep: 1, up: 1000, down: 500},
	)
	r := &Request{Set: set, Of: "tcp", With: Params{"over": "buffer", "variable": "rewriting", "is": "true", "was": "false"}}
	s, err := Find("total-against").Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Statistic([]int{0}); got != 3000.0/3200 {
		t.Errorf("%v, want %v", got, 3000.0/3200)
	}
	r.With["is"] = "perhaps"
	if _, err := Find("total-against").Take(t.Context(), r); !isNotTestable(err) {
		t.Errorf("a setting that was not run: %v", err)
	}
}

func isNotTestable(err error) bool { _, ok := err.(*NotTestableError); return ok }

func TestWhatCannotBeHadOfOtherCampaigns(t *testing.T) {
	set := accessPoint(t, apRun{params: buffer("10"), rep: 1, up: 1000, noDownload: true})
	for name, r := range map[string]*Request{
		"no download":       {Set: set, Of: "tcp", With: Params{"over": "buffer"}},
		"another variable":  {Set: set, Of: "tcp", With: Params{"over": "segment"}},
		"no point":          {Set: set, Of: "tcp", With: Params{"over": "buffer", "from": "50"}},
		"another transport": {Set: set, Of: "hop", With: Params{"over": "buffer"}},
	} {
		if _, err := Find("least-up-down-ratio").Take(t.Context(), r); !isNotTestable(err) {
			t.Errorf("%s: %v, want that it is not testable", name, err)
		}
	}
}
