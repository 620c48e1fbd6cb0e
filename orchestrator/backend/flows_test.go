package backend

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

const chainFile = `hopbed: 1
name: chain
topology:
  nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [10m, 0m]}, {name: c, at: [20m, 0m]}]
  links: [{from: a, to: b, delivery: 100%}, {from: b, to: c, delivery: 90%}]
flows:
  - {pairs: [{src: a, dst: c}], transport: tcp/cubic}
  - {pairs: [{src: c, dst: a}], transport: hop, workload: {kind: sized, size: 1MB}}
warmup: 1s
duration: 10s
`

func scenario(t *testing.T) *plan.Scenario {
	t.Helper()
	return scenarioOf(t, chainFile)
}

// scenarioOf is the first run of an experiment file.
func scenarioOf(t *testing.T, text string) *plan.Scenario {
	t.Helper()
	e, err := spec.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// results is what three healthy agents would report.
func results() []*proto.Results {
	second := vtime.Time(vtime.Second)
	dst := func(flow int, bytes vtime.Bytes) proto.FlowResult {
		return proto.FlowResult{Flow: flow, Side: proto.Destination, Bytes: bytes, Total: bytes, MeasuredFrom: second, MeasuredTo: 11 * second}
	}
	fin := dst(1, 1_000_000)
	fin.Finished, fin.FinishedAt, fin.Blocks = true, 5*second, 4
	return []*proto.Results{
		{Node: 0, Flows: []proto.FlowResult{{Flow: 0, Side: proto.Source, CC: "cubic", Established: second / 10, SetupTime: vtime.Second / 10}, fin}},
		{Node: 1, Flows: []proto.FlowResult{{Flow: 1, Side: proto.Relay, MaxHeld: 77}}},
		{Node: 2, Flows: []proto.FlowResult{dst(0, 1_250_000), {Flow: 1, Side: proto.Source, Blocks: 4}}},
	}
}

func collected(t *testing.T, change func([]*proto.Results)) *store.RunRecord {
	t.Helper()
	s := scenario(t)
	rec := NewRecord(s, func(int) string { return "" })
	r := results()
	change(r)
	CollectFlows(rec, s, r)
	return rec
}

func TestHealthyFlows(t *testing.T) {
	rec := collected(t, func([]*proto.Results) {})
	f := rec.Flows[0]
	if f.Status != store.FlowOK || f.GoodputBps.V != 1e6 || f.CC != "cubic" || f.SetupS.V != 0.1 {
		t.Errorf("TCP flow: %+v; want 1 Mb/s over the 10 s", f)
	}
	f = rec.Flows[1]
	if f.Status != store.FlowOK || f.CompletionS.V != 5 || f.Blocks.V != 4 || f.SetupS.OK || f.Counters["relay_max_held_bytes"] != 77 {
		t.Errorf("Hop flow: %+v", f)
	}
}

// A broken flow never has a goodput; a starved one has.
func TestWhatMakesAFlowFail(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]*proto.Results)
		status store.FlowStatus
		text   string
	}{
		"destination silent": {func(r []*proto.Results) { r[2].Flows = r[2].Flows[1:] }, store.FlowFailed, "destination"},
		"source silent":      {func(r []*proto.Results) { r[0].Flows = r[0].Flows[1:] }, store.FlowFailed, "source"},
		"corrupt data": {func(r []*proto.Results) {
			r[2].Flows[0].Error = &proto.Error{Code: proto.CodeCorrupt, What: "flow 0", Detail: "byte 7"}
		}, store.FlowFailed, "byte 7"},
		"never connected": {func(r []*proto.Results) {
			r[0].Flows[0].Error = &proto.Error{Code: proto.CodeTimeout, What: "flow 0", Detail: "never connected"}
			r[2].Flows[0] = proto.FlowResult{Flow: 0, Side: proto.Destination}
		}, store.FlowTimeout, "never connected"},
		"broken at one end, silent at the other": {func(r []*proto.Results) {
			r[0].Flows[0].Error = &proto.Error{Code: proto.CodeTimeout, What: "flow 0 set-up"}
			r[2].Flows[0].Error = &proto.Error{Code: proto.CodeFlow, What: "flow 0", Detail: "the server ends at once"}
		}, store.FlowFailed, "the server ends at once"},
		"counter read late": {func(r []*proto.Results) { r[2].Flows[0].MeasuredTo += vtime.Time(vtime.Second) }, store.FlowFailed, "off the measured interval"},
	} {
		f := collected(t, c.change).Flows[0]
		if f.Status != c.status || !strings.Contains(f.Error, c.text) {
			t.Errorf("%s: status %s, error %q; want %s with %q", name, f.Status, f.Error, c.status, c.text)
		}
		if f.GoodputBps.OK != (c.status != store.FlowFailed) {
			t.Errorf("%s: goodput %+v with status %s", name, f.GoodputBps, f.Status)
		}
	}
	if f := collected(t, func(r []*proto.Results) { r[0].Flows[1].Finished = false }).Flows[1]; f.Status != store.FlowTimeout {
		t.Errorf("an unfinished transfer has the status %s", f.Status)
	}
	if f := collected(t, func(r []*proto.Results) { r[0].Flows[1].Total-- }).Flows[1]; f.Status != store.FlowTimeout || f.CompletionS.OK {
		t.Errorf("a transfer that ended without its last byte: %+v", f)
	}
	rec := collected(t, func(r []*proto.Results) { r[1].Flows[0].Flow = 9 })
	if len(rec.Run.InvalidReasons) != 1 {
		t.Errorf("a flow that nobody asked for: %v", rec.Run.InvalidReasons)
	}
}

