package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// reno is NewReno's window (RFC 5681), as Linux's tcp_cong.c.
type reno struct{ NoHooks }

// NoHooks gives the hooks that a simple congestion control has no use for.
type NoHooks struct{}

func (NoHooks) Init(vtime.Time, *Window)                       {}
func (NoHooks) Acked(vtime.Time, *Window, int, vtime.Duration) {}
func (NoHooks) State(vtime.Time, *Window, CAState)             {}
func (NoHooks) Event(vtime.Time, *Window, CAEvent)             {}

func (*reno) Ssthresh(w *Window) int { return max(w.Cwnd>>1, 2) }
func (*reno) Undo(w *Window) int     { return max(w.Cwnd, w.PriorCwnd) }

func (*reno) Avoid(_ vtime.Time, w *Window, acked int) {}
