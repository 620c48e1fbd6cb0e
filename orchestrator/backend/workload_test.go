package backend

import (
	"net/netip"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// ordersOf gives the orders of a run of flows over a row of four nodes.
func ordersOf(t *testing.T, flows string, run int, more string) (*plan.Scenario, []proto.Flow) {
	t.Helper()
	files := func(string) ([]byte, error) { return []byte("0 10\n0.5 20\n"), nil }
	e, err := spec.ParseFiles("f.yaml", []byte("hopbed: 1\nname: f\ntopology: {generate: {kind: chain, nodes: 4, spacing: 10m}}\nflows: ["+flows+"]\nwarmup: 3s\nduration: 10s\nrepeat: 2\n"+more), files)
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[run].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	o := Orders(s, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) })
	for i, f := range o {
		if err := f.Workload.Validate(); err != nil {
			t.Errorf("flow %d: %v", i, err)
		}
	}
	return s, o
}

// Every workload of the file arrives at the agents as one that they accept, with
// its code point and, over TCP, without Nagle's algorithm.
func TestOrdersOfWorkloads(t *testing.T) {
	pair := func(rest string) string { return "{pairs: [{src: n01, dst: n03}], " + rest + "}, " }
	_, o := ordersOf(t, pair("transport: hop, workload: voip")+pair("transport: tcp/reno, workload: {kind: voip, codec: g711}")+
		pair("transport: udp/txop, workload: {kind: poisson, size: 1kB, interval: 50ms, sizes: pareto}, dscp: CS4")+
		pair("transport: hop-by-hop-tcp/reno, workload: {kind: trace, file: x}, dscp: 10")+pair("transport: tcp/reno, workload: {kind: sized, size: 5kB}")+
		pair("transport: tcp/reno, workload: {kind: web, objects: 7, think: 1s}"), 0, "")
	if len(o) != 7 {
		t.Fatalf("%d orders", len(o))
	}
	seen := map[uint64]bool{}
	for i, want := range []struct {
		dscp    int
		noDelay bool
		start   vtime.Time
	}{{0, false, 0}, {46, true, 0}, {32, false, 0}, {10, true, vtime.Time(3 * vtime.Second)}, {0, false, vtime.Time(3 * vtime.Second)}, {0, true, 0}, {0, true, 0}} {
		f := o[i]
		if f.ID != i || f.Options.DSCP != want.dscp || f.Options.NoDelay != want.noDelay || f.Start != want.start {
			t.Errorf("flow %d: dscp %d, nodelay %v, start %v, want %+v", i, f.Options.DSCP, f.Options.NoDelay, f.Start, want)
		}
		if s := f.Workload.Seed; (s != 0) != f.Workload.HasMessages() || i < 6 && s != 0 && seen[s] {
			t.Errorf("flow %d, %s: seed %d", i, f.Workload.Kind, s)
		}
		seen[f.Workload.Seed] = true
	}
	if w := o[2].Workload; w.Size != 1000 || w.Interval != 50*vtime.Millisecond || w.Sizes != workload.SizesPareto {
		t.Errorf("poisson: %+v", w)
	}
	if w := o[3].Workload; len(w.Transfers) != 2 || w.Transfers[1] != (workload.Transfer{At: 500 * vtime.Millisecond, Size: 20}) {
		t.Errorf("trace: %+v", w)
	}
	// Both halves of an exchange draw the same and know each other.
	r, q := o[5], o[6]
	if r.Workload.Role != workload.Responses || q.Workload.Role != workload.Requests || *r.Peer != 6 || *q.Peer != 5 || r.Workload.Seed != q.Workload.Seed ||
		*r.Workload.Web != *q.Workload.Web || q.Src != r.Dst || q.Transport != r.Transport || o[0].Peer != nil {
		t.Errorf("responses %+v\nrequests %+v", r, q)
	}
	if w := r.Workload.Web; w.Objects != 7 || w.Zipf != 1 || w.MeanSize != 20_000 || w.MaxSize != vtime.MB || w.PageObjects != 2.7 || w.Think != vtime.Second || w.Request != 350 {
		t.Errorf("web: %+v", w)
	}
}

// All points of a repetition have the same messages, and another repetition has
// others.
func TestWorkloadSeeds(t *testing.T) {
	const flows, more = "{count: 2, pairs: random, transport: $t, workload: voip}", "matrix: {t: [hop, tcp/reno]}\n"
	var seed [4][2]uint64
	for run := range seed {
		_, o := ordersOf(t, flows, run, more)
		seed[run] = [2]uint64{o[0].Workload.Seed, o[1].Workload.Seed}
	}
	if seed[0] != seed[1] || seed[2] != seed[3] || seed[0] == seed[2] || seed[0][0] == seed[0][1] {
		t.Errorf("seeds %v", seed)
	}
}

// What external programs are told of the file's options.
func TestOrdersOfPrograms(t *testing.T) {
	pair := func(transport string) string {
		return "{pairs: [{src: n01, dst: n03}], transport: " + transport + "}, "
	}
	_, o := ordersOf(t, pair("iperf3/reno")+pair("iperf2/udp, dscp: EF")+pair("exec"), 0,
		"transports: {iperf: {rate: 2mbit, packet: 500B, window: 64KiB}, exec: {send: [mine, --send], receive: [mine], relay: [relay]}}\n")
	tcp, udp, exec := o[0].Options, o[1].Options, o[2].Options
	if tcp.Rate != 0 || tcp.PacketSize != 0 || tcp.SendBuffer != 64*vtime.KiB || tcp.ReceiveBuffer != tcp.SendBuffer || tcp.DSCP != 0 {
		t.Errorf("iperf3/reno: %+v", tcp)
	}
	if udp.Rate != 2*vtime.MbitPerSecond || udp.PacketSize != 500 || udp.DSCP != 46 {
		t.Errorf("iperf2/udp: %+v", udp)
	}
	if p := exec.Program; p == nil || len(p.Send) != 2 || p.Send[1] != "--send" || p.Receive[0] != "mine" || p.Relay[0] != "relay" || p.Dir != "" {
		t.Errorf("exec: %+v", exec.Program)
	}
}
