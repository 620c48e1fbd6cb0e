package sim

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// BenchmarkLoad30 is how many seconds of load30 (thirty flows, twenty nodes,
// 802.11b) pass in a second on one core, for each transport, samples included.
func BenchmarkLoad30(b *testing.B) { benchmark(b, "load30") }

// BenchmarkOneHop is the same for one flow over one hop.
func BenchmarkOneHop(b *testing.B) { benchmark(b, "onehop") }

func benchmark(b *testing.B, name string) {
	p := shipped(b, name, "repeat=1", "warmup=5s", "duration=55s")
	for _, r := range p.Runs {
		b.Run(r.Transport(), func(b *testing.B) {
			s := scenario(b, r)
			b.ReportAllocs()
			b.ResetTimer()
			var events uint64
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
			wall := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N)*r.Length().Seconds()/wall, "sim-s/s")
			b.ReportMetric(wall/float64(events)*1e9, "ns/event")
		})
	}
}
