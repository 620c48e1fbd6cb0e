package topology

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

func TestTheSummaryOfWires(t *testing.T) {
	top := build(t, config(t, accessPoint(", bridge: true"), toStation, disk), 0)
	want := `4 nodes, 1 of them without a radio
3 radios, 4 usable links, degree 1.3, mean ETX 1.00
a node senses 2.0 others; of those around a receiver, 0% are hidden from its sender
routes: 10×1, 2×2 (pairs × hops)
wire ap (eth0) – server (eth0): 10mbit, 20ms, queue 50 packets; back: 10mbit, 30ms, queue 50 packets
bridges: ap (wlan0 eth0)
`
	if got := top.Summary(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := build(t, config(t, "{generate: {kind: chain, nodes: 3, spacing: 200m}}", oneFlow, disk), 0).Summary(); strings.Contains(got, "radio") || !strings.HasPrefix(got, "3 nodes, 4 usable links") {
		t.Errorf("without wires:\n%s", got)
	}
}

func TestDescribeDirection(t *testing.T) {
	for keys, want := range map[string]string{
		"": "unlimited, no delay",
		"rate: 5mbit, queue: {bytes: 64KiB}, overhead: 38B":                                                                                     "5mbit, no delay, queue 64KiB, 38B a packet more",
		"delay: 2ms, jitter: {distribution: normal, spread: 1ms, overtake: true}, loss: 1%":                                                     "unlimited, 2ms ± 1ms normal, overtaking, loss 1%",
		"loss: {bad: 50%, to-bad: 1%, to-good: 25%, after-queue: true}, duplicate: 5%":                                                          "unlimited, no delay, loss 1.92% in bursts of 4 packets after the queue, 5% doubled",
		"reorder: {share: 3%, extra: 4ms}, schedule: [{at: 3s, delay: 2ms, loss: 7%}]":                                                          "unlimited, no delay, 3% held back by 4ms, at 3s delay 2ms loss 7%",
		"rate: 1mbit, queue: {packets: 5, bytes: 64KiB}, schedule: [{at: 1s, up: false}, {at: 2s, up: true, rate: 2mbit, queue: {packets: 9}}]": "1mbit, no delay, queue 5 packets or 64KiB, at 1s down, at 2s up 2mbit another queue",
		"trace: {file: t, offset: 3ms}, queue: {packets: 5}":                                                                                    "trace of 12ms, mean 2mbit, from its 3ms on, no delay, queue 5 packets",
	} {
		text := "hopbed: 1\nname: x\nduration: 10s\ntopology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], " + keys + "}]}\nflows: [" + oneFlow + "]\n"
		e, err := spec.ParseFiles("x.yaml", []byte(strings.Replace(text, ", }", "}", 1)), func(string) ([]byte, error) { return []byte("4\n12\n"), nil })
		if err != nil {
			t.Fatal(err)
		}
		if got := DescribeDirection(&build(t, e.Base(), 0).Pipes[0].Config[0]); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", keys, got, want)
		}
	}
}
