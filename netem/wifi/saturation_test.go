package wifi

import (
	"github.com/hopbed/hopbed/netem/vtime"
	"math"
	"testing"
)

func saturatedCell(t *testing.T, mac MAC, n int, d vtime.Duration) (*lab, float64) {
	l := newLab(t, 7, cell(t, n+1), mac)
	for i := 1; i <= n; i++ {
		l.saturate(i, 0, BE, 1500, 3)
	}
	l.run(2 * sec)
	l.measure(d)
	return l, l.goodput(-1, 0, 1500, d)
}

func TestSaturation(t *testing.T) {
	for _, std := range []Standard{StandardB, StandardG} {
		for _, qos := range []bool{false, true} {
			mac := DefaultMAC(std).LegacyDCF()
			mac.EIFSRate = mac.BasicRate
			model := bianchi11b
			if std == StandardG {
				model = bianchi11g
			}
			for _, n := range []int{1, 2, 5, 10, 20} {
				m := mac
				m.QoS = qos
				_, got := saturatedCell(t, m, n, 200*sec)
				want := model(n).throughput()
				t.Logf("%v qos=%v n=%d: %.3f, Bianchi %.3f (%+.2f %%)", std, qos, n, got, want, 100*(got/want-1))
				_ = math.Abs
			}
		}
	}
}
