package tcp

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// path builds a bulk transfer over a bottleneck with symmetric delay.
func path(t testing.TB, cc string, rate vtime.BitRate, rtt vtime.Duration, queue int, loss float64, seed uint64) *line {
	cfg := DefaultConfig()
	cfg.CC = cc
	l := newLine(t, cfg, cfg, seed)
	l.dir[0] = wire{rate: rate, delay: rtt / 2, limit: queue, loss: loss}
	l.dir[1] = wire{rate: rate, delay: rtt / 2, limit: queue}
	l.app[0] = bulk
	l.app[1] = sink
	l.open()
	return l
}

func TestBulkReachesTheRate(t *testing.T) {
	for _, cc := range Controls() {
		l := path(t, cc, 20*vtime.MbitPerSecond, 20*vtime.Millisecond, 100, 0, 1)
		l.run(vtime.Time(5 * vtime.Second))
		b0 := l.end[1].Info().BytesReceived
		l.run(vtime.Time(20 * vtime.Second))
		got := float64(l.end[1].Info().BytesReceived-b0) * 8 / 15
		i := l.end[0].Info()
		t.Logf("%-9s goodput %.2f Mb/s cwnd %d srtt %v retrans %d timeouts %d tlp %d drops %d acks %d",
			cc, got/1e6, i.Cwnd, i.SRTT, i.TotalRetrans, i.Timeouts, i.TLPProbes, l.dir[0].dropped, l.end[1].Info().SegsOut)
		if got < 0.93*20e6*1448/1500 {
			t.Errorf("%s: goodput %.2f Mb/s over a clean 20 Mb/s path", cc, got/1e6)
		}
	}
}

func TestBulkWithLoss(t *testing.T) {
	for _, cc := range Controls() {
		for _, p := range []float64{0.001, 0.01, 0.05, 0.2} {
			l := path(t, cc, 20*vtime.MbitPerSecond, 20*vtime.Millisecond, 100, p, 1)
			l.run(vtime.Time(60 * vtime.Second))
			got := float64(l.end[1].Info().BytesReceived) * 8 / 60
			i := l.end[0].Info()
			t.Logf("%-9s p=%.3f goodput %.3f Mb/s retr %.4f timeouts %d tlp %d undo %d srtt %v", cc, p, got/1e6,
				float64(i.BytesRetrans)/float64(i.BytesSent), i.Timeouts, i.TLPProbes, i.Undos, i.SRTT)
		}
	}
}
