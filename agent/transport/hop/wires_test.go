package hop

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// wire is one direction of a wired link: a FIFO queue served at a rate, then a
// line with delay, loss and duplication. A wire that is down keeps its queue.
type wire struct {
	w        *world
	from, to NodeID
	port     Port
	opt      wireOptions
	queue    []frame
	busy     bool
	down     bool
	avoid    bool // the neighbour is reached by radio just now
	lastDue  vtime.Time
	crowded  bool
	spared   int // > 0: another transport fills the queue again and again but for so many places
	sent     int // packets of the node
	most     int // of its packets in the queue
}

type wireOptions struct {
	limit    int // of the queue; 0: no limit
	rate     vtime.BitRate
	delay    vtime.Duration
	jitter   vtime.Duration // uniform
	overtake bool           // jitter reorders
	loss     float64
	dup      float64
}

// stranger marks another transport's packet in a wire's queue.
const stranger = noNode

// join joins i and j by a wire.
func (w *world) join(i, j int, o wireOptions) {
	for _, e := range [2][2]int{{i, j}, {j, i}} {
		x := &wire{w: w, from: NodeID(e[0]), to: NodeID(e[1]), port: Port(1 + len(w.wires[e[0]])), opt: o}
		w.wires[e[0]] = append(w.wires[e[0]], x)
	}
}

// joined reports whether i and j are neighbours.
func (w *world) joined(i, j int) bool {
	for _, x := range w.wires[i] {
		if x.to == NodeID(j) {
			return true
		}
	}
	return w.loss[i][j] >= 0
}

func (x *wire) free() int {
	if x.opt.limit == 0 {
		return Unlimited
	}
	return x.opt.limit - len(x.queue)
}

// own counts the node's packets in the queue.
func (x *wire) own() int {
	k := 0
	for _, f := range x.queue {
		if f.to != stranger {
			k++
		}
	}
	return k
}

func (x *wire) send(p Packet) {
	if x.free() <= 0 {
		x.w.t.Fatalf("%v: node %d sends into the full queue of port %d", x.w.now, x.from, x.port)
	}
	if p.To != x.to {
		x.w.t.Fatalf("%v: node %d sends to %d through port %d, which leads to %d", x.w.now, x.from, p.To, x.port, x.to)
	}
	n := x.w.nodes[x.from].n
	if spare := n.ports[x.port].reserve(); p.Class == Data && x.free() <= spare && x.w.opt.feedback == exactDone && !x.crowded && n.stats.DrainsTimedOut == 0 {
		x.w.t.Fatalf("%v: node %d: data take the last %d places of port %d from control", x.w.now, x.from, x.free(), x.port)
	}
	x.queue = append(x.queue, frame{to: p.To, buf: append([]byte(nil), p.Buf...)})
	x.sent++
	x.most = max(x.most, x.own())
	x.serve()
}

// crowd puts up to k packets of another transport into the queue.
func (x *wire) crowd(k int) {
	x.crowded = true
	for ; k > 0 && x.opt.limit > 0 && x.free() > 0; k-- {
		x.queue = append(x.queue, frame{to: stranger, buf: make([]byte, 1400)})
	}
	x.serve()
}

func (x *wire) setUp(up bool) {
	x.down = !up
	x.serve()
}

// serve sends the head of the queue.
func (x *wire) serve() {
	if x.busy || x.down || len(x.queue) == 0 {
		return
	}
	x.busy = true
	x.w.at(x.w.now.Add(x.opt.rate.TxTime(vtime.Bytes(len(x.queue[0].buf)+28))), func() {
		x.busy = false
		if x.down {
			return // it stays, and is sent again
		}
		f, n := x.queue[0], x.w.nodes[x.from].n
		x.queue = x.queue[1:]
		k := 1
		if f.to == stranger {
			k = 0
		} else {
			x.carry(f)
		}
		if o := x.w.opt; n != nil && (k == 0 || o.feedback == exactDone || o.feedback == lossyDone && x.w.rng.Float64() < 0.7) {
			n.TxDone(x.w.now, x.port, Data, k) // the class does not matter
		}
		x.serve()
		x.w.flush(x.w.nodes[x.from])
		if x.spared > 0 {
			x.crowd(x.free() - x.spared)
		}
	})
}

// carry takes a frame over the line.
func (x *wire) carry(f frame) {
	w := x.w
	lost := w.rng.Float64() < x.opt.loss || w.down[x.from] || w.down[x.to]
	if w.trace != nil {
		w.trace(x.from, x.to, f.buf, lost)
	}
	if lost {
		return
	}
	for range 1 + w.lots(x.opt.dup) {
		due := w.now.Add(x.opt.delay)
		if x.opt.jitter > 0 {
			due = due.Add(vtime.Duration(w.rng.Int64N(int64(x.opt.jitter))))
		}
		if !x.opt.overtake {
			due = vtime.Max(due, x.lastDue)
			x.lastDue = due
		}
		w.at(due, func() {
			if y := w.nodes[x.to]; y.n != nil && !w.down[x.to] {
				y.n.Receive(w.now, x.from, f.buf)
				w.flush(y)
			}
		})
	}
}

// lots is 1 with probability p, else 0.
func (w *world) lots(p float64) int {
	if w.rng.Float64() < p {
		return 1
	}
	return 0
}

// wired is a world of k nodes joined in a row by equal wires.
func wired(t testing.TB, k int, cfg Config, o wireOptions) *world {
	t.Helper()
	w := newWorld(t, 1, k, cfg, worldOptions{})
	for i := 1; i < k; i++ {
		w.join(i-1, i, o)
	}
	w.route()
	return w
}
