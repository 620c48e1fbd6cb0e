package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// NoHooks gives the hooks that a simple congestion control has no use for.
type NoHooks struct{}

// Init does nothing.
func (NoHooks) Init(vtime.Time, *Window) {}

// Acked does nothing.
func (NoHooks) Acked(vtime.Time, *Window, int, vtime.Duration) {}

// State does nothing.
func (NoHooks) State(vtime.Time, *Window, CAState) {}

// Event does nothing.
func (NoHooks) Event(vtime.Time, *Window, CAEvent) {}

// reno is the window of RFC 5681, as Linux's tcp_cong.c: one segment per
// window of data, half the window at a loss.
type reno struct{ NoHooks }

func (*reno) Ssthresh(w *Window) int { return max(w.Cwnd>>1, 2) }
func (*reno) Undo(w *Window) int     { return max(w.Cwnd, w.PriorCwnd) }

func (*reno) Avoid(_ vtime.Time, w *Window, acked int) {
	if !w.Limited() {
		return
	}
	if w.InSlowStart() {
		if acked = w.SlowStart(acked); acked == 0 {
			return
		}
	}
	w.Increase(w.Cwnd, acked)
}
