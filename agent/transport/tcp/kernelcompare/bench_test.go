package kernelcompare

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// BenchmarkFlow is one bulk flow over a 5.5 Mb/s pipe; it reports simulated
// seconds per second of one core.
func BenchmarkFlow(b *testing.B) {
	for _, cc := range []string{"reno", "cubic", "bbr"} {
		b.Run(cc, func(b *testing.B) {
			s := scenario{cc: cc, rate: 5500 * vtime.KbitPerSecond, rtt: 20 * vtime.Millisecond, queue: 50, loss: 0.001, sack: true, secs: 100}
			b.ReportAllocs()
			for i := range b.N {
				runModel(b, s, uint64(i), nil)
			}
			b.ReportMetric(s.secs*float64(b.N)/b.Elapsed().Seconds(), "sim-s/s")
		})
	}
}
