package bundle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// world is a chain of nodes whose connections are queues in memory: of octets or,
// as in virtual time, of messages.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	octets bool
	now    vtime.Time
	cfgs   []Config
	nodes  []*Node
	apps   [2]*endApp
	conns  []*conn // conns[i] joins nodes i and i+1; nil: none
	down   []bool  // links that are down
	disks  []map[uint64][]byte
	vdisks []map[uint64]*Bundle
	fail   bool // the disks are full
	lost   map[uint64]bool
	total  Stats
}

// endApp is the application at either end.
type endApp struct {
	w    *world
	left int
	next int
	size func(k int) int
	got  map[uint64]int
}

func content(seq uint64, n int) Bytes {
	b := make(Bytes, n)
	for i := range b {
		b[i] = byte(seq*31 + uint64(i)*7)
	}
	return b
}

func (a *endApp) Next(vtime.Time) Content {
	if a.next == a.left {
		return nil
	}
	k := a.next
	a.next++
	if a.w.octets {
		return content(uint64(k), a.size(k))
	}
	return Zeros(a.size(k))
}

func (a *endApp) Finished() bool { return a.next == a.left }

func (a *endApp) Deliver(_ vtime.Time, b *Bundle) {
	seq := b.Created.Seq
	a.got[seq]++
	if a.got[seq] > 1 {
		a.w.t.Errorf("bundle %d was delivered twice", seq)
	}
	if n := b.Payload.Len(); n != a.size(int(seq)) {
		a.w.t.Errorf("bundle %d has %d bytes, want %d", seq, n, a.size(int(seq)))
	}
	if data, ok := b.Payload.(Bytes); ok && !bytes.Equal(data, content(seq, len(data))) {
		a.w.t.Errorf("bundle %d is not what was sent", seq)
	}
	_, count, _ := b.Hops()
	if prev, _ := b.PreviousNode(); int(count) != len(a.w.nodes)-1 || prev != a.w.cfgs[len(a.w.nodes)-2].Self {
		a.w.t.Errorf("bundle %d came over %d hops, the last from %v", seq, count, prev)
	}
}

// conn is a connection: what each side has said and the other not heard.
type conn struct {
	s    [2]*Session
	said [2][]byte
	msgs [2][]Message
	read [2]*Parser
}

func newWorld(t *testing.T, seed uint64, octets bool, nodes, bundles int, edit func(c *Config)) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), octets: octets, conns: make([]*conn, nodes-1), down: make([]bool, nodes-1), lost: map[uint64]bool{}}
	size := func(k int) int { return int(uint64(k)*2654435761%40)*997 + 1 }
	for i := range w.apps {
		w.apps[i] = &endApp{w: w, left: bundles, size: size, got: map[uint64]int{}}
	}
	for i := range nodes {
		c := DefaultConfig()
		c.Self, c.Source, c.Destination = IPN(uint64(i+1), 0), IPN(1, 20000), IPN(uint64(nodes), 20000)
		c.SegmentSize, c.Limit, c.Unacked, c.Transfers, c.Epoch = 8<<10, 128<<10, 100<<10, 8, 821210400000
		if i > 0 {
			c.Prev = IPN(uint64(i), 0)
		}
		if i < nodes-1 {
			c.Next = IPN(uint64(i+2), 0)
		}
		if edit != nil {
			edit(&c)
		}
		w.cfgs = append(w.cfgs, c)
		w.disks, w.vdisks = append(w.disks, map[uint64][]byte{}), append(w.vdisks, map[uint64]*Bundle{})
		w.nodes = append(w.nodes, w.newNode(i))
	}
	return w
}

