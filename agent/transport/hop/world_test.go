package hop

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// world is a network of Nodes in virtual time: links with loss, delay,
// reordering and duplication, and a MAC per node with two finite queues, of
// which the control queue is served first; and wires (wires_test.go). There is
// no shared medium here: that is what the simhop package tests with.
type world struct {
	t     testing.TB
	now   vtime.Time
	rng   *rand.Rand
	queue eventQueue
	seq   uint64
	nodes []*testNode
	// loss[i][j] is the probability that a packet from i to j is lost; < 0:
	// there is no link. down[i] cuts a node off.
	loss  [][]float64
	down  []bool
	wires [][]*wire // per node, by slot
	opt   worldOptions
	check bool
	trace func(from, to NodeID, pkt []byte, lost bool)
}

type worldOptions struct {
	rate      vtime.BitRate
	delay     vtime.Duration
	jitter    vtime.Duration // uniform extra delay: reorders
	dup       float64
	queue     [NumClasses]int // MAC queue lengths
	feedback  feedback
	arqTries  int // control packets are tried so often
	flipBytes float64
	messages  bool // radios carry messages instead of bytes
}

// feedback is what the driver tells the node about the MAC's queues.
type feedback int

const (
	exactDone feedback = iota // TxDone and Free
	freeOnly                  // only Free
	lossyDone                 // TxDone that loses counts, and Free
)

type event struct {
	at  vtime.Time
	seq uint64
	fn  func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

type frame struct {
	to  NodeID
	buf []byte
	msg *Message // nil: it travels as bytes
}

type testNode struct {
	w       *world
	id      NodeID
	n       *Node
	queues  [NumClasses][]frame
	busy    bool
	timerAt vtime.Time
	next    map[NodeID]NodeID
	app     *testApp
}

// NextHop implements Routes.
func (n *testNode) NextHop(dst NodeID) (NodeID, bool) {
	h, ok := n.next[dst]
	return h, ok
}

// Port implements Radio: the wire to a neighbour, if there is one that is not
// out of use.
func (n *testNode) Port(to NodeID) Port {
	for _, x := range n.w.wires[n.id] {
		if x.to == to && !x.avoid {
			return x.port
		}
	}
	return RadioPort
}

// Free implements Radio.
func (n *testNode) Free(p Port, c Class) int {
	if p != RadioPort {
		return n.w.wires[n.id][p-1].free()
	}
	return n.w.opt.queue[c] - len(n.queues[c])
}

// newWorld makes k nodes without links.
func newWorld(t testing.TB, seed uint64, k int, cfg Config, opt worldOptions) *world {
	t.Helper()
	if opt.rate == 0 {
		opt.rate = 11 * vtime.MbitPerSecond
	}
	if opt.queue[Data] == 0 {
		opt.queue = [NumClasses]int{50, 50}
	}
	if opt.arqTries == 0 {
		opt.arqTries = 1
	}
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), opt: opt, check: true, down: make([]bool, k), wires: make([][]*wire, k)}
	for i := range k {
		w.loss = append(w.loss, make([]float64, k))
		for j := range k {
			w.loss[i][j] = -1
		}
		w.nodes = append(w.nodes, nil)
		w.boot(NodeID(i), cfg)
	}
	return w
}

// boot gives node i a new Hop without memory of the old one. Its App stays:
// it sees what is delivered before and after.
func (w *world) boot(i NodeID, cfg Config) {
	w.t.Helper()
	cfg.ID = i
	x := &testNode{w: w, id: i, next: make(map[NodeID]NodeID), timerAt: vtime.Never}
	for _, y := range w.wires[i] {
		y.crowded = y.crowded || len(y.queue) > 0 // what its old life sent is a stranger's
	}
	if old := w.nodes[i]; old != nil {
		x.next, x.app = old.next, old.app
		old.n = nil
	} else {
		x.app = &testApp{w: w, pos: map[FlowKey]uint64{}, seen: map[FlowKey]map[BlockID]bool{}, blocks: map[FlowKey]int{},
			finished: map[FlowKey]bool{}, block: cfg.BlockSize, order: !cfg.Unordered}
	}
	x.app.node = x
	n, err := NewNode(cfg, x, x, x.app)
	if err != nil {
		w.t.Fatal(err)
	}
	x.n = n
	w.nodes[i] = x
}

// link joins i and j with loss p in both directions.
func (w *world) link(i, j int, p float64) { w.loss[i][j], w.loss[j][i] = p, p }

// chain links 0–1–…–k and routes everything along it.
func (w *world) chain(p float64) {
	for i := 1; i < len(w.nodes); i++ {
		w.link(i-1, i, p)
	}
	w.route()
}

// route computes shortest paths over the links, lowest node first.
func (w *world) route() {
	for d := range w.nodes {
		dist := make([]int, len(w.nodes))
		for i := range dist {
			dist[i] = 1 << 30
		}
		dist[d] = 0
		for range w.nodes {
			for i := range w.nodes {
				for j := range w.nodes {
					if w.joined(i, j) && !w.down[j] && dist[j]+1 < dist[i] {
						dist[i] = dist[j] + 1
					}
				}
			}
		}
		for i, x := range w.nodes {
			for j := range w.nodes {
				if i != d && w.joined(i, j) && dist[j] == dist[i]-1 {
					x.next[NodeID(d)] = NodeID(j)
					break
				}
			}
		}
	}
}

