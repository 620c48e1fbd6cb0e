//go:build unix

package wifi

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// BenchmarkSaturatedCell: frames per second of wall time in one cell.
func BenchmarkSaturatedCell(b *testing.B) {
	for _, n := range []int{2, 10, 20} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			l := newLab(b, 1, cell(b, n+1), DefaultMAC(StandardB).LegacyDCF())
			for i := 1; i <= n; i++ {
				l.saturate(i, 0, BE, 1500, 3)
			}
			l.run(sec)
			benchRun(b, l)
		})
	}
}

// BenchmarkField: nodes at constant density, every tenth sends to a neighbour.
func BenchmarkField(b *testing.B) {
	for _, n := range []int{20, 100, 400, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) { benchRun(b, fieldLab(b, n, n/10)) })
	}
	// The cost of an event must not grow with idle nodes.
	for _, n := range []int{400, 1000} {
		b.Run(fmt.Sprintf("two-senders-of=%d", n), func(b *testing.B) { benchRun(b, fieldLab(b, n, 2)) })
	}
}

// fieldLab places n nodes at one per 2400 m² (about 8 neighbours in decoding range,
// 90 above the floor) and lets the first senders of them saturate their best
// neighbour.
func fieldLab(b *testing.B, n, senders int) *lab {
	s := des.NewStream(5, "field")
	side := 1.0
	for side*side < float64(n)*2400 {
		side++
	}
	pos := make([]Position, n)
	for i := range pos {
		pos[i] = Position{vtime.Metres(s.Float64() * side), vtime.Metres(s.Float64() * side)}
	}
	r := DefaultRadio()
	r.Shadowing = 6
	mac := DefaultMAC(StandardB)
	ch, err := NewChannel(5, r, mac, pos)
	if err != nil {
		b.Fatal(err)
	}
	l := newLab(b, 1, ch, mac)
	for i := 0; i < senders; i++ {
		best := (i + 1) % n
		for j := range pos {
			if j != i && ch.SNR(i, j) > ch.SNR(i, best) {
				best = j
			}
		}
		l.saturate(i, best, BE, 1500, 3)
	}
	l.run(100 * ms)
	return l
}

func benchRun(b *testing.B, l *lab) {
	l.m.ResetStats()
	before := l.eng.Fired()
	start := l.eng.Now()
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuSeconds()
	for i := 0; i < b.N; i++ {
		l.eng.Step()
	}
	cpu = cpuSeconds() - cpu
	b.StopTimer()
	var frames uint64
	for i := 0; i < l.m.ch.N(); i++ {
		for ac := range l.m.Stats(i).AC {
			frames += l.m.Stats(i).AC[ac].Attempts
		}
	}
	// Per second of processor time, so that a busy machine does not falsify it.
	b.ReportMetric(float64(l.eng.Fired()-before)/cpu/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(frames)/cpu/1e3, "kframes/cpu-s")
	b.ReportMetric(l.eng.Now().Sub(start).Seconds()/cpu, "x-realtime")
}

// cpuSeconds is the user time of this process.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6
}
