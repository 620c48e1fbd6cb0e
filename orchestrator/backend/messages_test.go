package backend

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

const ms = vtime.Millisecond

// lossless is what an honest destination reports of a flow whose messages all
// arrive after a delay.
func lossless(t *testing.T, f proto.Flow, stop vtime.Time, delay func(k int) vtime.Duration) []proto.Message {
	t.Helper()
	r, err := workload.NewReceipts(f.Workload, f.Start, stop)
	if err != nil {
		t.Fatal(err)
	}
	r.Close(stop)
	var out []proto.Message
	for m := range r.Take() {
		m.Lost, m.Delay = false, delay(m.Message)
		out = append(out, proto.Message{Flow: f.ID, Receipt: m})
	}
	return out
}

// healthy gives every flow of a record the status ok, as CollectFlows would.
func healthy(s *plan.Scenario) *store.RunRecord {
	rec := NewRecord(s, func(int) string { return "" })
	for i := range rec.Flows {
		rec.Flows[i].Status, rec.Flows[i].Error, rec.Flows[i].GoodputBps = store.FlowOK, "", store.Some(0.0)
	}
	return rec
}

const speech = "{pairs: [{src: n01, dst: n04}], transport: udp, workload: voip}"

// Messages come in any order; those of the measured interval are counted, all are
// kept, and those of which nobody said anything were not delivered.
func TestMessages(t *testing.T) {
	s, o := ordersOf(t, speech+", {pairs: [{src: n02, dst: n03}], transport: tcp/reno}", 0, "")
	m := NewMessages(s)
	if !m.Any() {
		t.Fatal("no messages are expected")
	}
	all := lossless(t, o[0], vtime.Time(13*vtime.Second), func(k int) vtime.Duration { return vtime.Duration(k%7) * ms })
	if len(all) != 650 {
		t.Fatalf("%d packets in 13 s", len(all))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var delays []float64
	lost := 0
	for _, x := range all {
		switch {
		case x.Message%10 == 3:
			continue // of these nothing is reported
		case x.Message%10 == 4:
			x.Lost, x.Delay = true, 0
		case x.Ready >= o[0].Start.Add(3*vtime.Second):
			delays = append(delays, float64(x.Message%7)*1000)
		}
		if x.Message%10 == 4 && x.Ready >= vtime.Time(3*vtime.Second) {
			lost += 2
		}
		if err := m.Add(3, &x); err != nil {
			t.Fatal(err)
		}
	}
	rec := healthy(s)
	m.Finish(rec)
	f := rec.Flows[0]
	slices.Sort(delays)
	if len(rec.Messages) != 650 || f.Messages.V != 500 || f.MessagesDelivered.V != int64(len(delays)) || f.Messages.V-f.MessagesDelivered.V != int64(lost) {
		t.Errorf("%d rows, %d messages measured, %d delivered, want %d", len(rec.Messages), f.Messages.V, f.MessagesDelivered.V, len(delays))
	}
	for p, got := range map[float64]store.Opt[int64]{0.5: f.DelayP50Us, 0.95: f.DelayP95Us, 0.99: f.DelayP99Us} {
		if want := int64(stats.Quantile(delays, p)); got != store.Some(want) {
			t.Errorf("the %g quantile of the delays is %v, want %d", p, got, want)
		}
	}
	for i, row := range rec.Messages {
		if row.Message != i || row.Size != 32 || row.DelayUs.OK == (i%10 == 3 || i%10 == 4) {
			t.Fatalf("row %d: %+v", i, row)
		}
	}
	// 20 % lost in pairs, BurstR 1.6: Ie,eff is 11 + 84·20/(20/1.6 + 19), and R 28.
	if r := f.RFactor.V; r < 27 || r > 29 || f.MOS.V < 1 || f.Counters["voice_lost"] < int64(lost)-2 || f.Counters["voice_played"] < int64(len(delays))-2 {
		t.Errorf("R %v, MOS %v, %v", f.RFactor, f.MOS, f.Counters)
	}
	if g := rec.Flows[1]; g.Messages.OK || g.MOS.OK {
		t.Errorf("a flow without messages has %+v", g)
	}
}

// Packets that are on their way when the run ends are no losses of a call.
func TestTheEndOfACallIsNoLoss(t *testing.T) {
	s, o := ordersOf(t, speech, 0, "")
	m := NewMessages(s)
	for _, x := range lossless(t, o[0], vtime.Time(13*vtime.Second), func(int) vtime.Duration { return 150 * ms }) {
		if x.Ready.Add(x.Delay) >= vtime.Time(13*vtime.Second) {
			continue
		}
		if err := m.Add(3, &x); err != nil {
			t.Fatal(err)
		}
	}
	rec := healthy(s)
	m.Finish(rec)
	f := rec.Flows[0]
	if lost := f.Messages.V - f.MessagesDelivered.V; lost < 7 || lost > 8 || f.Counters["voice_lost"] != 0 || f.Counters["voice_late"] != 0 || f.RFactor.V < 75 {
		t.Errorf("%d not delivered, R %v, %v", lost, f.RFactor, f.Counters)
	}
}

// A flow of which nothing arrives has messages, all of them lost: a result.
func TestEverythingIsLost(t *testing.T) {
	s, _ := ordersOf(t, speech+", {pairs: [{src: n01, dst: n04}], transport: udp, dscp: CS0, workload: {kind: trace, file: x}}", 0, "")
	rec := healthy(s)
	NewMessages(s).Finish(rec)
	if f := rec.Flows[0]; f.Status != store.FlowOK || f.Messages.V != 500 || f.MessagesDelivered != store.Some[int64](0) || f.DelayP50Us.OK || f.RFactor != store.Some(0.0) || f.MOS != store.Some(1.0) {
		t.Errorf("%+v", f)
	}
	if f := rec.Flows[1]; f.Messages.V != 2 || f.MessagesDelivered.V != 0 || f.RFactor.OK {
		t.Errorf("%+v", f)
	}
	// Of a flow that failed nothing is kept.
	rec = NewRecord(s, func(int) string { return "" })
	NewMessages(s).Finish(rec)
	if f := rec.Flows[0]; f.Messages.OK || len(rec.Messages) != 0 {
		t.Errorf("%+v, %d messages", f, len(rec.Messages))
	}
}

// What a node says of messages is not taken for true.
func TestImpossibleMessages(t *testing.T) {
	s, o := ordersOf(t, speech+", {pairs: [{src: n02, dst: n03}], transport: tcp/reno}, {pairs: [{src: n01, dst: n02}], transport: tcp/reno, workload: web}", 0, "")
	good := lossless(t, o[0], vtime.Time(13*vtime.Second), func(int) vtime.Duration { return ms })[7]
	for want, c := range map[string]struct {
		node   int
		change func(*proto.Message)
	}{
		"which there is not":        {3, func(m *proto.Message) { m.Flow = 9 }},
		"of flow -1":                {3, func(m *proto.Message) { m.Flow = -1 }},
		"of flow 1, which has none": {2, func(m *proto.Message) { m.Flow = 1 }},
		"of flow 3, which has none": {0, func(m *proto.Message) { m.Flow = 3 }}, // the requests
		"does not end there":        {2, func(*proto.Message) {}},
		"number -1":                 {3, func(m *proto.Message) { m.Message = -1 }},
		"0 bytes, ready":            {3, func(m *proto.Message) { m.Size = 0 }},
		"ready at 13.0":             {3, func(m *proto.Message) { m.Ready = vtime.Time(13 * vtime.Second) }},
		"delay of 1000s":            {3, func(m *proto.Message) { m.Delay = 1000 * vtime.Second }},
		"delay of -20s":             {3, func(m *proto.Message) { m.Delay = -20 * vtime.Second }},
	} {
		m := good
		c.change(&m)
		all := NewMessages(s)
		if err := all.Add(c.node, &m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		rec := healthy(s)
		if all.Finish(rec); len(rec.Run.InvalidReasons) != 1 || !strings.Contains(rec.Run.InvalidReasons[0], want) || !strings.HasPrefix(rec.Run.InvalidReasons[0], "node n0") {
			t.Errorf("the run's reasons: %q, want %q", rec.Run.InvalidReasons, want)
		}
	}
	for want, reports := range map[string][]proto.Message{
		"message 7 was reported twice":                     {good, good},
		"message 7 was reported with 33 bytes":             {{Flow: 0, Receipt: workload.Receipt{Message: 7, Size: 33, Ready: good.Ready}}},
		"message 7 was reported with 32 bytes, ready at 4": {{Flow: 0, Receipt: workload.Receipt{Message: 7, Size: 32, Ready: vtime.Time(4 * vtime.Second)}}},
		"message 650 was reported, which there is not":     {{Flow: 0, Receipt: workload.Receipt{Message: 650, Size: 32, Ready: good.Ready}}},
		"page 1 was reported, and page 0 was not":          {{Flow: 2, Receipt: workload.Receipt{Message: 1, Size: 32, Ready: good.Ready}}},
	} {
		m := NewMessages(s)
		for _, r := range reports {
			if err := m.Add(s.Flows[r.Flow].Dst, &r); err != nil {
				t.Fatal(err)
			}
		}
		rec := healthy(s)
		m.Finish(rec)
		if f := rec.Flows[reports[0].Flow]; f.Status != store.FlowFailed || f.GoodputBps.OK || !strings.Contains(f.Error, want) || len(rec.Run.InvalidReasons) != 1 || !strings.Contains(rec.Run.InvalidReasons[0], want) {
			t.Errorf("%q: status %s, %q, %v", want, f.Status, f.Error, rec.Run.InvalidReasons)
		}
	}
}

// A page is one message of the responses; pages without requests are no result.
func TestPages(t *testing.T) {
	s, o := ordersOf(t, "{pairs: [{src: n01, dst: n02}], transport: tcp/reno, workload: web}", 0, "")
	m := NewMessages(s)
	page := func(k int, ready, delay vtime.Duration, lost bool) {
		if err := m.Add(1, &proto.Message{Flow: 0, Receipt: workload.Receipt{Message: k, Size: 50_000, Ready: vtime.Time(ready), Delay: delay, Lost: lost}}); err != nil {
			t.Fatal(err)
		}
	}
	page(0, 0, 200*ms, false)
	page(1, 5*vtime.Second, 300*ms, false)
	page(2, 12*vtime.Second, 0, true)
	rec := healthy(s)
	m.Finish(rec)
	if f := rec.Flows[0]; f.Role != "responses" || f.Peer.V != 1 || f.Messages.V != 2 || f.MessagesDelivered.V != 1 || f.DelayP50Us.V != 300_000 || f.RFactor.OK || len(rec.Messages) != 3 {
		t.Errorf("%+v", f)
	}
	if f := rec.Flows[1]; f.Role != "requests" || f.Peer.V != 0 || f.Messages.OK || f.Src != 1 || f.Dst != 0 {
		t.Errorf("%+v", f)
	}
	second := vtime.Time(vtime.Second)
	end := func(flow int, side proto.Side, err *proto.Error) proto.FlowResult {
		return proto.FlowResult{Flow: flow, Side: side, Bytes: 10, Total: 10, MeasuredFrom: 3 * second, MeasuredTo: 13 * second, Error: err}
	}
	broken := &proto.Error{Code: proto.CodeCorrupt, What: "flow 1", Detail: "byte 7"}
	rec = NewRecord(s, func(int) string { return "" })
	CollectFlows(rec, s, []*proto.Results{{Flows: []proto.FlowResult{end(0, proto.Source, nil), end(1, proto.Destination, broken)}},
		{Node: 1, Flows: []proto.FlowResult{end(0, proto.Destination, nil), end(1, proto.Source, nil)}}})
	if f := rec.Flows[0]; f.Status != store.FlowFailed || !strings.Contains(f.Error, "its requests, flow 1, failed") || f.GoodputBps.OK || f.Bytes != 0 {
		t.Errorf("%+v of %+v", f, o[0])
	}
}

type fixedClocks struct {
	excess func(flow int, at vtime.Time) vtime.Duration
	unsure vtime.Duration
}

func (f fixedClocks) Excess(flow int, at vtime.Time) vtime.Duration { return f.excess(flow, at) }
func (f fixedClocks) Uncertainty(int) vtime.Duration                { return f.unsure }

// One-way delays between two clocks: what the clocks' drift put on them is taken
// off, their uncertainty is kept with them, and where that is as large as the
// delays nothing is made of them.
func TestDelaysBetweenTwoClocks(t *testing.T) {
	for _, c := range []struct {
		unsure   vtime.Duration
		withheld bool
	}{{0, false}, {2 * ms, false}, {6 * ms, true}} {
		s, o := ordersOf(t, speech, 0, "")
		m := NewMessages(s)
		// The destination's clock gains 1 ms a second on the source's.
		m.Clocks(fixedClocks{func(_ int, at vtime.Time) vtime.Duration { return vtime.Duration(at) / 1000 }, c.unsure})
		for _, x := range lossless(t, o[0], vtime.Time(13*vtime.Second), func(int) vtime.Duration { return 5 * ms }) {
			x.Delay += vtime.Duration(x.Ready.Add(5*ms)) / 1000
			if err := m.Add(3, &x); err != nil {
				t.Fatal(err)
			}
		}
		rec := healthy(s)
		m.Finish(rec)
		f := rec.Flows[0]
		if f.Counters[CounterDelayUncertainty] != int64(c.unsure/vtime.Microsecond) {
			t.Errorf("±%v: the flow says %v", c.unsure, f.Counters)
		}
		if c.withheld != !f.DelayP50Us.OK || c.withheld != (len(rec.Run.Warnings) == 1) || f.Messages.V == 0 {
			t.Errorf("±%v: median %v, warnings %q", c.unsure, f.DelayP50Us, rec.Run.Warnings)
		}
		for _, x := range rec.Messages {
			if d := x.DelayUs.V - 5000; d < -15 || d > 15 {
				t.Fatalf("message %d: %d µs, want 5000", x.Message, x.DelayUs.V)
			}
		}
	}
}
