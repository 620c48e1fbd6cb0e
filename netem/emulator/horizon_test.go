package emulator

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The horizon is the minimum of what was expected and has not passed, in
// whatever order it came.
func TestHorizon(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h horizon
	var all []vtime.Time
	now := vtime.Time(0)
	for range 20_000 {
		switch r.IntN(3) {
		case 0:
			now += vtime.Time(r.IntN(40))
		default:
			at := now + vtime.Time(r.IntN(1000))
			h.Expect(at)
			all = append(all, at)
		}
		all = slices.DeleteFunc(all, func(at vtime.Time) bool { return at < now })
		want := vtime.Never
		if len(all) > 0 {
			want = slices.Min(all)
		}
		if got := h.next(now); got != want || len(h.heap) != len(all) {
			t.Fatalf("at %d: next %v of %d kept, want %v of %d", now, got, len(h.heap), want, len(all))
		}
	}
	if h.next(vtime.Never-1) != vtime.Never || len(h.heap) != 0 {
		t.Errorf("in the end %d times are left", len(h.heap))
	}
	if n := testing.AllocsPerRun(100, func() { h.Expect(5); h.next(6) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
