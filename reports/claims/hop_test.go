package claims

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// value takes one measure.
func value(t *testing.T, set *dataset.Set, r Request, measure string) (float64, error) {
	t.Helper()
	m := Find(measure)
	if m == nil {
		t.Fatalf("no measure %s", measure)
	}
	r.Set = set
	s, err := m.Take(context.Background(), &r)
	if err != nil {
		return math.NaN(), err
	}
	return s.Statistic(indices(s.N)), nil
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) && got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// TestMeasuresOfASweep: goodput falls by 10 from 100 at each step of 10 %, and in
// the second repetition it is twice that.
func TestMeasuresOfASweep(t *testing.T) {
	var p []point
	for _, loss := range []struct {
		text string
		kbps float64
	}{{"20%", 80}, {"0%", 100}, {"10%", 90}, {"80%", 20}, {"90%", 5}} {
		for rep := 1; rep <= 2; rep++ {
			p = append(p, point{store.Params{"loss": loss.text}, "hop", rep, goodputs(loss.kbps * float64(rep))})
		}
	}
	set := loaded(t, false, p...)
	hop := func(with Params) Request {
		with["variable"] = "loss"
		return Request{Of: "hop", With: with}
	}
	for _, c := range []struct {
		measure string
		with    Params
		want    float64
	}{
		{"share-at", Params{"at": "20%", "base": "0%"}, 0.8},
		{"linear-fit-r2", Params{"from": "0", "to": "80"}, 1},
		{"loss-of-collapse", Params{}, 80 + 10*10./15},
		{"loss-of-collapse", Params{"share": "0.01"}, math.Inf(1)},
	} {
		got, err := value(t, set, hop(c.with), c.measure)
		if err != nil {
			t.Error(err)
		}
		same(t, c.measure, got, c.want)
	}
	if got, _ := value(t, set, hop(Params{}), "linear-fit-r2"); got >= 1 || got < 0.9 {
		t.Errorf("R² of all points, which are not on one line: %v", got)
	}
	var not *NotTestableError
	for _, with := range []Params{{"at": "30%", "base": "0%"}, {"at": "20%", "base": "7%"}} {
		if _, err := value(t, set, hop(with), "share-at"); !errors.As(err, &not) {
			t.Errorf("%v: %v", with, err)
		}
	}
}

// TestWorstLinks: of ten links, one a repetition, TCP is worst on the last two.
func TestWorstLinks(t *testing.T) {
	var p []point
	for rep := 1; rep <= 10; rep++ {
		hop, tcp := 1000.0, 1000.0
		if rep > 8 {
			hop, tcp = 600, 100*float64(rep-8)
		}
		p = append(p, point{nil, "hop", rep, goodputs(hop)}, point{nil, "tcp/cubic", rep, goodputs(tcp)})
	}
	set := loaded(t, false, p...)
	r := Request{Of: "hop", To: "tcp", With: Params{"share": "0.2"}}
	for measure, want := range map[string]float64{"mean-goodput-worst": 600, "mean-ratio-worst": 4} {
		got, err := value(t, set, r, measure)
		if err != nil {
			t.Error(err)
		}
		same(t, measure, got, want)
	}
	if _, err := value(t, set, Request{Of: "hop", To: "tcp", With: Params{"share": "much"}}, "mean-ratio-worst"); err == nil {
		t.Error("a share that is no number is taken")
	}
}

// TestMix: three flows of 2 hops to one of 5.
func TestMix(t *testing.T) {
	var p []point
	for hops, g := range map[string][2]float64{"2": {300, 100}, "5": {80, 20}} {
		p = append(p, point{store.Params{"hops": hops}, "hop", 1, goodputs(g[0])}, point{store.Params{"hops": hops}, "tcp/cubic", 1, goodputs(g[1])})
	}
	set := loaded(t, false, p...)
	r := Request{Of: "hop", To: "tcp", With: Params{"variable": "hops", "mix": "2:3 5:1", "short": "2", "long": "5"}}
	for measure, want := range map[string]float64{
		"mix-mean-ratio":   980. / 320,
		"mix-median-ratio": 3,
		"q1-gain-growth":   4. / 3,
	} {
		got, err := value(t, set, r, measure)
		if err != nil {
			t.Error(err)
		}
		same(t, measure, got, want)
	}
	for _, mix := range []string{"", "2", "2:0", "2:x"} {
		r.With["mix"] = mix
		if _, err := value(t, set, r, "mix-mean-ratio"); err == nil {
			t.Errorf("the mix %q is taken", mix)
		}
	}
}

