package plan

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

const narrow = wire + "rate: 1mbit, queue: {packets: 50}, reverse: {rate: 100kbit}}]}"

// What flows offer is compared with what each link carries; flows that take what
// they get offer nothing.
func TestOfferedLoad(t *testing.T) {
	const there, back = "{pairs: [{src: a, dst: b}], ", "{pairs: [{src: b, dst: a}], "
	for _, c := range []struct{ flows, more, want string }{
		{there + "transport: tcp/reno, workload: {kind: poisson, size: 10kB, interval: 50ms}}", "",
			"topology.pipes[0], from a to b: the flows offer 1.6 Mb/s, 160 % of its rate of 1mbit: its queue fills"},
		{there + "transport: tcp/reno, workload: {kind: poisson, size: 10kB, interval: 100ms}}", "", ""},
		{there + "transport: tcp/reno, workload: {kind: poisson, size: 10kB, interval: 100ms}}, " + there + "transport: udp, workload: voip}", "", ""},
		{there + "transport: tcp/reno, workload: {kind: poisson, size: 10kB, interval: 100ms}}, " + there + "transport: udp, workload: {kind: voip, codec: g711}}, " +
			there + "transport: udp, dscp: 1, workload: {kind: poisson, size: 1kB, interval: 50ms}}", "", "the flows offer 1.03 Mb/s, 103 %"},
		{back + "transport: udp, workload: {kind: voip, codec: g711}}, " + back + "transport: udp, workload: {kind: voip, codec: g711}}", "", "from b to a: the flows offer 138 kb/s, 138 % of its rate of 100kbit"},
		{there + "transport: udp}", "transports: {udp: {rate: 2mbit}}\n", "the flows offer 2 Mb/s, 200 %"},
		{there + "transport: tcp/reno}", "", ""},
		// The requests of a page are not its load.
		{back + "transport: tcp/reno, workload: {kind: web, think: 1s, request: 64KiB, object-size: 100B, max-size: 100kB, page-objects: 2}}", "", ""},
		{there + "transport: udp, workload: {kind: poisson, size: 1kB, interval: $i}}", "matrix: {i: [100us, 1ms, 100ms]}\n", "the flows offer 80 Mb/s, 8e+03 % of its rate of 1mbit: its queue fills, and what is measured are losses and full queues (the worst of 2 points)"},
	} {
		got := warnings(t, narrow, c.flows, c.more)
		if offer := strings.Contains(got, "offer"); offer != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s:\n%q\nwant %q", c.flows, c.more, got, c.want)
		}
	}
	// The air carries a packet once for each hop.
	const mesh = "{generate: {kind: chain, nodes: 4, spacing: 20m}}"
	const flow = "{pairs: [{src: n01, dst: n04}], transport: hop, workload: {kind: poisson, size: 50kB, interval: 100ms}}"
	if got := warnings(t, mesh, flow, "radio: {rate: 11mbit, path-loss: {kind: disk, range: 25m}}\n"); !strings.Contains(got, "flows: they offer 12 Mb/s over all hops, 109 % of radio.rate, 11mbit") {
		t.Errorf("over three hops: %q", got)
	}
	if got := warnings(t, mesh, strings.Replace(flow, "n04", "n03", 1), "radio: {rate: 11mbit, path-loss: {kind: disk, range: 25m}}\n"); strings.Contains(got, "offer") {
		t.Errorf("over two hops: %q", got)
	}
}

