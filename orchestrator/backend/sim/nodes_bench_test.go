package sim

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

const grid = `hopbed: 1
name: grid
topology: {generate: {kind: grid, nodes: %d, columns: %d, spacing: 45m}}
radio:
  standard: 802.11b
  rate: 11mbit
  tx-power: 15dBm
  path-loss: {exponent: 3.3, shadowing: 3dB, reference-loss: 40dB}
flows:
  - {count: %d, pairs: random, hops: {2: 50%%, 3: 50%%}, transport: tcp/cubic}
warmup: 3s
duration: 24h
sample: 1h
`

// BenchmarkNodes is what an event and a frame cost in grids of one density: with one
// flow for each twenty nodes, so that traffic grows with the network, and with one
// flow in all, so that nearly all nodes are idle. An operation is 100 ms of virtual
// time; laying the network out is not measured.
//
// What a frame costs follows from how many hear it, and at the edge of a network
// there are fewer of them: compare cpu-ns/hearer, the cost of a frame, its
// acknowledgement and all that follows from it, divided by those who hear it.
func BenchmarkNodes(b *testing.B) {
	for _, c := range []struct{ nodes, columns, flows int }{
		{20, 5, 1}, {100, 10, 5}, {400, 20, 20}, {1000, 40, 50},
		{100, 10, 1}, {400, 20, 1}, {1000, 40, 1},
	} {
		b.Run(fmt.Sprintf("nodes=%d/flows=%d", c.nodes, c.flows), func(b *testing.B) { nodes(b, c.nodes, c.columns, c.flows) })
	}
}

func nodes(b *testing.B, n, columns, flows int) {
	w, err := newWorld(scenario(b, parsed(b, fmt.Sprintf(grid, n, columns, flows)).Runs[0]))
	if err != nil {
		b.Fatal(err)
	}
	w.net.Start()
	now := vtime.Time(3 * vtime.Second) // routes, windows and pools are filled
	w.net.RunTo(now)
	w.resetStats()
	begun, before, events := cpuSeconds(), now, w.eng.Fired()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * vtime.Millisecond)
		w.net.RunTo(now)
	}
	cpu, frames, heard := cpuSeconds()-begun, 0.0, 0.0
	for i := range n {
		hearers := 0.0
		for j := range n {
			if i != j && w.s.Topology.Channel.SNR(i, j) >= wifi.DefaultFloor {
				hearers++
			}
		}
		for _, ac := range w.med.Stats(i).AC {
			frames += float64(ac.Attempts)
			heard += float64(ac.Attempts) * hearers
		}
	}
	if cpu == 0 {
		return
	}
	b.ReportMetric(now.Sub(before).Seconds()/cpu, "sim-s/cpu-s")
	b.ReportMetric(frames/now.Sub(before).Seconds(), "frames/sim-s")
	b.ReportMetric(cpu/frames*1e9, "cpu-ns/frame")
	b.ReportMetric(heard/frames, "hearers/frame")
	b.ReportMetric(cpu/heard*1e9, "cpu-ns/hearer")
	b.ReportMetric(cpu/float64(w.eng.Fired()-events)*1e9, "cpu-ns/event")
}
