//go:build linux

package sock

import (
	"context"
	"time"

	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// stopSlack is how long before a flow's stop the end of its connection is
// taken for the stop itself: the other end's clock may be a little ahead, and
// its reset travels faster than our timer fires.
const stopSlack = 100 * vtime.Millisecond

// SleepUntil waits for a moment of the run; false means that ctx ended first.
func SleepUntil(ctx context.Context, c transport.Clock, at vtime.Time) bool {
	d := at.Sub(c.Now())
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d.Std())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wall converts a moment of the run to the time that deadlines are set in. It
// uses the monotonic clock on both sides.
func Wall(c transport.Clock, at vtime.Time) time.Time {
	return time.Now().Add(at.Sub(c.Now()).Std())
}
