package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// file is an experiment with the given blocks, measured from 1 s to 11 s.
func file(blocks string) string {
	return "hopbed: 1\nname: wired\n" + blocks + "warmup: 1s\nduration: 10s\n"
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.Abs(got/want-1) > tol {
		t.Errorf("%s: %g, want %g within %g %%", what, got, want, 100*tol)
	}
}

// seriesOf are the samples of one side of a flow.
func seriesOf(rec *store.RunRecord, flow int, side string) []store.Sample {
	var out []store.Sample
	for _, s := range rec.Samples {
		if s.Flow == flow && s.Side == side {
			out = append(out, s)
		}
	}
	return out
}

// deliveredAt returns what had arrived of a flow, by second.
func deliveredAt(rec *store.RunRecord, flow int) map[int64]int64 {
	out := map[int64]int64{}
	for _, s := range seriesOf(rec, flow, store.SideDst) {
		if s.TUs%1e6 == 0 {
			out[s.TUs/1e6] = s.DeliveredBytes.V
		}
	}
	return out
}

const twoHosts = `topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], rate: $rate, delay: $delay, queue: {packets: 100}}]
flows: [{pairs: [{src: a, dst: b}], transport: $transport}]
matrix: {rate: [10mbit, 2mbit], delay: [20ms, 5ms], transport: [tcp/cubic, tcp/reno, udp]}
`

// TestWiresAgreeWithArithmetic: goodput is the rate less headers; the least
// round-trip time is that of SYN and SYN-ACK, 60 B each, and twice the delay; the
// mean round-trip time under a full queue adds its length. A run without a radio
// has no radio in its record.
func TestWiresAgreeWithArithmetic(t *testing.T) {
	for _, r := range parsed(t, file(twoHosts)).Runs {
		rec := carryOut(t, r)
		d := r.Config().Topology.Pipes[0].Direction
		name, rate, delay := r.Label(), float64(d.Rate), d.Delay.Seconds()
		headers := 52.0
		if r.Transport() == "udp" {
			headers = 28
		}
		length := 1500.0
		if r.Transport() == "udp" {
			length = 1428
		}
		tol := 0.003
		if rate < 10e6 && headers == 52 {
			tol = 0.05 // at an end of the interval a queue of 0.6 s may wait behind a lost segment
		}
		near(t, name, rec.Flows[0].GoodputBps.V, rate*(length-headers)/length, tol)
		if len(rec.NodeStats) != 0 || len(rec.Links) != 0 || len(rec.Pipes) != 2 || !rec.Nodes[0].Wired || rec.Nodes[0].XM.OK {
			t.Errorf("%s: %d rows of radios, %d radio links, %d wired, %+v", name, len(rec.NodeStats), len(rec.Links), len(rec.Pipes), rec.Nodes)
		}
		p := rec.Pipes[0]
		near(t, name+": time that the link was busy", float64(p.BusyUs.V), 10e6, 1e-5)
		near(t, name+": bytes on the link", float64(p.DeliveredBytes.V), rate*10/8, 0.001)
		if p.RateBps.V != int64(rate) || p.DelayUs.V != int64(delay*1e6) || p.QueuePackets.V != 100 || p.QueueBytes.OK || p.Interface != "eth0" || p.Setting != "" || p.Lost.V != 0 {
			t.Errorf("%s: %+v", name, p)
		}
		if r.Transport() == "udp" {
			continue
		}
		src := seriesOf(rec, 0, store.SideSrc)
		least := int64(2e6*delay + 2*60*8/rate*1e6)
		if got := src[len(src)-1].MinRTTUs.V; got != least {
			t.Errorf("%s: least round-trip time %d µs, want %d", name, got, least)
		}
		sum, n := 0.0, 0.0
		for _, s := range src {
			if s.TUs >= 1e6 {
				sum, n = sum+float64(s.SRTTUs.V), n+1
			}
		}
		// A queue of q packets of 1500 B takes 12000 q / rate seconds; one more
		// transmission and the acknowledgement's.
		want := 2*delay + p.QueueMeanPackets.V*12000/rate + 52*8/rate
		near(t, name+": mean round-trip time", sum/n/1e6, want, 0.05)
	}
}

