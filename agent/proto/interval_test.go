package proto

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func TestMeasuredIntervalOfAFlow(t *testing.T) {
	for _, c := range []struct{ start, stop, from, to vtime.Time }{
		{0, 0, 10, 50},
		{10, 0, 10, 50},
		{20, 0, 20, 50},
		{0, 30, 10, 30},
		{20, 30, 20, 30},
		{20, 90, 20, 50},
		{0, 5, 10, 10},
		{60, 0, 50, 50},
		{60, 70, 50, 50},
	} {
		f := Flow{Start: c.start, Stop: c.stop}
		if from, to := f.Measured(10, 50); from != c.from || to != c.to {
			t.Errorf("a flow from %d to %d is measured over [%d, %d), want [%d, %d)", c.start, c.stop, from, to, c.from, c.to)
		}
	}
}
