package simnet

import (
	"runtime"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
)

// TestNoSteadyAllocation: once the pools are filled, running allocates next to
// nothing, whatever the transports.
func TestNoSteadyAllocation(t *testing.T) {
	t.Run("bulk", func(t *testing.T) { steady(t, everything(t, 3, 100*sec)) })
	t.Run("messages", func(t *testing.T) { steady(t, talking(t, 3, 100*sec)) })
}

func steady(t *testing.T, l *lab) {
	keep := func(int, *proto.Message) {}
	l.runTo(30 * sec)
	l.net.Messages(keep)
	var before, after runtime.MemStats
	events := l.eng.Fired()
	runtime.ReadMemStats(&before)
	l.runTo(50 * sec)
	l.net.Observe(50*sec, func(int, *proto.Sample) {})
	l.net.Messages(keep)
	runtime.ReadMemStats(&after)
	n, events := after.Mallocs-before.Mallocs, l.eng.Fired()-events
	t.Logf("%d allocations, %d B in %d events", n, after.TotalAlloc-before.TotalAlloc, events)
	if n*1000 > events {
		t.Errorf("%d allocations in %d events", n, events)
	}
}
