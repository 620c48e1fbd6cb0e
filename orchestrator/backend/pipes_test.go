package backend

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

const wiredFile = `hopbed: 1
name: wired
topology:
  nodes:
    - {name: srv, radio: false}
    - {name: ap, at: [0m, 0m], bridge: true}
    - {name: sta, at: [10m, 0m]}
    - {name: gw, radio: false}
  pipes:
    - ends: [ap, srv]
      rate: 10mbit
      delay: 20ms
      jitter: {distribution: normal, spread: 2ms, overtake: true}
      loss: {good: 0.1%, bad: 30%, to-bad: 1%, to-good: 19%, after-queue: true}
      queue: {packets: 100, bytes: 64KiB}
      reorder: {share: 1%, extra: 5ms}
      duplicate: 0.1%
      overhead: 38B
      schedule: [{at: 4s, up: false}, {at: 6s, up: true, rate: 5mbit, delay: 1ms, loss: 2%, queue: {packets: 7}}]
      reverse: {rate: 1mbit, delay: 30ms, jitter: {distribution: constant}, loss: 0%, reorder: {share: 0%, extra: 5ms}, duplicate: 0%, overhead: 0B, schedule: [{at: 4s, up: false}]}
    - {ends: [srv, gw], interfaces: [core, up]}
transports: {tcp: {receive-window: 42, cwnd-cap: 10}, udp: {rate: 1mbit}}
flows:
  - {pairs: [{src: sta, dst: gw}], transport: tcp/cubic, start: 3s, stop: 7s}
  - {pairs: [{src: gw, dst: sta}], transport: udp, start: 5s}
warmup: 1s
duration: 10s
`

func wiredScenario(t *testing.T) *plan.Scenario {
	t.Helper()
	return scenarioOf(t, wiredFile)
}

// TestPipeRows: what was asked for, in columns and words, and the counters.
func TestPipeRows(t *testing.T) {
	s := wiredScenario(t)
	stats := make([][2]pipe.Stats, 2)
	stats[0][0] = pipe.Stats{Entered: 10, Delivered: 8, DeliveredBytes: 12000, LostPackets: 1, Overflows: 2, Duplicates: 3, HeldBack: 4, MaxQueued: 5, BusyTime: 6 * vtime.Millisecond, QueueIntegral: 25}
	rows := PipeRows(s, stats)
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	want := store.Pipe{Pipe: 0, Src: 1, Dst: 0, Interface: "eth0", RateBps: store.Some(int64(10e6)), DelayUs: store.Some(int64(20000)),
		QueuePackets: store.Some(int64(100)), QueueBytes: store.Some(int64(65536)), Loss: rows[0].Loss, Setting: rows[0].Setting,
		Entered: store.Some(int64(10)), Delivered: store.Some(int64(8)), DeliveredBytes: store.Some(int64(12000)), Lost: store.Some(int64(1)),
		DropsQueue: store.Some(int64(2)), Duplicates: store.Some(int64(3)), HeldBack: store.Some(int64(4)), BusyUs: store.Some(int64(6000)),
		QueueMaxPackets: store.Some(int64(5)), QueueMeanPackets: store.Some(2.5)}
	if rows[0] != want {
		t.Errorf("row %+v\nwant %+v", rows[0], want)
	}
	if l := rows[0].Loss.V; l < 0.0159 || l > 0.0160 { // 0.95 × 0.1 % + 0.05 × 30 %
		t.Errorf("loss %v", l)
	}
	text := "jitter normal 2ms, packets overtake; loss 0.1% good, 30% bad, to bad 1%, to good 19%; lost after the queue; 1% held back by 5ms; 0.1% twice; overhead 38B; " +
		"at 4s down; at 6s up, rate 5mbit, delay 1ms, loss 2%, queue 7 packets"
	if rows[0].Setting != text {
		t.Errorf("setting\n%s\nwant\n%s", rows[0].Setting, text)
	}
	if r := rows[1]; r.Src != 0 || r.Dst != 1 || r.RateBps.V != 1e6 || r.DelayUs.V != 30000 || r.Setting != "at 4s down" || r.Loss.V != 0 || !r.Entered.OK {
		t.Errorf("the way back: %+v", r)
	}
	if r := rows[2]; r.Pipe != 1 || r.Interface != "core" || r.RateBps.OK || r.QueuePackets.OK || rows[3].Interface != "up" {
		t.Errorf("the second link: %+v", r)
	}
	if r := PipeRows(s, nil)[0]; r.Entered.OK || r.QueueMeanPackets.OK || r.RateBps != rows[0].RateBps {
		t.Errorf("a row without counters: %+v", r)
	}
}

