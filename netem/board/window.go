package board

import "github.com/hopbed/hopbed/netem/vtime"

// ResyncAfter is how long sent frames may stay unseen by the emulator before
// Window takes them for lost in the device's ring. An emulator that is later
// than this has made the run invalid anyway.
const ResyncAfter = 20 * vtime.Millisecond

// Reader is what a Window needs of a View.
type Reader interface{ State(q int) State }

// Window adds to the board what the board cannot know: the frames that the
// sender has handed to the kernel and the emulator has not read yet. It belongs
// to one goroutine, the only sender into the queue.
type Window struct {
	board Reader
	q     int // View's number of the queue

	sent    uint32 // frames sent, on the scale of the board's arrived counter
	arrived uint32 // the counter when it last moved or was re-synchronised
	since   vtime.Time
	lost    uint64
	started bool
}

// NewWindow returns a window over one queue of a node.
func NewWindow(b Reader, q int) *Window { return &Window{board: b, q: q} }

// Sent notes that n frames for this queue were handed to the kernel.
func (w *Window) Sent(now vtime.Time, n int) {
	w.sync(now, w.board.State(w.q))
	if w.sent == w.arrived {
		w.since = now // the clock runs from the first frame on its way
	}
	w.sent += uint32(n)
}

// Free is the number of further frames that surely find room: the queue's free
// space less what is on its way to it.
func (w *Window) Free(now vtime.Time) int {
	s := w.board.State(w.q)
	w.sync(now, s)
	return max(0, s.Free()-w.outstanding())
}

// InFlight is the number of frames sent that the emulator has not read yet.
func (w *Window) InFlight(now vtime.Time) int {
	w.sync(now, w.board.State(w.q))
	return w.outstanding()
}

// Lost is the number of frames that never reached the emulator.
func (w *Window) Lost() uint64 { return w.lost }

// outstanding is negative arithmetic modulo 2^32; sync has made it ≥ 0.
func (w *Window) outstanding() int { return int(int32(w.sent - w.arrived)) }

func (w *Window) sync(now vtime.Time, s State) {
	if !w.started {
		w.sent, w.arrived, w.since, w.started = s.Arrived, s.Arrived, now, true
		return
	}
	if s.Arrived != w.arrived {
		w.arrived, w.since = s.Arrived, now
	}
	switch n := w.outstanding(); {
	case n < 0: // frames of another sender came through the same queue
		w.sent = w.arrived
	case n > 0 && now.Sub(w.since) > ResyncAfter:
		w.lost += uint64(n)
		w.sent = w.arrived
	}
}
