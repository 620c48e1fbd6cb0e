package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// cell is a run of a cooperative cell: what its flows got, and what was seen.
type cell struct {
	params  store.Params
	flows   []store.Flow // with transports
	events  []store.Event
	samples []store.Sample
	rep     int
}

func cells(t *testing.T, runs ...cell) *Request {
	t.Helper()
	ctx := context.Background()
	st := stored(t)
	c := &store.Campaign{Name: "x", Backend: "sim", FileText: "hopbed: 1", Planned: int64(len(runs))}
	if _, err := st.CreateCampaign(ctx, c); err != nil {
		t.Fatal(err)
	}
	for _, x := range runs {
		transport := x.flows[0].Transport
		for i := range x.flows {
			f := &x.flows[i]
			f.Flow, f.Status, f.Dst = i, store.FlowOK, 1
			if f.StopS == 0 {
				f.StopS = 60
			}
		}
		r := &store.RunRecord{
			Run:   store.Run{CampaignID: c.ID, Backend: "sim", Params: x.params, Transport: transport, Repetition: max(x.rep, 1), Seed: store.Seed(max(x.rep, 1)), DurationS: 60, Status: store.RunComplete},
			Nodes: []store.Node{{Node: 0, Name: "a"}, {Node: 1, Name: "b"}}, Flows: x.flows, Events: x.events, Samples: x.samples,
		}
		if err := st.SaveRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	set, err := dataset.Load(ctx, st, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Set: set, Of: "coop-tcp", To: "tcp", With: Params{}}
}

func of(transport string, kbps ...float64) []store.Flow {
	f := goodputs(kbps...)
	for i := range f {
		f[i].Transport = transport
	}
	return f
}

func event(s float64, flow int, kind, text string) store.Event {
	return store.Event{TUs: store.Some(int64(s * 1e6)), Node: store.Some[int64](0), Flow: store.Some(int64(flow)), Kind: kind, Text: text}
}

func told(s float64, flow int, state string, stations, cap int) store.Event {
	return event(s, flow, "window", fmt.Sprintf("state=%s stations=%d cap=%d rtt_us=1600000 min_rtt_us=256000", state, stations, cap))
}

// take takes a measure over all repetitions.
func take(t *testing.T, r *Request, name string) float64 {
	t.Helper()
	m := Find(name)
	if m == nil {
		t.Fatalf("there is no measure %s", name)
	}
	s, err := m.Take(context.Background(), r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s.Statistic(indices(s.N))
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got != want && !(math.Abs(got-want) < 1e-9) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestCoopStations: gains over the numbers of stations, and from which one on
// round-trip times are long.
func TestCoopStations(t *testing.T) {
	at := func(n, transport string) store.Params { return store.Params{"stations": n, "transport": transport} }
	rtts := func(us ...int64) (out []store.Sample) {
		for i, x := range us {
			out = append(out, store.Sample{Flow: 0, Side: "src", TUs: int64(i) * 1e6, SRTTUs: store.Some(x)})
		}
		return out
	}
	r := cells(t,
		cell{params: at("2", "tcp/cubic"), flows: of("tcp/cubic", 100, 100), samples: rtts(100, 200, 200, 300)},
		cell{params: at("2", "coop-tcp/cubic"), flows: of("coop-tcp/cubic", 120, 60), samples: rtts(100, 200, 200, 300)},
		cell{params: at("5", "tcp/cubic"), flows: of("tcp/cubic", 100, 100), samples: rtts(100, 700, 700, 900)},
		cell{params: at("5", "coop-tcp/cubic"), flows: of("coop-tcp/cubic", 150, 150), samples: rtts(100, 400, 400, 900)},
		cell{params: at("6", "tcp/cubic"), flows: of("tcp/cubic", 100, 100), samples: rtts(100, 900, 900, 900)},
		cell{params: at("6", "coop-tcp/cubic"), flows: of("coop-tcp/cubic", 110, 110), samples: rtts(100, 500, 500, 900)})
	r.With = Params{"to": "3"}
	near(t, "the furthest gain", take(t, r, "coop-gain-furthest"), 0.1)
	r.With = Params{"from": "5"}
	near(t, "the least gain", take(t, r, "coop-gain-least"), 1.1)
	near(t, "the largest ratio", take(t, r, "coop-rtt-most"), 5)
	r.With = Params{"ratio": "6"}
	near(t, "no onset", take(t, r, "coop-rtt-onset"), math.Inf(1))
	r.Of = "tcp"
	near(t, "the onset", take(t, r, "coop-rtt-onset"), 5)
	r.Where, r.With = map[string]string{"stations": "6"}, Params{}
	near(t, "the ratio", take(t, r, "coop-rtt-ratio"), 9)
	if _, err := Find("coop-gain-least").Take(context.Background(), &Request{Set: r.Set, Of: "coop-tcp", To: "tcp", With: Params{"from": "7"}}); !errors.As(err, new(*NotTestableError)) {
		t.Errorf("no point: %v", err)
	}
}

// TestCoopMixed: cells of both kinds of stations, repetition by repetition.
func TestCoopMixed(t *testing.T) {
	mixed := func(name string, rep int, flows ...store.Flow) cell {
		return cell{params: store.Params{"case": name}, flows: flows, rep: rep}
	}
	both := func(a, b []store.Flow) []store.Flow { return append(a, b...) }
	r := cells(t,
		mixed("4-0", 1, of("tcp/cubic", 100, 100)...),
		mixed("4-0", 2, of("tcp/cubic", 200, 200)...),
		mixed("4-1", 1, both(of("coop-tcp/cubic", 50), of("tcp/cubic", 170))...),
		mixed("4-1", 2, both(of("coop-tcp/cubic", 100), of("tcp/cubic", 340))...),
		mixed("4-2", 1, of("coop-tcp/cubic", 90, 90)...),
		mixed("4-2", 2, of("coop-tcp/cubic", 180, 180)...),
		mixed("7-0", 1, of("tcp/cubic", 1, 1)...))
	r.With = Params{"stations": "4"}
	near(t, "the least total", take(t, r, "coop-mixed-total-least"), 0.9)
	r.Of, r.To = "tcp", "coop-tcp"
	near(t, "the least mean", take(t, r, "coop-mixed-mean-least"), 3.4)
	r.Where, r.With = map[string]string{"case": "4-1"}, Params{"base": "4-2"}
	near(t, "the difference of Jain's indices", take(t, r, "coop-case-jain"), 220*220/(2*(50*50+170*170.))-1)
	near(t, "the total over a case's", take(t, r, "coop-case-total"), 220./180)
	r.With = Params{"base": "9-9"}
	if _, err := Find("coop-case-total").Take(context.Background(), r); !errors.As(err, new(*NotTestableError)) {
		t.Errorf("no such case: %v", err)
	}
}

// TestCoopWindows: caps beside the formula, and how late a change is known.
func TestCoopWindows(t *testing.T) {
	flows := of("coop-tcp/cubic", 100, 100)
	flows[1].StopS, flows[1].Bytes = 30, flows[1].Bytes/2
	events := []store.Event{
		event(0.25, 0, "connected", "src"), event(10, 1, "connected", "src"),
		told(0.25, 0, "normal", 1, 0),
		told(10, 1, "normal", 2, 0), told(10.2, 0, "normal", 2, 0),
		told(11, 0, "capped", 2, 146), told(11.5, 0, "min", 2, 1),
		told(30.9, 0, "min", 1, 1), told(31, 0, "normal", 1, 0),
	}
	run := func(e ...store.Event) *Request {
		return cells(t, cell{params: store.Params{"transport": "coop-tcp/cubic"}, flows: append([]store.Flow(nil), flows...), events: append(append([]store.Event(nil), events...), e...)})
	}
	r := run()
	near(t, "the error of caps", take(t, r, "coop-cap-error"), 0)
	near(t, "the lag", take(t, r, "coop-count-lag"), 0.9)
	// A station that is counted again later changes no cap by that.
	near(t, "the error with a new number", take(t, run(told(11.2, 0, "capped", 1, 146)), "coop-cap-error"), 0)
	near(t, "the error of a wrong cap", take(t, run(told(20, 0, "capped", 2, 140)), "coop-cap-error"), 6)
	events = events[:7]
	near(t, "the lag when it is never known", take(t, run(), "coop-count-lag"), math.Inf(1))
	for n, want := range map[int]float64{4: 66, 7: 35, 10: 23} {
		near(t, "the formula", math.Round(idealCwnd(0.256, n)), want)
	}
}
