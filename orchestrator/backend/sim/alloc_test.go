package sim

import (
	"runtime"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestNoSteadyAllocation: once pools and queues have grown, thirty flows over a mesh
// allocate next to nothing: what still comes are new highs of a queue and blocks that
// Hop has never held at once.
func TestNoSteadyAllocation(t *testing.T) {
	for _, r := range shipped(t, "load30", "repeat=1").Runs {
		w, err := newWorld(scenario(t, r))
		if err != nil {
			t.Fatal(err)
		}
		w.net.Start()
		now, add := vtime.Time(0), w.series.add
		run := func(d vtime.Duration) {
			for end := now.Add(d); now < end; {
				now = now.Add(100 * vtime.Millisecond)
				w.net.RunTo(now)
				w.net.Observe(now, add)
			}
		}
		run(60 * vtime.Second)
		const measured = 60
		var before, after runtime.MemStats
		events := w.eng.Fired()
		runtime.ReadMemStats(&before)
		run(measured * vtime.Second)
		runtime.ReadMemStats(&after)
		n, bytes := float64(after.Mallocs-before.Mallocs)/measured, float64(after.TotalAlloc-before.TotalAlloc)/measured
		perEvent := n * measured / float64(w.eng.Fired()-events)
		t.Logf("%s: %.1f allocations of %.0f B per simulated second, %.5f per event", r.Transport(), n, bytes, perEvent)
		if perEvent > 1e-3 {
			t.Errorf("%s: %.5f allocations per event", r.Transport(), perEvent)
		}
	}
}
