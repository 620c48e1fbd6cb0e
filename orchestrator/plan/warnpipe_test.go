package plan

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

func warnings(t *testing.T, topology, flows, more string) string {
	t.Helper()
	e, err := spec.Parse("x.yaml", []byte("hopbed: 1\nname: x\nrepeat: 5\nwarmup: 5s\nduration: 20s\ntopology: "+topology+"\nflows: ["+flows+"]\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(Build(e).Warnings(), "\n")
}

const wire = "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], "

func TestShallowQueues(t *testing.T) {
	// 50 Mb/s × (20 + 180) ms are 1.25 MB, 833 packets of 1500 bytes.
	const at = "rate: 50mbit, delay: 20ms, queue: {packets: $q}, reverse: {delay: 180ms, queue: {packets: 300}}}]}"
	const flow = "{pairs: [{src: a, dst: b}], transport: tcp/reno}"
	got := warnings(t, wire+at, flow, "matrix: {q: [20, 100, 250]}\n")
	want := "topology.pipes[0], from a to b: the queue holds 20 packets of 1500 B, 2.4 % of the bandwidth-delay product (50mbit × 200ms = 833 packets): one flow of loss-based TCP will not fill the link (the worst of 2 points)"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := warnings(t, wire+"rate: 50mbit, delay: 100ms, queue: {packets: 10000, bytes: 150kB}}]}", flow, ""); !strings.Contains(got, "from a to b: the queue holds 100 packets") || !strings.Contains(got, "from b to a: the queue holds 100 packets") {
		t.Errorf("a queue in bytes: %q", got)
	}
	for _, deep := range []string{"rate: 50mbit, delay: 100ms, queue: {packets: 209}}]}", "delay: 100ms, reverse: {rate: 1gbit, queue: {packets: 100000}}}]}", "rate: 1mbit, queue: {packets: 1}}]}"} {
		if got := warnings(t, wire+deep, flow, ""); got != "" {
			t.Errorf("%s: %q", deep, got)
		}
	}
}

func TestWhatHappensOutsideOfTheRun(t *testing.T) {
	got := warnings(t, wire+"schedule: [{at: 3s, delay: 1ms}, {at: 25s, delay: 2ms}]}]}", "{pairs: [{src: a, dst: b}], transport: tcp/reno, stop: 26s}", "")
	for _, w := range []string{"from a to b: the change at 25s comes after the end of the run, at 25s", "flows[0].stop: 26s is after the end of the run"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q lacks %q", got, w)
		}
	}
	got = warnings(t, wire+"delay: 1ms}]}", "{pairs: [{src: a, dst: b}], transport: tcp/reno, workload: {kind: sized, size: 1MB}, start: 4s}", "")
	if !strings.Contains(got, "flows[0].start: the transfer begins at 4s, in the warm-up of 5s") {
		t.Errorf("%q", got)
	}
}

// Over wires alone Hop has no queues of the MAC, and its blocks are compared with
// the wire's rate.
func TestHopOverWires(t *testing.T) {
	const flow = "{pairs: [{src: a, dst: b}], transport: hop}"
	if got := warnings(t, wire+"rate: 10mbit, queue: {packets: 50}}]}", flow, ""); got != "" {
		t.Errorf("%q", got)
	}
	if got := warnings(t, wire+"rate: 1mbit, queue: {packets: 50}}]}", flow, ""); !strings.Contains(got, "transports.hop.block: 1MiB takes 8 s at an equal share of 1mbit") {
		t.Errorf("%q", got)
	}
	// What comes back is little: the faster direction counts.
	if got := warnings(t, wire+"rate: 10mbit, queue: {packets: 50}, reverse: {rate: 100kbit}}]}", flow, ""); got != "" {
		t.Errorf("a slow way back: %q", got)
	}
	if got := warnings(t, wire+"rate: 10mbit, delay: 1s, queue: {packets: 2000}}]}", flow, ""); !strings.Contains(got, "topology.pipes[0], between a and b: its round trip of 2s is longer than") {
		t.Errorf("a round trip of 2 s: %q", got)
	}
	row := "{nodes: [{name: a, radio: false}, {name: r, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, r], rate: 10mbit, queue: {packets: 50}}, {ends: [r, b], rate: 10mbit, queue: {packets: 50}}]}"
	if got := warnings(t, row, flow, ""); !strings.Contains(got, "transports.hop.h: 1: a relay between two wires, such as r,") {
		t.Errorf("a relay with h: 1: %q", got)
	}
	for _, more := range []string{"transports: {hop: {h: 2}}\n", "transports: {hop: {backpressure: false}}\n"} {
		if got := warnings(t, row, flow, more); got != "" {
			t.Errorf("%s: %q", more, got)
		}
	}
}

func TestLinkThatIsDownThroughout(t *testing.T) {
	const flow = "{pairs: [{src: a, dst: b}], transport: tcp/reno}"
	for schedule, want := range map[string]string{ // measured from 5s to 25s
		"{at: 5s, up: false}":                       "from a to b: the link is down from 5s on",
		"{at: 1s, up: false}, {at: 3s, delay: 1ms}": "down from 1s on",
		"{at: 1s, up: false}, {at: 4s, up: false}":  "down from 1s on",
		"{at: 1s, up: false}, {at: 25s, up: true}":  "down from 1s on",
		"{at: 6s, up: false}":                       "",
		"{at: 1s, up: false}, {at: 5s, up: true}":   "",
		"{at: 1s, up: false}, {at: 24s, up: true}":  "",
		"{at: 1s, up: true}":                        "",
	} {
		got := warnings(t, wire+"rate: 10mbit, queue: {packets: 50}, schedule: ["+schedule+"]}]}", flow, "")
		if want == "" && strings.Contains(got, "is down") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", schedule, got, want)
		}
	}
}