const withServer = `topology:
  nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m], bridge: $bridge}, {name: sta, at: [10m, 0m]}]
  pipes: [{ends: [ap, server], rate: $rate, delay: 5ms, queue: {packets: 60}, reverse: {rate: 50mbit}}]
transports: {hop: {block: 128KiB}}
flows:
  - {pairs: [{src: sta, dst: server}], transport: $transport}
matrix: {bridge: [false, true], rate: [50mbit, 1mbit], transport: [tcp/cubic, hop, hop-by-hop-tcp/cubic, udp]}
`

// TestAccessPoints: an access point that routes is a hop, one that bridges is
// none; the wire or the radio is the bottleneck; the record says which radio link
// the flow takes.
func TestAccessPoints(t *testing.T) {
	for _, r := range parsed(t, file(withServer)).Runs {
		rec := carryOut(t, r)
		f, c := rec.Flows[0], r.Config()
		bridge := c.Topology.Nodes[1].Bridge
		hops := 2
		if bridge {
			hops = 1
		}
		if f.Status != store.FlowOK || f.Hops != hops || len(f.Path) != hops+1 || rec.Nodes[1].Bridge != bridge || rec.Nodes[1].Wired || !rec.Nodes[0].Wired {
			t.Errorf("%s: %+v, %+v", r.Label(), f, rec.Nodes)
		}
		wire := float64(c.Topology.Pipes[0].Rate)
		least, most := 0.65*wire, wire // Hop announces each block on each hop
		if wire > 10e6 {
			if least, most = 4e6, 6.2e6; r.Transport() == "hop" {
				most = 8.5e6
			}
		}
		if f.GoodputBps.V < least || f.GoodputBps.V > most {
			t.Errorf("%s: %.0f b/s, want %.0f to %.0f", r.Label(), f.GoodputBps.V, least, most)
		}
		for _, l := range rec.Links {
			if l.Src == 0 || l.Dst == 0 || l.Routed != (l.Src == 2 && l.Dst == 1) {
				t.Errorf("%s: radio link %+v", r.Label(), l)
			}
		}
		for _, s := range rec.NodeStats {
			if s.Node == 0 {
				t.Errorf("%s: the server has counters of a radio: %+v", r.Label(), s)
			}
		}
		if p := rec.Pipes; len(p) != 2 || p[0].Src != 1 || p[0].Dst != 0 || p[1].Src != 0 || p[0].Entered.V == 0 || (p[1].Entered.V == 0) != (r.Transport() == "udp") || p[1].RateBps.V != 50e6 {
			t.Errorf("%s: %+v", r.Label(), p)
		}
	}
}

const outage = `topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], rate: 10mbit, delay: 5ms, queue: {packets: 50}, schedule: [{at: 3s, up: false}, {at: 5s, up: true, rate: 5mbit}]}]
transports: {hop: {block: 64KiB}}
flows: [{pairs: [{src: a, dst: b}], transport: $transport}]
matrix: {transport: [tcp/cubic, udp, hop]}
`

// TestLinkDownAndUp: nothing arrives while the link is down, and it comes back
// with the rate that the schedule gives it.
func TestLinkDownAndUp(t *testing.T) {
	for _, r := range parsed(t, file(outage)).Runs {
		rec := carryOut(t, r)
		at := deliveredAt(rec, 0)
		if at[3] == at[2] || at[5] != at[4] || at[11] <= at[8] {
			t.Errorf("%s: %v", r.Label(), at)
		}
		after := 8 * float64(at[11]-at[8]) / 3e6
		least := 4.7
		if r.Transport() == "hop" {
			least = 2.5
		}
		if after > 5 || after < least {
			t.Errorf("%s: %.2f Mb/s over the last 3 s of a link of 5", r.Label(), after)
		}
		if s := rec.Pipes[0].Setting; s != "at 3s down; at 5s up, rate 5mbit" {
			t.Errorf("setting %q", s)
		}
	}
}

const traced = `topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], delay: 5ms, queue: {packets: 50}, trace: {file: up.trace, offset: $offset}, reverse: {rate: 10mbit}}]
flows: [{pairs: [{src: a, dst: b}], transport: $transport}]
matrix: {offset: [0s, 500ms], transport: [udp, tcp/reno]}
`

