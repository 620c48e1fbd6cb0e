package simnet

import (
	"runtime"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
)

// TestNoSteadyAllocation: once the pools are filled, running allocates next to
// nothing, whatever the transports.
func TestNoSteadyAllocation(t *testing.T) {
	l := everything(t, 3, 100*sec)
	l.runTo(30 * sec)
	var before, after runtime.MemStats
	events := l.eng.Fired()
	runtime.ReadMemStats(&before)
	l.runTo(50 * sec)
	l.net.Observe(50*sec, func(int, *proto.Sample) {})
	runtime.ReadMemStats(&after)
	n, events := after.Mallocs-before.Mallocs, l.eng.Fired()-events
	t.Logf("%d allocations, %d B in %d events", n, after.TotalAlloc-before.TotalAlloc, events)
	if n*1000 > events {
		t.Errorf("%d allocations in %d events", n, events)
	}
}
