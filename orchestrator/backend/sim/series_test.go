package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
)

// TestSamplesAreBounded: a run of a day with an ordinary number of flows is
// refused before it begins, with the distance of samples that fits.
func TestSamplesAreBounded(t *testing.T) {
	p := shipped(t, "load30", "duration=24h", "repeat=1")
	err := New().Preflight(t.Context(), p)
	var u *backend.ErrUnsupported
	if !errors.As(err, &u) || u.What != "sample: 100ms" || !strings.Contains(u.Because, "30 flows") || !strings.Contains(u.Do, "2600ms") {
		t.Fatalf("%v", err)
	}
	if err := New().Preflight(t.Context(), shipped(t, "load30", "duration=24h", "repeat=1", "sample=2600ms")); err != nil {
		t.Error(err)
	}
	if err := New().Preflight(t.Context(), shipped(t, "onehop", "duration=24h", "repeat=1")); err != nil {
		t.Errorf("one flow for a day: %v", err)
	}
	for _, every := range []vtime.Duration{vtime.Millisecond, 150 * vtime.Millisecond, vtime.Second} {
		for _, flows := range []int{1, 30, 5000} {
			const length = 192 * vtime.Hour
			err := tooManySamples(flows, length, every)
			if !errors.As(err, &u) {
				continue
			}
			fits, perr := vtime.ParseDuration(strings.Fields(u.Do)[3])
			if perr != nil || tooManySamples(flows, length, fits) != nil || tooManySamples(flows, length, fits/2) == nil {
				t.Errorf("%d flows every %v: %q (%v)", flows, every, u.Do, perr)
			}
		}
	}
	if _, err := newSeries([]proto.Flow{{Path: make([]int, 60)}}, vtime.Time(250*vtime.Hour), vtime.Second); err == nil || !strings.Contains(err.Error(), "relays") {
		t.Errorf("58 relays over 250 hours: %v", err)
	}
}
