package sim

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// BenchmarkLoad30 is how many seconds of load30 (thirty flows, twenty nodes,
// 802.11b) pass in a second on one core, for each transport, samples included.
func BenchmarkLoad30(b *testing.B) { benchmark(b, "load30") }

// BenchmarkOneHop is the same for one flow over one hop.
func BenchmarkOneHop(b *testing.B) { benchmark(b, "onehop") }

// BenchmarkPipe is the same for one flow over one wired link, without a radio.
func BenchmarkPipe(b *testing.B) {
	measure(b, parsed(b, file(twoHosts), "matrix.rate=[10mbit]", "matrix.delay=[20ms]", "duration=59s"))
}

// BenchmarkAccessPoint is the same for three stations, an access point that
// routes, and a server behind a wire.
func BenchmarkAccessPoint(b *testing.B) {
	measure(b, shipped(b, "access-point", "matrix.bridge=[false]", "repeat=1", "warmup=11s", "duration=49s"))
}

func benchmark(b *testing.B, name string) {
	measure(b, shipped(b, name, "repeat=1", "warmup=5s", "duration=55s"))
}

func measure(b *testing.B, p *plan.Plan) {
	for _, r := range p.Runs {
		b.Run(r.Transport(), func(b *testing.B) {
			s := scenario(b, r)
			b.ReportAllocs()
			b.ResetTimer()
			var events uint64
			begun := cpuSeconds()
			for range b.N {
				w, err := newWorld(s)
				if err != nil {
					b.Fatal(err)
				}
				if err := w.run(b.Context(), func(string, vtime.Duration, vtime.Duration) {}); err != nil {
					b.Fatal(err)
				}
				events += w.eng.Fired()
			}
			wall, cpu := b.Elapsed().Seconds(), cpuSeconds()-begun
			b.ReportMetric(float64(b.N)*r.Length().Seconds()/wall, "sim-s/s")
			if cpu > 0 {
				b.ReportMetric(float64(b.N)*r.Length().Seconds()/cpu, "sim-s/cpu-s")
				b.ReportMetric(cpu/float64(events)*1e9, "cpu-ns/event")
			}
		})
	}
}