// A count that cannot be is no measurement, and must not be refused by the
// database after the run.
func TestNegativeCountsFailTheFlow(t *testing.T) {
	s := scenario(t)
	rec := NewRecord(s, func(int) string { return "" })
	r := results()
	r[2].Flows[0].Bytes = -1
	CollectFlows(rec, s, r)
	if f := rec.Flows[0]; f.Status != store.FlowFailed || !strings.Contains(f.Error, "-1 bytes") || f.Bytes != 0 || f.GoodputBps.OK {
		t.Errorf("flow: %+v", f)
	}
	if f := rec.Flows[1]; f.Status != store.FlowOK {
		t.Errorf("the other flow: %+v", f)
	}
}

// Nothing of UDP is repeated: there is no count of it, and what was sent is known
// from the source's own.
func TestDatagramsHaveNoRetransmissions(t *testing.T) {
	s := wiredScenario(t)
	rec := NewRecord(s, func(int) string { return "" })
	results := []*proto.Results{nil, nil, {Node: 2, Flows: []proto.FlowResult{{Flow: 1, Side: proto.Destination, MeasuredFrom: 5e9, MeasuredTo: 11e9}}},
		{Node: 3, Flows: []proto.FlowResult{{Flow: 1, Side: proto.Source, Total: 7000, Last: &proto.Sample{Flow: 1, Side: proto.Source, Sent: 7000}}}}}
	CollectFlows(rec, s, results)
	if f := rec.Flows[1]; f.SentBytes.V != 7000 || f.RetransBytes.OK {
		t.Errorf("%+v", f)
	}
	udp := SampleRow(3, results[3].Flows[0].Last)
	tcp := SampleRow(3, &proto.Sample{Side: proto.Source, CwndPackets: 10})
	hop := SampleRow(3, &proto.Sample{Side: proto.Source, DataFrames: 1})
	// A program knows little: what is 0 in its samples is not known to be 0.
	for _, c := range []struct {
		s    proto.Sample
		want func(store.Sample) bool
	}{
		{proto.Sample{Side: proto.Source, Sparse: true, Sent: 9}, func(r store.Sample) bool {
			return r.SentBytes.V == 9 && !r.RetransBytes.OK && !r.CwndPackets.OK && !r.RetransSegments.OK && !r.SRTTUs.OK && r.DatagramsSent == (store.Count{})
		}},
		{proto.Sample{Side: proto.Source, Sparse: true, CwndPackets: 7, SRTT: 3000}, func(r store.Sample) bool {
			return r.CwndPackets.V == 7 && r.RetransSegments.OK && r.SRTTUs.V == 3 && !r.RTTVarUs.OK && !r.InFlightPackets.OK && !r.AckedBytes.OK && !r.LostPackets.OK
		}},
		{proto.Sample{Side: proto.Destination, Sparse: true, Delivered: 9, Datagrams: 4, DatagramsLost: 1}, func(r store.Sample) bool {
			return r.DeliveredBytes.V == 9 && r.Datagrams == store.Counted(4) && r.DatagramsLost == store.Counted(1) && r.Duplicates == (store.Count{}) && !r.SentBytes.OK
		}},
		// A bundle relay has bundles, and nothing else of Hop's.
		{proto.Sample{Side: proto.Relay, BlocksHeld: 2, BlocksDone: 5, Held: 99}, func(r store.Sample) bool {
			return r.BlocksHeld.V == 2 && r.BlocksDone.V == 5 && r.HeldBytes.V == 99 && r.Tokens == (store.Count{}) && r.MicroBlocks == (store.Count{}) && !r.DataFrames.OK && !r.BlocksWithheld.OK
		}},
		{proto.Sample{Side: proto.Relay, ControlFrames: 1}, func(r store.Sample) bool {
			return r.BlocksHeld.OK && r.BlocksDone.OK && r.HeldBytes.OK && r.Tokens == store.Counted(0) && r.MicroBlocks == store.Counted(0) && r.DataFrames.OK
		}},
	} {
		if r := SampleRow(1, &c.s); !c.want(r) {
			t.Errorf("%+v became %+v", c.s, r)
		}
	}
	if !udp.SentBytes.OK || udp.RetransBytes.OK || !tcp.RetransBytes.OK || !hop.RetransBytes.OK {
		t.Errorf("samples:\n%+v\n%+v\n%+v", udp, tcp, hop)
	}
}
