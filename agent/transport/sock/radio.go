//go:build linux

package sock

import (
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The DSCPs of Hop's classes and the queues of a radio that they lead to (paper
// §4: bulk in the background queue, control in the voice queue). A pipe does not
// know them.
const (
	dataDSCP    = 8  // CS1
	controlDSCP = 48 // CS6
)

// dscps maps hop's classes.
var dscps = [hop.NumClasses]int{hop.Data: dataDSCP, hop.Control: controlDSCP}

// radio is what Hop's driver knows of the queues below it.
type radio interface {
	hop.Radio
	// at sets the time of the following calls.
	at(now vtime.Time)
	// sending notes a frame that is about to be handed to the kernel: noted
	// afterwards, the emulator might have counted it already. unsent takes it
	// back when the kernel refuses it.
	sending(p hop.Port, c hop.Class)
	unsent(p hop.Port, c hop.Class)
	// departed reports the frames that have left the queues since the last call,
	// where the radio can tell.
	departed(report func(p hop.Port, c hop.Class, k int))
	// watch asks for a wake-up through the board's event when the queues have
	// drained enough. A result above 0 means that frames are on their way
	// which the board has not seen: look again after that time.
	watch() vtime.Duration
	// lost counts frames that never reached their queue.
	lost() uint64
}

// ports maps a node's neighbours to its ports; hop.Radio.Port.
type ports map[int]int

// Port implements hop.Radio.
func (p ports) Port(to hop.NodeID) hop.Port { return hop.Port(p[int(to)]) }

// most returns the highest port.
func (p ports) most() (port int) {
	for _, n := range p {
		port = max(port, n)
	}
	return port
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

// boardRadio reads the queue board of a node's emulated links: two queues of
// its radio, and one of each pipe.
type boardRadio struct {
	ports
	board transport.Board
	now   vtime.Time
	ahead int // packets that Hop keeps in a queue of the radio
	q     [hop.NumClasses]boardQueue
	wires []*wireQueue // wires[s] is port 1+s
}

type boardQueue struct {
	ac      int
	window  *board.Window
	left    uint32
	lost    uint64
	filling bool // of the data queue: it takes frames until it is full
}

func newBoardRadio(b transport.Board, neighbours ports, ahead int) *boardRadio {
	r := &boardRadio{ports: neighbours, board: b, ahead: ahead}
	for c := range r.q {
		ac := transport.ACOf(dscps[c])
		r.q[c] = boardQueue{ac: ac, window: board.NewWindow(b, ac), left: b.State(ac).Left}
	}
	for p := 1; p <= neighbours.most(); p++ {
		r.wires = append(r.wires, newWireQueue(b, transport.Queue(p, transport.BestEffort)))
	}
	return r
}

func (r *boardRadio) at(now vtime.Time) { r.now = now }

// Free closes the data queue once it holds what Hop keeps in it, until half of
// that has left: else every departing frame would cost a wake-up of its own,
// and the round robin would serve flows by frames instead of by txops.
func (r *boardRadio) Free(p hop.Port, c hop.Class) int {
	if p != hop.RadioPort {
		return r.wires[p-1].free(r.now)
	}
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

func (r *boardRadio) sending(p hop.Port, c hop.Class) {
	if p != hop.RadioPort {
		r.wires[p-1].sending(r.now)
		return
	}
	r.q[c].window.Sent(r.now, 1)
}

func (r *boardRadio) unsent(p hop.Port, c hop.Class) {
	if p != hop.RadioPort {
		r.wires[p-1].unsent(r.now)
		return
	}
	r.q[c].window.Sent(r.now, -1)
}

// departed counts the frames that left the queues, and those that never came
// to them: they, too, will not be sent any more.
func (r *boardRadio) departed(report func(p hop.Port, c hop.Class, k int)) {
	for c := range r.q {
		q := &r.q[c]
		left, lost := r.board.State(q.ac).Left, q.window.Lost()
		if k := int(left-q.left) + int(lost-q.lost); k > 0 {
			report(hop.RadioPort, hop.Class(c), k)
		}
		q.left, q.lost = left, lost
	}
	for i, w := range r.wires {
		if k := w.departed(r.now); k > 0 {
			report(hop.Port(1+i), hop.Data, k)
		}
	}
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
		again = sooner(again, max(lookSoonest, vtime.Duration(s.Queued+flying-low)*frameAirtime))
	}
	for _, w := range r.wires {
		again = sooner(again, w.watch(r.now))
	}
	return again
}

// sooner returns the shorter of two waits, of which 0 is none.
func sooner(a, b vtime.Duration) vtime.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func (r *boardRadio) lost() uint64 {
	var n uint64
	for c := range r.q {
		n += r.q[c].window.Lost()
	}
	for _, w := range r.wires {
		n += w.window.Lost()
	}
	return n
}

// socketRadio serves a node with real interfaces: what the kernel holds for the
// socket is the queue, of all of them. Both classes share the socket, so control
// is given room of its own; on a wire the node itself leaves it some.
type socketRadio struct {
	ports
	sock  *udpSocket
	limit int // frames
}

// frameMemory is what the kernel charges to a socket for one full frame: 1,500
// bytes in a buffer of 2 KiB, and its descriptor (skb->truesize).
const frameMemory = 2304

// socketLimit is the number of frames that may wait below a socket. Deeper
// queues only add delay; a MAC queue must hold a whole txop.
const socketLimit = 50

func (r *socketRadio) at(vtime.Time) {}

func (r *socketRadio) Free(p hop.Port, c hop.Class) int {
	free := r.limit - r.sock.queued()/frameMemory
	if p == hop.RadioPort && c == hop.Control {
		free += r.limit
	}
	return max(0, free)
}

func (r *socketRadio) sending(hop.Port, hop.Class)             {}
func (r *socketRadio) unsent(hop.Port, hop.Class)              {}
func (r *socketRadio) departed(func(hop.Port, hop.Class, int)) {}
func (r *socketRadio) watch() vtime.Duration                   { return 0 }
func (r *socketRadio) lost() uint64                            { return 0 }
