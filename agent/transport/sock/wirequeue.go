//go:build linux

package sock

import (
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// wireQueue is what Hop's driver knows of a pipe's queue on the board. The
// node's other transports share it, and their frames must not be taken for
// Hop's: each frame of Hop's is remembered by its place in the order of all
// frames that the queue took, and has left when as many have.
type wireQueue struct {
	board  transport.Board
	q      int
	window *board.Window
	places []uint32 // of Hop's frames in the queue or on their way to it, oldest first
	lost   uint64
	short  bool // Hop has asked for room in a queue that is nearly full
}

func newWireQueue(b transport.Board, q int) *wireQueue {
	return &wireQueue{board: b, q: q, window: board.NewWindow(b, q)}
}

// gone is the number of frames that the queue took and that have left it.
func gone(s board.State) uint32 { return s.Left - s.Overflow }

func (w *wireQueue) free(now vtime.Time) int {
	s := w.board.State(w.q)
	if s.Limit >= board.Unlimited {
		return hop.Unlimited
	}
	free := w.window.Free(now)
	w.short = free < max(1, s.Limit/4)
	return free
}

func (w *wireQueue) sending(now vtime.Time) {
	w.window.Sent(now, 1)
	s := w.board.State(w.q)
	w.places = append(w.places, s.Arrived-s.Overflow+uint32(w.window.InFlight(now)))
}

func (w *wireQueue) unsent(now vtime.Time) {
	w.window.Sent(now, -1)
	w.places = w.places[:max(0, len(w.places)-1)]
}

// departed returns how many of Hop's frames have left the queue since the last
// call, or never came to it.
func (w *wireQueue) departed(now vtime.Time) int {
	before := len(w.places)
	if before == 0 {
		return 0
	}
	flying, s := w.window.InFlight(now), w.board.State(w.q)
	lost := w.window.Lost()
	k := 0
	switch {
	case s.Queued == 0 && flying == 0:
		k = before // refused ones among them
	default:
		for k < before && int32(gone(s)-w.places[k]) >= 0 {
			k++
		}
	}
	w.places = append(w.places[:0], w.places[k:]...)
	// The newest are those that were lost on their way.
	w.places = w.places[:len(w.places)-min(len(w.places), int(lost-w.lost))]
	w.lost = lost
	return before - len(w.places)
}

// lookShared is the time between two looks at a queue that others fill as well:
// its length then says nothing about when Hop's frames leave.
const lookShared = 2 * vtime.Millisecond

// watch asks to be woken when half of Hop's frames have left, or the last one.
func (w *wireQueue) watch(now vtime.Time) vtime.Duration {
	own, short := len(w.places), w.short
	w.short = false
	s := w.board.State(w.q)
	flying := w.window.InFlight(now)
	switch {
	case s.Queued+flying > own && (own > 0 || short):
		return lookShared
	case own == 0:
		return 0
	}
	if flying == 0 && !w.board.Watch(w.q, own/2) {
		return 0
	}
	return lookSoonest
}
