package cut

import (
	"testing"

	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TestBothEndsAgree: the destination knows of each bundle what the source put
// into it.
func TestBothEndsAgree(t *testing.T) {
	const size, end = 1000, 20 * vtime.Time(vtime.Second)
	for _, spec := range []workload.Spec{
		{Kind: workload.Continual},
		{Kind: workload.Sized, Size: 4321},
		{Kind: workload.Sized, Size: 4000},
		{Kind: workload.Trace, Transfers: []workload.Transfer{{Size: 10}, {At: vtime.Second, Size: 2500}, {At: 2 * vtime.Second, Size: 1000}}},
		{Kind: workload.Poisson, Size: 1500, Interval: 100 * vtime.Millisecond, Sizes: workload.SizesExponential, Seed: 3},
	} {
		app, err := workload.NewSource(spec, 0, end)
		if err != nil {
			t.Fatal(err)
		}
		var receipts *workload.Receipts
		if spec.HasMessages() {
			if receipts, err = workload.NewReceipts(spec, 0, end); err != nil {
				t.Fatal(err)
			}
		}
		meter := workload.NewMeter(0, end, spec.Total())
		sink := NewSink(spec, size, meter, receipts)
		var parts []Part
		for now := vtime.Time(0); now < end && len(parts) < 50; now = now.Add(10 * vtime.Millisecond) {
			for n := Next(app, now, size); n > 0 && len(parts) < 50; n = Next(app, now, size) {
				p, ok := sink.Part(now, uint64(len(parts)))
				if !ok || p.At != app.Taken() || p.N != n {
					t.Fatalf("%s: bundle %d holds %+v (%v), want %d bytes at %d", spec.Kind, len(parts), p, ok, n, app.Taken())
				}
				app.Take(now, n)
				parts = append(parts, p)
			}
		}
		if _, ok := sink.Part(0, maxSeq); ok {
			t.Errorf("%s: any number is taken for a bundle", spec.Kind)
		}
		// They come in another order.
		for i := range parts {
			p, ok := sink.Part(end, uint64(len(parts)-1-i))
			if !ok {
				t.Fatalf("%s: bundle %d is unknown", spec.Kind, len(parts)-1-i)
			}
			sink.Add(end-1, p)
		}
		if meter.Total() != app.Taken() {
			t.Errorf("%s: %d bytes counted of %d", spec.Kind, meter.Total(), app.Taken())
		}
		if spec.Ends() && !sink.Whole() {
			t.Errorf("%s: not whole", spec.Kind)
		}
		if _, ok := sink.Part(end, uint64(len(parts))); ok && spec.Ends() {
			t.Errorf("%s: there is a bundle after the last", spec.Kind)
		}
	}
}
