package main

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// wiredRun is one run of an experiment with wired links, with all that it left.
type wiredRun struct {
	store.Run
	point   string
	nodes   []store.Node
	flows   []store.Flow
	pipes   []store.Pipe
	samples map[int][]store.Sample // of each flow's destination and source
}

// onBothBackEnds carries a file out in virtual time and on namespaces and
// returns the runs of either, in the order of the plan. A busy machine may spoil
// a run on namespaces: it is then not there (valid), and nothing else is asked.
func onBothBackEnds(t *testing.T, text string) (sim, netns []wiredRun) {
	t.Helper()
	dir := liveLab(t)
	write(t, filepath.Join(dir, "f.yaml"), text)
	for _, b := range []string{"sim", "netns"} {
		db := b + ".db"
		status, out, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", b, "--db", db)
		if status != exitOK && (b == "sim" || status != exitNotValid) {
			t.Fatalf("%s: status %d:\n%s%s", b, status, out, stderr)
		}
		runs := wiredRuns(t, filepath.Join(dir, db))
		if b == "sim" {
			sim = runs
		} else {
			netns = runs
		}
	}
	nothingLeft(t, dir)
	if len(sim) == 0 || len(sim) != len(netns) {
		t.Fatalf("%d points in virtual time, %d on namespaces", len(sim), len(netns))
	}
	return sim, netns
}