func (w *world) newNode(i int) *Node {
	var app App
	switch i {
	case 0:
		app = w.apps[0]
	case len(w.cfgs) - 1:
		app = w.apps[1]
	}
	// Of the configurations only the first i+1 are there yet; the last node's
	// says itself that it is the last.
	if w.cfgs[i].isDestination() {
		app = w.apps[1]
	}
	n, err := New(w.cfgs[i], app)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// restart switches a relay off and on: its connections are gone, and its memory.
func (w *world) restart(i int) {
	n := w.nodes[i]
	for _, h := range n.store.items {
		if h.state != gone && !(h.disk && n.seen.has(h.bundle.Created.Seq)) {
			w.lost[h.bundle.Created.Seq] = true
		}
	}
	w.total.Add(n.Stats())
	w.drop(i - 1)
	w.drop(i)
	w.files(i)
	w.nodes[i] = w.newNode(i)
	for seq := range uint64(w.apps[0].left) {
		if data, ok := w.disks[i][seq]; ok {
			b, err := Decode(data)
			if err != nil {
				w.t.Fatal(err)
			}
			w.nodes[i].Restore(w.now, b, len(data))
		} else if b, ok := w.vdisks[i][seq]; ok {
			c := *b
			w.nodes[i].Restore(w.now, &c, b.Encode().Len())
		}
	}
}

// drop ends a connection; what was under way in it is lost.
func (w *world) drop(i int) {
	c := w.conns[i]
	if w.conns[i] = nil; c == nil {
		return
	}
	for _, s := range c.s {
		s.Lost(w.now, fmt.Errorf("the connection was cut"))
	}
}

// files does what a node asks of its disk.
func (w *world) files(i int) {
	for {
		op, ok := w.nodes[i].Op()
		if !ok {
			return
		}
		if op.Kind == Delete {
			delete(w.disks[i], op.Seq)
			delete(w.vdisks[i], op.Seq)
			continue
		}
		if w.fail {
			w.nodes[i].Saved(w.now, op.Seq, nil, fmt.Errorf("no space left"))
			continue
		}
		if w.octets {
			w.disks[i][op.Seq], _ = op.Encoded.Append(nil, 0, op.Encoded.Len())
		} else {
			w.vdisks[i][op.Seq] = op.Encoded.Bundle()
		}
		w.nodes[i].Saved(w.now, op.Seq, nil, nil)
	}
}

// step does one random thing; it reports whether anything was done.
func (w *world) step(faults bool) {
	i := w.rng.IntN(len(w.conns))
	if faults && w.rng.IntN(200) == 0 {
		switch w.rng.IntN(4) {
		case 0:
			w.drop(i)
		case 1:
			w.down[i] = !w.down[i]
		case 2:
			w.fail = !w.fail
		default:
			if len(w.nodes) > 2 {
				w.restart(1 + w.rng.IntN(len(w.nodes)-2))
			}
		}
	}
	w.now = w.now.Add(vtime.Duration(w.rng.IntN(int(20 * vtime.Millisecond))))
	if c := w.conns[i]; c == nil && w.nodes[i].Dial() && !w.down[i] {
		c = &conn{read: [2]*Parser{NewParser(w.cfgs[i].SegmentSize), NewParser(w.cfgs[i].SegmentSize)}}
		c.s = [2]*Session{w.nodes[i].Connected(w.now), w.nodes[i+1].Accept(w.now)}
		w.conns[i] = c
	}
	for k := range w.nodes {
		if w.nodes[k].Deadline() <= w.now {
			w.nodes[k].Expire(w.now)
		}
		w.files(k)
	}
	if c := w.conns[i]; c != nil && !w.down[i] {
		side := w.rng.IntN(2)
		w.send(c, side)
		w.recv(c, side)
	}
	for k, c := range w.conns {
		if c == nil {
			continue
		}
		for _, s := range c.s {
			if yes, _, err := s.Over(); yes {
				if err != nil && !faults && err != ErrIdle && err != ErrSetup {
					w.t.Errorf("hop %d: %v", k, err)
				}
				w.drop(k)
				break
			}
		}
	}
}

// send says some of what a side has to say.
func (w *world) send(c *conn, side int) {
	for range w.rng.IntN(4) {
		m, ok := c.s[side].Poll(w.now)
		if !ok {
			return
		}
		if w.octets {
			var err error
			if c.said[side], err = m.Append(c.said[side]); err != nil {
				w.t.Fatal(err)
			}
		} else {
			c.msgs[side] = append(c.msgs[side], m)
		}
	}
}

// recv lets the other side hear some of what a side has said.
func (w *world) recv(c *conn, side int) {
	to := c.s[1-side]
	if !w.octets {
		for k := w.rng.IntN(4); k > 0 && len(c.msgs[side]) > 0 && to.Reading(); k-- {
			m := c.msgs[side][0]
			c.msgs[side] = c.msgs[side][1:]
			to.Input(w.now, &m)
		}
		return
	}
	p := c.read[1-side]
	if !to.Reading() {
		return
	}
	n := min(len(c.said[side]), w.rng.IntN(20000))
	if n > 0 {
		n = copy(p.Space(), c.said[side][:n])
		p.Filled(n)
		c.said[side] = c.said[side][n:]
		to.Heard(w.now)
	}
	for to.Reading() {
		m, ok, err := p.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return
		}
		to.Input(w.now, &m)
	}
}