func TestWorkloadWarnings(t *testing.T) {
	const there = "{pairs: [{src: a, dst: b}], "
	wide := wire + "rate: 100mbit, queue: {packets: 5000}}]}"
	for _, c := range []struct{ flows, more, want string }{
		{there + "transport: hop, workload: {kind: poisson, size: 1kB, interval: 1s}}", "", "flows[0]: about 20 messages a flow in the measured interval"},
		{there + "transport: hop, workload: {kind: poisson, size: 1kB, interval: 200ms}}", "", ""},
		{there + "transport: udp, workload: voip}", "transports: {udp: {rate: 1mbit}}\n", "transports.udp.rate: says nothing of flows[0], whose workload voip says itself when it sends"},
		{there + "transport: hop, workload: voip}", "", ""},
		{there + "transport: udp/no-arq+txop}", "transports: {udp: {rate: 1mbit}}\n", "flows[0].transport: udp/no-arq+txop is as without no-arq and txop: no node has a radio"},
	} {
		got := warnings(t, wide, c.flows, c.more)
		if c.want == "" && strings.Contains(got, "messages") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s:\n%q\nwant %q", c.flows, c.more, got, c.want)
		}
	}
	const mesh, radio = "{generate: {kind: chain, nodes: 3, spacing: 20m}}", "radio: {path-loss: {kind: disk, range: 25m}}\nmac: {queues: {bk: {ack: none, txop: 8160us}}}\n"
	const both = "{pairs: [{src: n01, dst: n03}], transport: udp/no-arq}, {pairs: [{src: n01, dst: n03}], transport: tcp/reno, dscp: $d}"
	if got := warnings(t, mesh, both, radio+"matrix: {d: [CS0, CS4]}\n"); strings.Count(got, "changes the queue") != 1 ||
		!strings.Contains(got, "flows[0].transport: udp/no-arq changes the queue mac.queues.be, in which tcp/reno of flows[1] travels too: what it says (no-arq) holds for both") {
		t.Errorf("%q", got)
	}
	if got := warnings(t, mesh, "{pairs: [{src: n01, dst: n03}], transport: hop/arq}, {pairs: [{src: n01, dst: n03}], transport: tcp/reno}", radio); strings.Contains(got, "changes the queue") {
		t.Errorf("Hop's data is in bk: %q", got)
	}
	if got := warnings(t, mesh, "{pairs: [{src: n01, dst: n03}], transport: udp/no-arq, workload: voip}, {pairs: [{src: n01, dst: n03}], transport: hop}", radio); !strings.Contains(got, "flows[0].transport: udp/no-arq changes the queue mac.queues.vo, in which the control frames and micro-blocks of hop of flows[1] travel") {
		t.Errorf("Hop's control frames are in vo: %q", got)
	}
}

// Blocks and bundles that take a large part of the run are told of, where the
// workload fills them.
func TestSizesBesideTheRun(t *testing.T) {
	wire := wire + "rate: 1mbit, queue: {packets: 100}}]}"
	for transport, want := range map[string]string{
		"hop":         "transports.hop.block: 1MiB takes 8 s at an equal share of 1mbit, a large part of the measured 20s",
		"bundle/reno": "transports.bundle.bundle: 1MiB takes 8 s a hop at an equal share of 1mbit, a large part of the measured 20s, and only whole bundles are counted",
	} {
		flow := "{pairs: [{src: a, dst: b}], transport: " + transport
		if got := warnings(t, wire, flow+"}", ""); !strings.Contains(got, want) {
			t.Errorf("%s: %q", transport, got)
		}
		if got := warnings(t, wire, flow+", workload: voip}", ""); strings.Contains(got, "large part") {
			t.Errorf("%s, a call: %q", transport, got)
		}
		if got := warnings(t, wire, flow+"}", "transports: {hop: {block: 64KiB}, bundle: {bundle: 64KiB}}\n"); strings.Contains(got, "large part") {
			t.Errorf("%s, small: %q", transport, got)
		}
	}
}

// The messages of a trace that are never sent are told of.
func TestTraceBeyondTheEnd(t *testing.T) {
	read := func(string) ([]byte, error) {
		return []byte(strings.Repeat("0.1 5\n", 200) + "19 5\n20 5\n21 5\n"), nil
	}
	e, err := spec.ParseFiles("x.yaml", []byte("hopbed: 1\nname: x\nrepeat: 5\nwarmup: 5s\nduration: 20s\ntopology: "+narrow+"\nflows: [{pairs: [{src: a, dst: b}], transport: udp, workload: {kind: trace, file: m}}]\n"), read)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Build(e).Warnings(), "\n")
	if !strings.Contains(got, "flows[0].workload.file: 2 of the 203 messages come after the flow's end, and are not sent") || strings.Contains(got, "about") {
		t.Errorf("%q", got)
	}
}

// Windows matter to flows that send what they can: of a telephone call, or of the
// requests for pages, they are no bound, and neither takes a share of a link.
func TestWindowsOfLittleFlows(t *testing.T) {
	const long = "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], rate: 100mbit, delay: 100ms, queue: {packets: 5000}}]}"
	const small = "transports: {tcp: {receive-window: 4}}\n"
	flow := func(w string) string { return "{pairs: [{src: a, dst: b}], transport: tcp/reno, workload: " + w + "}" }
	for _, w := range []string{"voip", "{kind: web, think: 100ms}", "{kind: poisson, size: 1kB, interval: 10ms}"} {
		if got := warnings(t, long, flow(w), small); got != "" {
			t.Errorf("%s: %q", w, got)
		}
	}
	if got := warnings(t, wire+"delay: 1ms}]}", flow("voip"), ""); got != "" {
		t.Errorf("a call over wires without a rate: %q", got)
	}
	got := warnings(t, long, flow("continual")+", "+flow("{kind: web, think: 100ms}"), small)
	if !strings.Contains(got, "receive-window") || strings.Contains(got, "/ 2 flows") || strings.Contains(got, "Inf") {
		t.Errorf("%q", got)
	}
}
