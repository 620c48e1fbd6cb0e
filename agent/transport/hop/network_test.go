package hop

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// testConfig has small blocks so that a test sees many.
func testConfig() Config {
	c := DefaultConfig()
	c.BlockSize = 64 * vtime.KiB
	return c
}

// finish runs until the destination has all of the flows, at most for limit,
// and until the sources know. That may take much longer: the last end-to-end
// BACK is unacknowledged, and the timeout after its loss is twice the block's
// delay, doubling.
func (w *world) finish(limit vtime.Duration, flows ...FlowKey) {
	w.t.Helper()
	all := func(end func(k FlowKey) NodeID) func() bool {
		return func() bool {
			for _, k := range flows {
				if !w.nodes[end(k)].app.finished[k] {
					return false
				}
			}
			return true
		}
	}
	dst, src := all(func(k FlowKey) NodeID { return k.Dst }), all(func(k FlowKey) NodeID { return k.Src })
	if !dst() && !w.run(w.now.Add(limit), dst) {
		w.t.Fatalf("not all delivered after %v\n%s", limit, w.summary())
	}
	if patience := 20*limit + 10*vtime.Minute; !src() && !w.run(w.now.Add(patience), src) {
		w.t.Fatalf("delivered, but the source does not know after %v\n%s", patience, w.summary())
	}
}

func TestOneHop(t *testing.T) {
	for _, size := range []vtime.Bytes{1, 1380, 1381, 16 * vtime.KiB, 16*vtime.KiB + 1, 300_000, 2 * vtime.MiB} {
		w := newWorld(t, 1, 2, testConfig(), worldOptions{})
		w.chain(0)
		k := w.open(0, 1, 7, size, FlowOptions{})
		w.finish(20*vtime.Second, k)
		if got := w.nodes[1].n.Delivered(k); got != size {
			t.Errorf("size %v: delivered %v", size, got)
		}
		st, _ := w.nodes[0].n.FlowStats(k)
		if st.Retransmitted != 0 || st.Unacked != 0 {
			t.Errorf("size %v: a clean link saw %+v", size, st)
		}
	}
}

func TestChains(t *testing.T) {
	for _, loss := range []float64{0, 0.2, 0.5, 0.8} {
		for hops := 1; hops <= 7; hops += 2 {
			t.Run(fmt.Sprintf("%d hops, loss %v", hops, loss), func(t *testing.T) {
				w := newWorld(t, uint64(hops), hops+1, testConfig(), worldOptions{jitter: 3 * vtime.Millisecond, dup: 0.05, arqTries: 4})
				w.chain(loss)
				k := w.open(0, hops, 1, 500_000, FlowOptions{})
				w.finish(200*vtime.Second, k)
			})
		}
	}
}
