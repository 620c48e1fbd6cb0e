//go:build linux

package sock

import (
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The DSCPs of Hop's classes and the queues that they lead to (paper §4: bulk
// in the background queue, control in the voice queue).
const (
	dataDSCP    = 8  // CS1
	controlDSCP = 48 // CS6
)

// dscps maps hop's classes.
var dscps = [hop.NumClasses]int{hop.Data: dataDSCP, hop.Control: controlDSCP}

// radio is what Hop's driver knows of the MAC's queues.
type radio interface {
	hop.Radio
	// at sets the time of the following calls.
	at(now vtime.Time)
	// sending notes a frame that is about to be handed to the kernel: noted
	// afterwards, the emulator might have counted it already. unsent takes it
	// back when the kernel refuses it.
	sending(c hop.Class)
	unsent(c hop.Class)
	// departed returns how many frames have left the class's queue since the
	// last call, and whether the radio can tell.
	departed(c hop.Class) (k int, known bool)
	// watch asks for a wake-up through the board's event when the queues have
	// drained enough. A result above 0 means that frames are on their way
	// which the board has not seen: look again after that time.
	watch() vtime.Duration
	// lost counts frames that never reached the queue.
	lost() uint64
}

// While frames are on their way to the emulator its board says nothing about
// them, so they cannot be watched. They cannot have left the queue either: the
// driver looks again when that becomes possible, after the shortest time that
// full frames take on the air (1,500 B at 54 Mb/s in a burst without
// acknowledgements: 30 frames in 8,160 µs, rounded down).
const (
	frameAirtime = 200 * vtime.Microsecond
	lookSoonest  = 300 * vtime.Microsecond
)

// boardRadio reads an emulated radio's queue board.
type boardRadio struct {
	board transport.Board
	now   vtime.Time
	ahead int // packets that Hop keeps in a queue
	q     [hop.NumClasses]boardQueue
}

type boardQueue struct {
	ac      int
	window  *board.Window
	left    uint32
	lost    uint64
	filling bool // of the data queue: it takes frames until it is full
}

func newBoardRadio(b transport.Board, ahead int) *boardRadio {
	r := &boardRadio{board: b, ahead: ahead}
	for c := range r.q {
		ac := transport.ACOf(dscps[c])
		r.q[c] = boardQueue{ac: ac, window: board.NewWindow(b, ac), left: b.State(ac).Left}
	}
	return r
}

// Port implements hop.Radio.
func (r *boardRadio) Port(hop.NodeID) hop.Port { return hop.RadioPort }

func (r *boardRadio) at(now vtime.Time) { r.now = now }

// Free closes the data queue once it holds what Hop keeps in it, until half of
// that has left: else every departing frame would cost a wake-up of its own,
// and the round robin would serve flows by frames instead of by txops.
func (r *boardRadio) Free(_ hop.Port, c hop.Class) int {
	q := &r.q[c]
	free := q.window.Free(r.now)
	if c != hop.Data {
		return free
	}
	s := r.board.State(q.ac)
	held, ahead := s.Queued+q.window.InFlight(r.now), min(r.ahead, s.Limit)
	switch {
	case held <= ahead/2:
		q.filling = true
	case held >= ahead:
		q.filling = false
	}
	if !q.filling {
		return 0
	}
	return free
}

func (r *boardRadio) sending(c hop.Class) { r.q[c].window.Sent(r.now, 1) }
func (r *boardRadio) unsent(c hop.Class)  { r.q[c].window.Sent(r.now, -1) }

// departed counts the frames that left the queue, and those that never came
// to it: they, too, will not be sent any more.
func (r *boardRadio) departed(c hop.Class) (int, bool) {
	q := &r.q[c]
	left, lost := r.board.State(q.ac).Left, q.window.Lost()
	k := int(left-q.left) + int(lost-q.lost)
	q.left, q.lost = left, lost
	return k, true
}

// watch asks to be woken when a txop's worth can be put into a queue that is
// well filled, or when the last frame of one that is not has left: Hop keeps a
// queue filled while it has data, so a queue that is not filled belongs to a
// round whose end Hop waits for.
func (r *boardRadio) watch() vtime.Duration {
	var again vtime.Duration
	for c := range r.q {
		q := &r.q[c]
		s := r.board.State(q.ac)
		flying := q.window.InFlight(r.now)
		low := min(r.ahead, s.Limit) / 2
		if s.Queued+flying <= low {
			low = 0
		}
		switch {
		case s.Queued+flying == 0:
			continue
		case flying == 0 && !r.board.Watch(q.ac, low):
			continue
		}
		d := max(lookSoonest, vtime.Duration(s.Queued+flying-low)*frameAirtime)
		if again == 0 || d < again {
			again = d
		}
	}
	return again
}

func (r *boardRadio) lost() uint64 {
	var n uint64
	for c := range r.q {
		n += r.q[c].window.Lost()
	}
	return n
}

// socketRadio serves a node with a real radio: what the kernel holds for the
// socket is the queue. Both classes share the socket, so control is given room
// of its own.
type socketRadio struct {
	sock  *udpSocket
	limit int // frames
}

// frameMemory is what the kernel charges to a socket for one full frame: 1,500
// bytes in a buffer of 2 KiB, and its descriptor (skb->truesize).
const frameMemory = 2304

// socketLimit is the number of frames that may wait below a socket. Deeper
// queues only add delay; a MAC queue must hold a whole txop.
const socketLimit = 50

// Port implements hop.Radio.
func (r *socketRadio) Port(hop.NodeID) hop.Port { return hop.RadioPort }

func (r *socketRadio) at(vtime.Time) {}

func (r *socketRadio) Free(_ hop.Port, c hop.Class) int {
	free := r.limit - r.sock.queued()/frameMemory
	if c == hop.Control {
		free += r.limit
	}
	return max(0, free)
}

func (r *socketRadio) sending(hop.Class)              {}
func (r *socketRadio) unsent(hop.Class)               {}
func (r *socketRadio) departed(hop.Class) (int, bool) { return 0, false }
func (r *socketRadio) watch() vtime.Duration          { return 0 }
func (r *socketRadio) lost() uint64                   { return 0 }