// Without a rate anywhere a live run measures its host, and a flow that is to
// keep a queue full has none to fill.
func TestWiresWithoutARate(t *testing.T) {
	const none = "topology.pipes: no wire has a rate"
	const tcp, udp = "{pairs: [{src: a, dst: b}], transport: tcp/reno}", "{pairs: [{src: a, dst: b}], transport: udp}"
	for topology, want := range map[string]bool{
		wire + "delay: 1ms}]}": true,
		wire + "delay: 1ms, reverse: {rate: 1mbit, queue: {packets: 9}}}]}":                                             false,
		wire + "queue: {packets: 9}, schedule: [{at: 0s, rate: 1mbit}]}]}":                                              false,
		"{nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [1m, 0m]}, {name: c, radio: false}], pipes: [{ends: [a, c]}]}": false,
	} {
		if got := warnings(t, topology, tcp, ""); strings.Contains(got, none) != want {
			t.Errorf("%s: %q", topology, got)
		}
	}
	for _, c := range []struct{ topology, more, want string }{
		{wire + "delay: 1ms}]}", "", "flows[0]: udp without a rate keeps the queue at a full, but topology.pipes[0], from there to b, has no rate and so no queue: set transports.udp.rate"},
		{wire + "queue: {packets: 9}, schedule: [{at: 1s, rate: 1mbit}]}]}", "", "has no rate"},
		{wire + "rate: 1mbit, queue: {packets: 9}, reverse: {rate: 2mbit}}]}", "", ""},
		{wire + "delay: 1ms}]}", "transports: {udp: {rate: 1mbit}}\n", ""},
	} {
		e, err := spec.Parse("x.yaml", []byte("hopbed: 1\nname: x\nrepeat: 1\nduration: 20s\ntopology: "+c.topology+"\nflows: ["+udp+"]\n"+c.more))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Build(e).Runs[0].Scenario()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s: %v, want %q", c.topology, c.more, err, c.want)
		}
	}
}