// run goes on with faults for some steps and then until all is done.
func (w *world) run(faulty int) {
	for range faulty {
		w.step(true)
	}
	clear(w.down)
	w.fail = false
	for k := 0; ; k++ {
		w.step(false)
		open := false
		for i, n := range w.nodes {
			open = open || n.store.count > 0 || i == 0 && !n.Done()
			// A relay that was switched off does not know that the next one waits for
			// the end of its session; without faults all sessions end.
			open = open || faulty == 0 && i < len(w.conns) && w.conns[i] != nil
			if c := w.cfgs[i]; !c.isSource() && n.store.charged > c.Limit+perBundle {
				w.t.Fatalf("node %d stores %v of %v", i, n.store.charged, c.Limit)
			}
		}
		if !open {
			break
		}
		if k > 400_000 {
			w.report()
			w.t.Fatalf("nothing moves any more at %v", w.now)
		}
	}
	for _, n := range w.nodes {
		w.total.Add(n.Stats())
		if n.store.charged != 0 || n.store.bytes != 0 {
			w.t.Errorf("an empty store is charged %v for %v", n.store.charged, n.store.bytes)
		}
	}
}

func (w *world) report() {
	for i, n := range w.nodes {
		up, down := "none", "none"
		if n.up != nil {
			up = fmt.Sprintf("state %d reading %v parked %v", n.up.state, n.up.Reading(), n.up.hasParked)
		}
		if n.down != nil {
			down = fmt.Sprintf("state %d out %d", n.down.state, len(n.down.out))
		}
		w.t.Logf("node %d: %d held, charged %v, up %s, down %s, hold %v, %+v", i, n.store.count, n.store.charged, up, down, n.hold, n.Stats())
	}
}

// TestChains: whatever happens to connections, links and relays, every bundle
// arrives once and whole, from relays with a disk; those without lose at most
// what they had acknowledged when they were switched off.
func TestChains(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	var sum Stats
	for seed := range uint64(seeds) {
		disk := seed%3 == 0
		w := newWorld(t, seed, seed%2 == 0, 2+int(seed%4), 120, func(c *Config) { c.Disk = disk && c.Prev != EID{} && c.Next != EID{}; c.NoClock = seed%5 == 0 })
		w.run(6000)
		for k := range w.apps[0].left {
			if seq := uint64(k); w.apps[1].got[seq] == 0 && (disk || !w.lost[seq]) {
				t.Errorf("seed %d: bundle %d did not arrive", seed, seq)
			}
		}
		if t.Failed() {
			w.report()
			t.Fatalf("seed %d", seed)
		}
		sum.Add(w.total)
	}
	t.Logf("%+v", sum)
	if sum.Duplicates == 0 || sum.Resent == 0 || sum.Restored == 0 || sum.RefusedOut == 0 {
		t.Error("the faults were too tame")
	}
}

// TestCleanChain: without faults nothing is repeated, and the sessions end.
func TestCleanChain(t *testing.T) {
	for _, octets := range []bool{false, true} {
		w := newWorld(t, 7, octets, 4, 300, nil)
		w.run(0)
		if got := w.total; got.Resent+got.Duplicates+got.RefusedIn+got.IdleTimeouts > 0 || got.Delivered != 300 || got.Created != 300 || got.Forwarded != 900 || got.Sessions != 6 {
			t.Errorf("%+v", got)
		}
	}
}