// TestRecordOfAWiredRun: nodes without a radio, bridges, and the radio links that
// a path uses behind them.
func TestRecordOfAWiredRun(t *testing.T) {
	s := wiredScenario(t)
	rec := NewRecord(s, func(int) string { return "" })
	for i, n := range rec.Nodes {
		wired := i == 0 || i == 3
		if n.Wired != wired || n.Bridge != (i == 1) || n.XM.OK == wired {
			t.Errorf("node %+v", n)
		}
	}
	if f := rec.Flows[0]; f.Hops != 2 || f.StartS != 3 || f.StopS != 7 || rec.Flows[1].StopS != 11 {
		t.Errorf("flows %+v", rec.Flows)
	}
	routed := 0
	for _, l := range rec.Links {
		if l.Src+l.Dst != 3 || l.Src == 0 || l.Dst == 0 {
			t.Errorf("a radio link %d to %d", l.Src, l.Dst)
		}
		if l.Routed {
			routed++
		}
	}
	if len(rec.Links) != 2 || routed != 2 {
		t.Errorf("%d radio links, %d of them on a path; want both", len(rec.Links), routed)
	}
	if len(rec.Pipes) != 4 || rec.Pipes[0].Entered.OK {
		t.Errorf("%+v", rec.Pipes)
	}
	rows := RadioRows(s.Topology, func(int) *wifi.NodeStats { return &wifi.NodeStats{} })
	if len(rows) != 2 || rows[0].Node != 1 || rows[1].Node != 2 {
		t.Errorf("rows of radios: %+v", rows)
	}
}

// TestOrdersOfAWiredRun: start, stop and windows.
func TestOrdersOfAWiredRun(t *testing.T) {
	o := Orders(wiredScenario(t), func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) })
	if o[0].Start != 3e9 || o[0].Stop != 7e9 || o[0].Options.ReceiveWindow != 42 || o[0].Options.CwndCap != 10 {
		t.Errorf("%+v", o[0])
	}
	if o[1].Start != 5e9 || o[1].Stop != 0 || o[1].Options.ReceiveWindow != 0 || o[1].Options.CwndCap != 0 {
		t.Errorf("%+v", o[1])
	}
}

// TestGoodputOverTheFlowsTime: a flow that starts and stops within the measured
// interval is measured over its own part of it, which its destination must have
// kept to.
func TestGoodputOverTheFlowsTime(t *testing.T) {
	const second = vtime.Time(vtime.Second)
	collect := func(from, to vtime.Time) store.Flow {
		s := wiredScenario(t)
		rec := NewRecord(s, func(int) string { return "" })
		results := make([]*proto.Results, 4)
		for i := range results {
			results[i] = &proto.Results{Node: i}
		}
		results[2].Flows = []proto.FlowResult{{Flow: 0, Side: proto.Source, CC: "cubic"}}
		results[3].Flows = []proto.FlowResult{{Flow: 0, Side: proto.Destination, Bytes: 1_000_000, Total: 1_000_000, MeasuredFrom: from, MeasuredTo: to}}
		CollectFlows(rec, s, results)
		return rec.Flows[0]
	}
	if f := collect(3*second, 7*second); f.Status != store.FlowOK || f.GoodputBps.V != 2e6 {
		t.Errorf("1 MB in 4 s: %+v", f)
	}
	if f := collect(second, 11*second); f.Status != store.FlowFailed || !strings.Contains(f.Error, "off the measured interval") {
		t.Errorf("measured over another time than its own: %+v", f)
	}
	if err := measuredOverInterval(second, second, &proto.FlowResult{}); err == nil {
		t.Error("no time at all is taken for a measured interval")
	}
}
