package dataset

import (
	"context"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// grid is a campaign over two variables and two transports.
func grid(t *testing.T) *Set {
	t.Helper()
	ctx := context.Background()
	st := temp(t)
	c := store.Campaign{Name: "grid", Backend: "sim", FileText: "x"}
	id, err := st.CreateCampaign(ctx, &c)
	if err != nil {
		t.Fatal(err)
	}
	save := func(loss, delay, transport string, rep int, goodputs ...float64) {
		r := &store.RunRecord{Run: store.Run{CampaignID: id, Backend: "sim", Seed: store.Seed(rep), Repetition: rep, DurationS: 10, Status: store.RunComplete, Transport: transport,
			Params: store.Params{"loss": loss, "delay": delay, "transport": transport, "queue": "50"}},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}}
		for i, g := range goodputs {
			f := store.Flow{Flow: i, Transport: transport, Dst: 1, Bytes: int64(g * 10 / 8), Status: store.FlowOK}
			f.GoodputBps = store.Goodput(f.Bytes, 10)
			r.Flows = append(r.Flows, f)
		}
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	for rep := 1; rep <= 3; rep++ {
		for i, loss := range []string{"5%", "0%"} { // not in the order of the alphabet
			for j, delay := range []string{"10ms", "100ms", "50ms"} {
				g := float64(8000 * rep * (1 + i) * (1 + j))
				save(loss, delay, "hop", rep, g, 3*g, 5*g)
				if delay != "50ms" {
					save(loss, delay, "tcp/reno", rep, g)
				}
			}
		}
	}
	set, err := Load(ctx, st, id)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestSweeps(t *testing.T) {
	set := grid(t)
	if v := set.Varied("sim"); strings.Join(v, " ") != "delay loss" {
		t.Errorf("varied: %v", v)
	}
	sweeps := set.Sweeps("sim")
	var got []string
	for _, w := range sweeps {
		got = append(got, w.Variable+" at "+w.Fixed.String()+": "+strings.Join(w.Values, " "))
	}
	want := "delay at loss=5%: 10ms 100ms 50ms; delay at loss=0%: 10ms 100ms 50ms; loss at delay=10ms: 5% 0%; loss at delay=100ms: 5% 0%; loss at delay=50ms: 5% 0%"
	if s := strings.Join(got, "; "); s != want {
		t.Fatalf("sweeps:\n got %s\nwant %s", s, want)
	}
	w := &sweeps[1] // no loss
	if len(w.Lines) != 2 || w.Lines[0].Transport != "hop" || len(w.Lines[1].At) != 3 || w.Lines[1].At[2].N != 0 {
		t.Fatalf("lines %+v", w.Lines)
	}
	// 100 ms is the second value: flows of g, 3g and 5g with g = 8000·rep·2·2.
	p := w.Lines[0].At[1]
	if p.N != 3 || p.Flow.Median != 3*64000 || p.Flow.Q1 != 3*48000 || p.Flow.Q3 != 3*80000 || p.Aggregate.Median != 9*64000 || p.AtLeast {
		t.Errorf("hop at 100 ms: %+v", p)
	}
	if len(set.Sweeps("netns")) != 0 {
		t.Error("another back end has sweeps")
	}
}

// One variable only, or points that differ in everything, have one sweep or
// none.
func TestSweepsNeedTwoValues(t *testing.T) {
	set := load(t, store.Campaign{},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{1e6}, radio: "a"},
		runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{2e6}, radio: "b"},
		runSpec{transport: "hop", rep: 1, seed: 1, status: failed, radio: "c"})
	w := set.Sweeps("sim")
	if len(w) != 1 || strings.Join(w[0].Values, " ") != "a b c" || w[0].Lines[0].At[2].N != 0 || w[0].Lines[0].At[1].Flow.Median != 2e6 {
		t.Errorf("sweeps %+v", w)
	}
	one := load(t, store.Campaign{}, runSpec{transport: "hop", rep: 1, seed: 1, status: ok, flows: []float64{1e6}, radio: "a"})
	if len(one.Sweeps("sim")) != 0 || len(one.Varied("sim")) != 0 {
		t.Error("one point has a sweep")
	}
}
