package hopnet

import (
	"context"
	"os"
	"time"
)

// waiting wakes whoever waits for a change of what the Node's lock protects.
type waiting struct{ ch chan struct{} }

// on returns a channel that the next wake closes. The lock is held.
func (w *waiting) on() <-chan struct{} {
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

// wake ends every wait. The lock is held.
func (w *waiting) wake() {
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}

// await waits for the change, until a deadline (zero: none) and as long as ctx
// lasts. The lock is not held.
func await(ctx context.Context, change <-chan struct{}, deadline time.Time) error {
	if deadline.IsZero() {
		select {
		case <-change:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-change:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return os.ErrDeadlineExceeded
	}
}

// expired reports whether a deadline has passed.
func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }
