//go:build linux

package sock

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

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

// Precise is how long before a moment a precise wait leaves the runtime's timers,
// which fire up to a millisecond late: its poller waits in whole ones.
const Precise = 2 * vtime.Millisecond

// sleepPrecisely waits for a moment of the run as exactly as the kernel can; false
// means that ctx ended first. For the last of it a thread is blocked. The delay of
// a message counts from the moment at which it was ready, and a late source would
// be taken for a slow network.
func sleepPrecisely(ctx context.Context, c transport.Clock, at vtime.Time) bool {
	return SleepUntil(ctx, c, at.Add(-Precise)) && SleepRest(ctx, c, at)
}

// SleepRest is the last part of a precise wait.
func SleepRest(ctx context.Context, c transport.Clock, at vtime.Time) bool {
	for d := at.Sub(c.Now()); d > 0; d = at.Sub(c.Now()) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil) // a signal ends it early
	}
	return ctx.Err() == nil
}

// Wall converts a moment of the run to the time that deadlines are set in. It
// uses the monotonic clock on both sides.
func Wall(c transport.Clock, at vtime.Time) time.Time {
	return time.Now().Add(at.Sub(c.Now()).Std())
}
