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
	for _, deep := range []string{"rate: 50mbit, delay: 100ms, queue: {packets: 209}}]}", "delay: 100ms}]}", "rate: 1mbit, queue: {packets: 1}}]}"} {
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
	if got := warnings(t, wire+"rate: 10mbit, queue: {packets: 50}, reverse: {rate: 1mbit}}]}", flow, ""); !strings.Contains(got, "transports.hop.block: 1MiB takes 8 s at an equal share of 1mbit") {
		t.Errorf("%q", got)
	}
}