// TestMeasuresOfMechanisms reads facts of nodes, samples, messages and ratings.
func TestMeasuresOfMechanisms(t *testing.T) {
	ctx := context.Background()
	st := stored(t)
	c := &store.Campaign{Name: "x", Backend: "sim", FileText: "hopbed: 1", Planned: 4}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for rep := 1; rep <= 2; rep++ {
		for i, transport := range []string{"hop", "hop/no-microblock"} {
			r := &store.RunRecord{
				Run:   store.Run{CampaignID: c.ID, Backend: "sim", Params: store.Params{"transport": transport}, Transport: transport, Repetition: rep, Seed: store.Seed(rep), DurationS: 60, Status: store.RunComplete},
				Nodes: []store.Node{{Node: 0, Name: "n01", Facts: store.Facts{"hop_tokens": "3"}}, {Node: 1, Name: "n02", Facts: store.Facts{"hop_data_again": []string{"0", "7"}[rep-1], "hop_tokens": "2"}}},
				Flows: []store.Flow{{Flow: 0, Transport: transport, Workload: "poisson", Dst: 1, Hops: 1, Bytes: 1000, GoodputBps: store.Goodput(1000, 60), Status: store.FlowOK, Messages: store.Some[int64](3)}},
				Samples: []store.Sample{
					{Flow: 0, Side: store.SideSrc, Node: 0, TUs: 1e6, MicroBlocks: store.Counted(3), BlocksHeld: store.Some[int64](30)},
					{Flow: 0, Side: store.SideRelay, Node: 1, TUs: 1e6, BlocksHeld: store.Some(int64(rep))},
				},
			}
			for m := range 3 {
				msg := store.Message{Flow: 0, Message: m, Size: 10, ReadyUs: int64(m+1) * 1e6}
				if m < 2 {
					msg.DelayUs = store.Some(int64(100e3 * (i + 1) * (m + 1)))
				}
				r.Messages = append(r.Messages, msg)
			}
			if err := st.SaveRun(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	set, err := dataset.Load(ctx, st, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	for measure, want := range map[string]float64{
		"blocks-held":     2, // at the relay, in the second repetition
		"data-sent-again": 7,
		"tokens-sent":     5,
		"micro-share":     1,
		"delivered-bytes": 1000,
		"delay-ratio":     2, // the medians of 0.1, 0.2 and ∞, and of 0.2, 0.4 and ∞
	} {
		r := Request{Of: "hop", To: "hop", With: Params{"nodes": "n01 n02", "workload": "poisson"}}
		if measure == "delay-ratio" {
			r.Of = "hop/no-microblock"
		}
		got, err := value(t, set, r, measure)
		if err != nil {
			t.Errorf("%s: %v", measure, err)
		}
		same(t, measure, got, want)
	}
	var not *NotTestableError
	for _, measure := range []string{"completed-share", "r-factor-difference"} {
		if _, err := value(t, set, Request{Of: "hop", To: "hop", With: Params{}}, measure); !errors.As(err, &not) {
			t.Errorf("%s: %v", measure, err)
		}
	}
	if _, err := value(t, set, Request{Of: "hop", With: Params{"nodes": ""}}, "data-sent-again"); !errors.As(err, &not) {
		t.Errorf("of no node: %v", err)
	}
	if _, err := value(t, set, Request{Of: "hop", With: Params{"nodes": "n01 n09"}}, "data-sent-again"); !errors.As(err, &not) {
		t.Errorf("of a node that there is not: %v", err)
	}
}
