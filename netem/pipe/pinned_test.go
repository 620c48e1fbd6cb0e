package pipe

import (
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestPinned: what arrives when, and what is lost, is the same on every
// architecture and in every later version; results are compared over both.
func TestPinned(t *testing.T) {
	trace := mustTrace(t, "1\n1\n4\n9\n")
	for want, cfg := range map[uint64]Config{
		0x4f591b72752f6165: {Rate: 8 * vtime.MbitPerSecond, Delay: 4 * vtime.Millisecond, Overhead: 38, Queue: Queue{Packets: 20},
			Jitter: Jitter{Distribution: Normal, Spread: vtime.Millisecond, Overtake: true}, Duplicate: 0.05, LossAfterQueue: true,
			Loss: Loss{Good: 0.001, Bad: 0.3, ToBad: 0.01, ToGood: 0.2}, Reorder: Reorder{Share: 0.05, Extra: 3 * vtime.Millisecond},
			Schedule: []Change{{At: vtime.Time(vtime.Second), Rate: ptr(5 * vtime.MbitPerSecond)}, {At: vtime.Time(2 * vtime.Second), Up: ptr(false)}, {At: vtime.Time(2100 * vtime.Millisecond), Up: ptr(true)}}},
		0x7d885aac0777ca0e: {Rate: 9 * vtime.MbitPerSecond, Jitter: Jitter{Distribution: Pareto, Spread: vtime.Millisecond}, Queue: Queue{Bytes: 20_000}},
		0x97c7186495879981: {Trace: trace, TraceOffset: 2 * vtime.Millisecond, Jitter: Jitter{Distribution: Exponential, Spread: vtime.Millisecond}, Queue: Queue{Packets: 10}},
		0xcbb4e4a277c4eefc: {Delay: vtime.Millisecond, Jitter: Jitter{Distribution: Uniform, Spread: vtime.Millisecond, Overtake: true}, Loss: Loss{Good: 0.1}},
	} {
		eng, p, c := build(t, 11, cfg)
		feed(eng, p, 1000, 800*vtime.Microsecond, 4000)
		h := fnv.New64a()
		for i, seq := range c.seq {
			fmt.Fprintf(h, "%d at %d;", seq, c.at[i])
		}
		for i, seq := range c.drops {
			fmt.Fprintf(h, "%d %v;", seq, c.cause[i])
		}
		if got := h.Sum64(); got != want || len(c.seq) < 1000 {
			t.Errorf("%d packets arrived, %d dropped: %#x, want %#x", len(c.seq), len(c.drops), got, want)
		}
	}
}