func (w *world) at(t vtime.Time, fn func()) {
	w.seq++
	heap.Push(&w.queue, event{t, w.seq, fn})
}

// open starts a flow of size bytes (< 0: endless).
func (w *world) open(src, dst int, id FlowID, size vtime.Bytes, opt FlowOptions) FlowKey {
	w.t.Helper()
	k := FlowKey{Src: NodeID(src), Dst: NodeID(dst), Flow: id}
	g := Continual(flowSeed(k))
	if size >= 0 {
		g = Sized(flowSeed(k), size)
	}
	x := w.nodes[src]
	if err := x.n.OpenFlow(w.now, id, NodeID(dst), g, opt); err != nil {
		w.t.Fatal(err)
	}
	w.flush(x)
	return k
}

// flush sends what the node has, sets its timer and checks its invariants.
func (w *world) flush(x *testNode) {
	if x.n == nil {
		return
	}
	for {
		p, m, ok := w.poll(x)
		if !ok {
			break
		}
		if p.Port != RadioPort {
			w.wires[x.id][p.Port-1].send(p)
			continue
		}
		if len(x.queues[p.Class]) >= w.opt.queue[p.Class] {
			w.t.Fatalf("%v: node %d sends into a full %v queue", w.now, x.id, p.Class)
		}
		w.afterItsData(x, p)
		x.queues[p.Class] = append(x.queues[p.Class], frame{to: p.To, buf: append([]byte(nil), p.Buf...), msg: m})
	}
	w.transmit(x)
	if w.check {
		w.invariants(x)
	}
	if d := x.n.Deadline(); d != x.timerAt {
		x.timerAt = d
		if d != vtime.Never {
			n := x.n
			w.at(vtime.Max(d, w.now), func() {
				if x.n == n && x.timerAt == d {
					x.timerAt = vtime.Never
					x.n.Expire(w.now)
					w.flush(x)
				}
			})
		}
	}
}

// transmit sends the next frame of the node's queues.
func (w *world) transmit(x *testNode) {
	if x.busy {
		return
	}
	c := Control
	if len(x.queues[c]) == 0 {
		c = Data
	}
	if len(x.queues[c]) == 0 {
		return
	}
	f := x.queues[c][0]
	x.busy = true
	w.at(w.now.Add(w.opt.rate.TxTime(vtime.Bytes(len(f.buf)+28))+300*vtime.Microsecond), func() {
		x.busy = false
		x.queues[c] = x.queues[c][1:]
		tries := 1
		if c == Control {
			tries = w.opt.arqTries
		}
		for range tries {
			if w.propagate(x.id, f) {
				break
			}
		}
		if f.msg != nil {
			f.msg.Release()
		}
		if n := x.n; n != nil {
			switch {
			case w.opt.feedback == exactDone, w.opt.feedback == lossyDone && w.rng.Float64() < 0.7:
				n.TxDone(w.now, RadioPort, c, 1)
			case w.opt.feedback == freeOnly:
				n.TxDone(w.now, RadioPort, c, 0)
			}
		}
		w.flush(x)
	})
}

// propagate carries a frame to its receiver; false if it was lost.
func (w *world) propagate(from NodeID, f frame) bool {
	p := w.loss[from][f.to]
	if p < 0 {
		w.t.Fatalf("%v: node %d sends to %d, which it has no link to", w.now, from, f.to)
	}
	lost := w.rng.Float64() < p || w.down[from] || w.down[f.to]
	if w.trace != nil {
		w.trace(from, f.to, f.buf, lost)
	}
	if lost {
		return false
	}
	copies := 1
	if w.rng.Float64() < w.opt.dup {
		copies = 2
	}
	for range copies {
		d := w.opt.delay
		if w.opt.jitter > 0 {
			d += vtime.Duration(w.rng.Int64N(int64(w.opt.jitter)))
		}
		buf := f.buf
		if w.rng.Float64() < w.opt.flipBytes {
			buf = append([]byte(nil), buf...)
			buf[w.rng.IntN(len(buf))] ^= byte(1 + w.rng.IntN(255))
		}
		receive := func(n *Node) { n.Receive(w.now, from, buf) }
		if f.msg != nil && &buf[0] == &f.buf[0] {
			receive = w.byMessage(from, f)
		}
		w.at(w.now.Add(d), func() {
			x := w.nodes[f.to]
			if x.n == nil || w.down[f.to] {
				return
			}
			receive(x.n)
			w.flush(x)
		})
	}
	return true
}

// run processes events until the time t or until stop says so.
func (w *world) run(t vtime.Time, stop func() bool) bool {
	for len(w.queue) > 0 && w.queue[0].at <= t {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.fn()
		if stop != nil && stop() {
			return true
		}
	}
	w.now = t
	return false
}