// TestTrace: a capacity of 400 opportunities in the first and 800 in the second
// half of each second, from a file beside the experiment.
func TestTrace(t *testing.T) {
	var b strings.Builder
	for ms := 1; ms <= 1000; ms++ {
		if ms%5 == 0 {
			continue
		}
		fmt.Fprintln(&b, ms)
		if ms > 500 {
			fmt.Fprintln(&b, ms)
		}
	}
	fmt.Fprintln(&b, 1000) // the period
	const lines = 400 + 800 + 1
	e, err := spec.ParseFiles("traced.yaml", []byte(file(traced)), func(string) ([]byte, error) {
		return []byte(b.String()), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range plan.Build(e).Runs {
		rec := carryOut(t, r)
		packet, payload := 1500.0, 1448.0
		if r.Transport() == "udp" {
			packet, payload = 1428, 1400
		}
		want := float64(lines) * 1500 * 8 * payload / packet
		near(t, r.Label(), rec.Flows[0].GoodputBps.V, want, 0.01)
		// The first half second of the measured interval has a third, or two.
		d := seriesOf(rec, 0, store.SideDst)
		half := float64(d[15].DeliveredBytes.V-d[10].DeliveredBytes.V) * 8 / want
		share := 1.0 / 3
		if r.Config().Topology.Pipes[0].Trace.Offset > 0 {
			share = 2.0 / 3
		}
		if r.Transport() == "udp" && math.Abs(half-share) > 0.02 {
			t.Errorf("%s: %.3f of a second's data in its first half, want %.3f", r.Label(), half, share)
		}
		if s := rec.Pipes[0].Setting; !strings.Contains(s, "period 1s") || rec.Pipes[0].RateBps.OK {
			t.Errorf("%s: %+v", r.Label(), rec.Pipes[0])
		}
	}
}

const scheduled = `topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], rate: 10mbit, delay: 5ms, queue: {packets: 50}}]
transports: {hop: {block: 64KiB}, tcp: {receive-window: 10, cwnd-cap: $cap}, udp: {rate: 1mbit}}
flows:
  - {pairs: [{src: a, dst: b}], transport: tcp/cubic, start: 3s, stop: 7s}
  - {pairs: [{src: b, dst: a}], transport: $transport, start: 6s}
  - {pairs: [{src: a, dst: b}], transport: tcp/reno, workload: {kind: sized, size: 100kB}, start: 8s}
matrix: {cap: [8, 100], transport: [hop, udp]}
`

// TestStartStopAndWindows: goodput is over the time in which a flow was meant to
// run; windows hold flows to a window for each round trip.
func TestStartStopAndWindows(t *testing.T) {
	for _, r := range parsed(t, file(scheduled)).Runs {
		if r.Transport() != "mixed" {
			t.Fatal(r.Transport())
		}
		rec := carryOut(t, r)
		f := rec.Flows[0]
		if f.StartS != 3 || f.StopS != 7 || rec.Flows[1].StopS != 11 || rec.Flows[2].StartS != 8 || rec.Flows[2].CompletionS.V <= 8 || rec.Flows[2].Status != store.FlowOK {
			t.Errorf("%s: %+v", r.Label(), rec.Flows)
		}
		near(t, r.Label()+": goodput by bytes", f.GoodputBps.V, 8*float64(f.Bytes)/4, 1e-9)
		near(t, r.Label()+": goodput by bytes", rec.Flows[1].GoodputBps.V, 8*float64(rec.Flows[1].Bytes)/5, 1e-9)
		// 10 ms, a segment's 1.2 ms and an acknowledgement's 42 µs alone; the sender
		// sends in pairs at most.
		window := min(8.0, float64(r.Config().Transports.TCP.CwndCap))
		if r.Config().Transports.TCP.CwndCap > 10 {
			window = 10
		}
		alone := deliveredAt(rec, 0)
		rate := 8 * float64(alone[6]-alone[4]) / 2
		if most := min(window*1460*8/0.01124, 10e6*1448/1500); rate > most*1.001 || rate < 0.85*most {
			t.Errorf("%s: %.0f b/s with a window of %g segments, want 85 to 100 %% of %.0f", r.Label(), rate, window, most)
		}
	}
}