// wiredRuns reads the last attempt of every run.
func wiredRuns(t *testing.T, db string) []wiredRun {
	t.Helper()
	st := reading(t, db)
	defer st.Close()
	runs, err := st.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var out []wiredRun
	for _, r := range runs {
		if r.Status == store.RunFailed {
			t.Fatalf("run %d failed: %s", r.ID, r.Error)
		}
		w := wiredRun{Run: r, samples: map[int][]store.Sample{}}
		for _, name := range slices.Sorted(maps.Keys(r.Params)) {
			w.point += name + "=" + r.Params[name] + " "
		}
		f := store.Filter{RunIDs: []int64{r.ID}}
		w.nodes, err = st.Nodes(t.Context(), f)
		if err == nil {
			w.flows, err = st.Flows(t.Context(), f)
		}
		if err == nil {
			w.pipes, err = st.Pipes(t.Context(), f)
		}
		if err == nil {
			err = st.Samples(t.Context(), r.ID, func(s *store.Sample) error { w.samples[s.Flow] = append(w.samples[s.Flow], *s); return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(out); n > 0 && out[n-1].point == w.point {
			out = out[:n-1] // an earlier attempt
		}
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b wiredRun) int { return cmp.Compare(a.point, b.point) })
	return out
}

// agree checks that the two back ends carried out the same experiment: the same
// flows over the same links, none of which failed, with goodputs of one order.
// most bounds the goodput of each flow, in bits per second: what the links can
// carry, whatever the host does.
func agree(t *testing.T, sim, netns wiredRun, most float64) {
	t.Helper()
	if sim.point != netns.point || len(sim.flows) != len(netns.flows) || len(sim.pipes) != len(netns.pipes) {
		t.Fatalf("%s%d flows and %d pipes in virtual time; %s%d and %d on namespaces", sim.point, len(sim.flows), len(sim.pipes), netns.point, len(netns.flows), len(netns.pipes))
	}
	for i, s := range sim.flows {
		n := netns.flows[i]
		if s.Transport != n.Transport || s.Src != n.Src || s.Dst != n.Dst || !slices.Equal(s.Path, n.Path) || s.StartS != n.StartS || s.StopS != n.StopS {
			t.Errorf("%sflow %d is %+v in virtual time, %+v on namespaces", sim.point, i, s, n)
		}
		for _, f := range []store.Flow{s, n} {
			if f.Status != store.FlowOK || f.Error != "" || f.GoodputBps.V > most {
				t.Errorf("%s%s, flow %d: %s %s, %.0f b/s (at most %.0f)", sim.point, f.Transport, i, f.Status, f.Error, f.GoodputBps.V, most)
			}
		}
		t.Logf("%s%s flow %d: sim %.2f, netns %.2f Mb/s (valid %v)", sim.point, s.Transport, i, s.GoodputBps.V/1e6, n.GoodputBps.V/1e6, netns.Valid)
		if ratio := s.GoodputBps.V / n.GoodputBps.V; netns.Valid && !(ratio > 1./3 && ratio < 3) {
			t.Errorf("%s%s, flow %d: %.0f b/s in virtual time, %.0f b/s on namespaces", sim.point, s.Transport, i, s.GoodputBps.V, n.GoodputBps.V)
		}
	}
	for i, s := range sim.pipes {
		n := netns.pipes[i]
		if s.Pipe != n.Pipe || s.Src != n.Src || s.Dst != n.Dst || s.Interface != n.Interface || s.Setting != n.Setting || s.RateBps != n.RateBps || s.DelayUs != n.DelayUs {
			t.Errorf("%spipe %+v in virtual time, %+v on namespaces", sim.point, s, n)
		}
		if (s.Delivered.V > 0) != (n.Delivered.V > 0) {
			t.Errorf("%spipe %d from %d to %d delivered %d packets in virtual time, %d on namespaces", sim.point, s.Pipe, s.Src, s.Dst, s.Delivered.V, n.Delivered.V)
		}
	}
}

// Every transport over one wire, between nodes that have no radio.
func TestWireOnNamespaces(t *testing.T) {
	sim, netns := onBothBackEnds(t, `hopbed: 1
name: wire
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], rate: 10mbit, delay: 10ms, loss: 0.1%, queue: {packets: 50}, reverse: {loss: 0%}}]
transports: {hop: {block: 64KiB}}
flows:
  - {pairs: [{src: a, dst: b}], transport: $transport}
matrix: {transport: [hop, tcp/cubic, udp]}
repeat: 1
warmup: 200ms
duration: 800ms
`)
	for i := range sim {
		agree(t, sim[i], netns[i], 10e6)
		if p := netns[i].pipes[0]; p.BusyUs.V <= 0 || p.Loss.V != 0.001 || p.Interface != "eth0" {
			t.Errorf("%spipe: %+v", netns[i].point, p)
		}
		for _, n := range netns[i].nodes {
			if !n.Wired || n.Facts["interfaces"] != "eth0" || n.Facts["bridge"] != "" {
				t.Errorf("%snode %s: wired %v, facts %v", netns[i].point, n.Name, n.Wired, n.Facts)
			}
		}
	}
}

// Two stations, an access point, and a server behind it: up and down, over an
// access point that routes and over one that bridges.
func TestAccessPointOnNamespaces(t *testing.T) {
	sim, netns := onBothBackEnds(t, `hopbed: 1
name: access-point
topology:
  nodes: [{name: server, radio: false}, {name: ap, at: [0m, 0m], bridge: $bridge}, {name: up, at: [10m, 0m]}, {name: down, at: [0m, 10m]}]
  pipes: [{ends: [ap, server], interfaces: [lan, eth0], rate: 20mbit, delay: 5ms, queue: {packets: 100}}]
radio: {standard: 802.11b, rate: 11mbit, path-loss: {kind: disk, range: 250m, sense-range: 550m}}
mac: {queues: {bk: {txop: 8160us, ack: none}}}
transports: {hop: {block: 64KiB}}
flows:
  - {pairs: [{src: up, dst: server}, {src: server, dst: down}], transport: $transport}
matrix: {transport: [hop, tcp/cubic], bridge: [false, true]}
repeat: 1
warmup: 200ms
duration: 800ms
`)
	for i := range sim {
		agree(t, sim[i], netns[i], 8.5e6)
		ap, hops := netns[i].nodes[1], 2
		if bridged := strings.Contains(netns[i].point, "bridge=true"); bridged {
			hops = 1
			// Everybody else is a neighbour of the bridge.
			if ap.Facts["bridge"] != "br0 over wlan0 lan, 3 static entries" || ap.Facts["Ip.ForwDatagrams"] != "" {
				t.Errorf("%sthe access point: %v", netns[i].point, ap.Facts)
			}
		} else if strings.Contains(netns[i].point, "tcp") && ap.Facts["Ip.ForwDatagrams"] == "" {
			t.Errorf("%sthe access point forwarded nothing: %v", netns[i].point, ap.Facts)
		}
		if ap.Facts["interfaces"] != "wlan0 lan" || ap.Wired || !netns[i].nodes[0].Wired {
			t.Errorf("%snodes: %+v", netns[i].point, netns[i].nodes)
		}
		for _, f := range netns[i].flows {
			if f.Hops != hops {
				t.Errorf("%sflow %d has %d hops, want %d", netns[i].point, f.Flow, f.Hops, hops)
			}
		}
	}
}

// A wire that goes down and comes up again, slower: nothing arrives meanwhile,
// and the flow recovers.
func TestWireThatGoesDownOnNamespaces(t *testing.T) {
	sim, netns := onBothBackEnds(t, `hopbed: 1
name: outage
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], rate: 10mbit, delay: 10ms, queue: {packets: 50}, schedule: [{at: 500ms, up: false}, {at: 900ms, up: true, rate: 4mbit}]}]
flows:
  - {pairs: [{src: a, dst: b}], transport: tcp/cubic}
repeat: 1
warmup: 200ms
duration: 1800ms
sample: 20ms
`)
	agree(t, sim[0], netns[0], 10e6)
	for name, r := range map[string]wiredRun{"sim": sim[0], "netns": netns[0]} {
		if !r.Valid {
			continue
		}
		var before, meanwhile, after int64
		for _, s := range r.samples[0] {
			switch {
			case s.Side != store.SideDst:
			case s.TUs < 500_000:
				before = max(before, s.DeliveredBytes.V)
			case s.TUs >= 650_000 && s.TUs < 900_000: // an agent may sample late, never early
				if meanwhile > 0 && s.DeliveredBytes.V != meanwhile {
					t.Errorf("%s: %d B were delivered at %d µs, %d B before: the wire is down", name, s.DeliveredBytes.V, s.TUs, meanwhile)
				}
				meanwhile = s.DeliveredBytes.V
			case s.TUs >= 1_500_000:
				after = max(after, s.DeliveredBytes.V)
			}
		}
		if before == 0 || meanwhile < before || after <= meanwhile {
			t.Errorf("%s: %d B before, %d B while the wire was down, %d B in the end", name, before, meanwhile, after)
		}
	}
}

// A switch with three hosts: a bridge without a radio. One flow runs all the
// time, the other from its start to its stop.
func TestSwitchOnNamespaces(t *testing.T) {
	sim, netns := onBothBackEnds(t, `hopbed: 1
name: switch
topology:
  nodes: [{name: a, radio: false}, {name: sw, radio: false, bridge: true}, {name: b, radio: false}, {name: c, radio: false}]
  pipes:
    - {ends: [a, sw], rate: 20mbit, queue: {packets: 100}}
    - {ends: [sw, b], rate: 10mbit, delay: 5ms, queue: {packets: 100}}
    - {ends: [sw, c], rate: 20mbit, queue: {packets: 100}}
flows:
  - {pairs: [{src: a, dst: b}], transport: tcp/cubic}
  - {pairs: [{src: c, dst: b}], transport: tcp/cubic, start: 500ms, stop: 1s}
repeat: 1
warmup: 300ms
duration: 1200ms
`)
	agree(t, sim[0], netns[0], 10e6)
	for name, r := range map[string]wiredRun{"sim": sim[0], "netns": netns[0]} {
		if f := r.flows[1]; f.StartS != 0.5 || f.StopS != 1 || f.Hops != 1 {
			t.Errorf("%s: flow 1 runs from %g s to %g s over %d hops", name, f.StartS, f.StopS, f.Hops)
		}
		var last int64
		for _, s := range r.samples[1] {
			if s.Side == store.SideDst {
				if s.TUs < 500_000 && s.DeliveredBytes.V > 0 {
					t.Errorf("%s: flow 1 had delivered %d B at %d µs, before its start", name, s.DeliveredBytes.V, s.TUs)
				}
				last = max(last, s.DeliveredBytes.V)
			}
		}
		// What the queues hold at the stop may still arrive, and does not count.
		if f := r.flows[1]; f.Bytes == 0 || last < f.Bytes || last > f.Bytes+200*1448 {
			t.Errorf("%s: flow 1 delivered %d B in all, %d B between its start and its stop", name, last, f.Bytes)
		}
	}
	if n := netns[0].nodes[1]; n.Facts["bridge"] != "br0 over eth0 eth1 eth2, 3 static entries" {
		t.Errorf("the switch: %v", n.Facts)
	}
}

// A window of five segments of the receiver, or of the sender, lets at most five
// into a round trip.
func TestWindowsOnNamespaces(t *testing.T) {
	for _, option := range []string{"receive-window", "cwnd-cap"} {
		sim, netns := onBothBackEnds(t, `hopbed: 1
name: window
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], rate: 20mbit, delay: 20ms, queue: {packets: 200}}]
transports: {tcp: {`+option+`: 5}}
flows:
  - {pairs: [{src: a, dst: b}], transport: $transport}
matrix: {transport: [tcp/reno, tcp/cubic]}
repeat: 1
warmup: 200ms
duration: 1s
`)
		for i := range sim {
			agree(t, sim[i], netns[i], 5*1460*8/0.040)
			for name, r := range map[string]wiredRun{"sim": sim[i], "netns": netns[i]} {
				most := 0.
				for _, s := range r.samples[0] {
					most = max(most, s.CwndPackets.Or(0))
				}
				if option == "cwnd-cap" && most != 5 || option == "receive-window" && most <= 5 {
					t.Errorf("%s, %s: the congestion window grew to %g segments", option, name, most)
				}
			}
		}
	}
}
