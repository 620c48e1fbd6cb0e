//go:build linux

package sock

import (
	"os"
	"testing"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// fakeBoard has one queue, moved by hand.
type fakeBoard struct {
	s   board.State
	low int // of the last wish; −1: none
}

func (b *fakeBoard) State(int) board.State { return b.s }
func (b *fakeBoard) Event() *os.File       { return nil }
func (b *fakeBoard) Watch(_, low int) bool {
	if b.s.Queued <= low {
		return true
	}
	b.low = low
	return false
}

func (b *fakeBoard) arrive(k int) {
	for range k {
		b.s.Arrived++
		if b.s.Queued == b.s.Limit {
			b.s.Overflow++
			b.s.Left++
			continue
		}
		b.s.Queued++
	}
}

func (b *fakeBoard) leave(k int) {
	b.s.Queued -= k
	b.s.Left += uint32(k)
}

// Others' frames in a pipe's queue are not taken for Hop's: a frame has left
// when those before it and itself have.
func TestSharedQueue(t *testing.T) {
	const now = vtime.Time(vtime.Second)
	b := &fakeBoard{s: board.State{Limit: 10}}
	b.s.Arrived, b.s.Left = ^uint32(0)-2, ^uint32(0)-2 // the counters wrap
	w := newWireQueue(b, 4)
	send := func(k int) {
		for range k {
			w.sending(now)
			b.arrive(1)
		}
	}
	want := func(what string, k int) {
		t.Helper()
		if got := w.departed(now); got != k {
			t.Fatalf("%s: %d of Hop's frames have left, want %d", what, got, k)
		}
	}
	if w.free(now) != 10 {
		t.Errorf("free %d of 10", w.free(now))
	}
	b.arrive(4)
	send(2)
	b.arrive(2)
	send(1) // queue: 4 strangers, 2, 2 strangers, 1
	b.leave(4)
	want("four strangers left", 0)
	b.leave(1)
	want("and one of ours", 1)
	b.arrive(8) // 3 more than there is room for
	if w.free(now) != 0 {
		t.Errorf("free %d of a full queue", w.free(now))
	}
	b.leave(3)
	want("ours and two strangers", 1)
	b.leave(1)
	want("the last of ours", 1)
	b.leave(b.s.Queued)
	want("strangers only", 0)

	b.arrive(10)
	send(2) // refused
	b.leave(9)
	want("ours were refused; one stranger is left", 0)
	b.leave(1)
	want("an empty queue holds none of ours", 2)

	w.sending(now)
	w.unsent(now)
	if len(w.places) != 0 {
		t.Error("what the kernel did not take stands in the queue")
	}
	w.sending(now) // and is lost before the emulator sees it
	late := now.Add(2 * board.ResyncAfter)
	if k := w.departed(late); k != 1 || w.window.Lost() != 1 {
		t.Errorf("%d frames have left, %d were lost on their way, want one of each", k, w.window.Lost())
	}

	b.s = board.State{Limit: board.Unlimited}
	if free := newWireQueue(b, 4).free(now); free != hop.Unlimited {
		t.Errorf("free %d of a queue without limit", free)
	}
}

// The driver is woken when half of Hop's frames have left; where others keep the
// queue filled, it looks by itself.
func TestWatchingAWire(t *testing.T) {
	const now = vtime.Time(vtime.Second)
	b := &fakeBoard{s: board.State{Limit: 100}, low: -1}
	w := newWireQueue(b, 4)
	if d := w.watch(now); d != 0 || b.low != -1 {
		t.Errorf("nothing to wait for: %v, %d", d, b.low)
	}
	for range 8 {
		w.sending(now)
	}
	if d := w.watch(now); d != lookSoonest || b.low != -1 {
		t.Errorf("frames on their way: %v, %d", d, b.low)
	}
	b.arrive(8)
	if d := w.watch(now); d != 0 || b.low != 4 {
		t.Errorf("eight frames queued: look again after %v, wake-up at %d", d, b.low)
	}
	b.arrive(1)
	if d := w.watch(now); d != lookShared {
		t.Errorf("a stranger behind them: look again after %v", d)
	}
	b.leave(9)
	w.departed(now)
	if d := w.watch(now); d != 0 {
		t.Errorf("all have left: %v", d)
	}
	b.arrive(100)
	if d := w.watch(now); d != 0 {
		t.Errorf("strangers only, and Hop has nothing: look again after %v", d)
	}
	if w.free(now) != 0 {
		t.Error("a full queue has room")
	}
	if d := w.watch(now); d != lookShared {
		t.Errorf("strangers only, and Hop waits for room: look again after %v", d)
	}
}

// A radio's queues and those of wires are told apart, and what one reports does
// not concern the other.
func TestPortsOfTheBoard(t *testing.T) {
	queues := map[int]*fakeBoard{}
	for q := range 6 {
		queues[q] = &fakeBoard{s: board.State{Limit: 20 + q}}
	}
	r := newBoardRadio(manyBoards(queues), ports{1: 0, 2: 2, 3: 1}, 12)
	for to, want := range map[hop.NodeID]hop.Port{1: 0, 2: 2, 3: 1, 9: 0} {
		if got := r.Port(to); got != want {
			t.Errorf("port to %d: %d, want %d", to, got, want)
		}
	}
	for _, c := range []struct {
		port  hop.Port
		class hop.Class
		free  int
	}{{0, hop.Data, 20}, {0, hop.Control, 23}, {1, hop.Data, 24}, {1, hop.Control, 24}, {2, hop.Data, 25}} {
		if got := r.Free(c.port, c.class); got != c.free {
			t.Errorf("port %d, %v: %d free, want %d", c.port, c.class, got, c.free)
		}
	}
	r.sending(2, hop.Control)
	queues[5].arrive(1)
	queues[5].leave(1)
	queues[0].arrive(3)
	queues[0].leave(3)
	got := map[hop.Port]int{}
	r.departed(func(p hop.Port, _ hop.Class, k int) { got[p] += k })
	if got[0] != 3 || got[1] != 0 || got[2] != 1 {
		t.Errorf("departed: %v", got)
	}
}

// manyBoards is a board of several queues.
type manyBoards map[int]*fakeBoard

func (m manyBoards) State(q int) board.State { return m[q].s }
func (m manyBoards) Event() *os.File         { return nil }
func (m manyBoards) Watch(q, low int) bool   { return m[q].Watch(q, low) }

// The pause of a saturating source follows the queue's length and rate.
func TestDrainPace(t *testing.T) {
	for _, c := range []struct {
		limit    int
		interval vtime.Duration // between two departures
		want     vtime.Duration
	}{
		{30, 1180 * vtime.Microsecond, pauseMost},              // 10 Mb/s
		{100, 20 * vtime.Microsecond, vtime.Millisecond},       // half of it is 50 frames
		{10, 100 * vtime.Microsecond, 500 * vtime.Microsecond}, //
		{2, 10 * vtime.Microsecond, pauseLeast},                // faster than a process wakes
		{board.Unlimited, 10 * vtime.Microsecond, runPause},    // nothing to fill
		{100, vtime.Duration(vtime.Hour), runPause},            // down: never moved
	} {
		b := &fakeBoard{s: board.State{Limit: c.limit}}
		p := drainPace{board: b}
		now, next := vtime.Time(vtime.Second), vtime.Time(vtime.Second)
		var d vtime.Duration
		for range 200 {
			d = p.pause(now)
			for now = now.Add(d); next.Add(c.interval) <= now; next = next.Add(c.interval) {
				b.s.Left++
			}
		}
		if d < c.want*8/10 || d > c.want*12/10 {
			t.Errorf("queue of %d, one departure in %v: pause %v, want about %v", c.limit, c.interval, d, c.want)
		}
	}
}
