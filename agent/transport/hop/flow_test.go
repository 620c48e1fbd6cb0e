package hop

import (
	"errors"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// list is a Source of given blocks; nil has nothing yet.
type list struct {
	blocks [][]byte
	ended  bool
	bad    int
}

func (l *list) Next(_ vtime.Time, buf []byte) (int, bool) {
	if l.bad != 0 {
		return l.bad, false
	}
	if len(l.blocks) == 0 {
		return 0, l.ended
	}
	n := copy(buf, l.blocks[0])
	l.blocks = l.blocks[1:]
	return n, l.ended && len(l.blocks) == 0
}

// collect keeps what is delivered.
type collect struct {
	Sink
	got  []string
	last bool
	errs []error
}

func (c *collect) Deliver(_ vtime.Time, d Delivery) {
	c.got = append(c.got, string(d.Data))
	c.last = d.Last
}
func (c *collect) Failed(_ vtime.Time, _ FlowKey, err error) { c.errs = append(c.errs, err) }

// TestStreamSource: a source that gives short blocks and pauses is sent as it
// gives, without waiting for a block to fill.
func TestStreamSource(t *testing.T) {
	w := newWorld(t, 1, 2, testConfig(), worldOptions{})
	w.chain(0)
	got := &collect{}
	w.nodes[1].n.app = got
	src := &list{blocks: [][]byte{[]byte("one"), []byte("two")}}
	n := w.nodes[0].n
	if err := n.OpenFlow(0, 9, 1, src, FlowOptions{}); err != nil {
		t.Fatal(err)
	}
	w.flush(w.nodes[0])
	w.run(w.now.Add(vtime.Second), nil)
	if !slices.Equal(got.got, []string{"one", "two"}) {
		t.Fatalf("got %q", got.got)
	}
	src.blocks, src.ended = [][]byte{[]byte("three")}, true
	w.run(w.now.Add(vtime.Second), nil)
	if len(got.got) != 2 {
		t.Fatal("a source is asked again without Wake")
	}
	n.Wake(w.now, 9, 1)
	w.flush(w.nodes[0])
	w.run(w.now.Add(vtime.Second), nil)
	if len(got.got) != 3 || !got.last || !w.nodes[0].app.finished[FlowKey{0, 1, 9}] {
		t.Fatalf("got %q, last %v, finished %v", got.got, got.last, w.nodes[0].app.finished)
	}
}

func TestOpenFlowRefuses(t *testing.T) {
	w := newWorld(t, 1, 2, testConfig(), worldOptions{})
	w.chain(0)
	n := w.nodes[0].n
	for _, c := range []struct {
		name string
		dst  NodeID
		src  Source
		opt  FlowOptions
	}{
		{"no source", 1, nil, FlowOptions{}},
		{"itself", 0, Continual(1), FlowOptions{}},
		{"block too large", 1, Continual(1), FlowOptions{BlockSize: MaxBlockSize + 1}},
		{"negative block", 1, Continual(1), FlowOptions{BlockSize: -1}},
	} {
		if err := n.OpenFlow(0, 1, c.dst, c.src, c.opt); err == nil {
			t.Errorf("%s is accepted", c.name)
		}
	}
	if err := n.OpenFlow(0, 1, 1, Continual(1), FlowOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := n.OpenFlow(0, 1, 1, Continual(1), FlowOptions{}); err == nil {
		t.Error("a second flow of the same id is accepted")
	}
	app := &collect{}
	n.app = app
	if err := n.OpenFlow(0, 2, 1, &list{bad: 1 << 30}, FlowOptions{}); err != nil || len(app.errs) != 1 {
		t.Errorf("a source that gives more than it was given room for: %v, %v", err, app.errs)
	}
}

func TestCloseFlow(t *testing.T) {
	w := newWorld(t, 1, 3, testConfig(), worldOptions{})
	w.chain(0)
	k := w.open(0, 2, 1, -1, FlowOptions{})
	w.run(vtime.Time(3*vtime.Second), nil)
	w.nodes[0].n.CloseFlow(w.now, k, false)
	w.flush(w.nodes[0])
	w.run(w.now.Add(10*vtime.Second), nil)
	s, _ := w.nodes[0].n.FlowStats(k)
	if s.Unacked != 0 || !w.nodes[0].app.finished[k] || int(s.BlocksAcked) != w.nodes[2].app.blocks[k] || s.BlocksAcked == 0 {
		t.Errorf("after closing: %+v, %d blocks delivered", s, w.nodes[2].app.blocks[k])
	}
	k2 := w.open(0, 2, 2, -1, FlowOptions{})
	w.run(w.now.Add(500*vtime.Millisecond), nil)
	for _, x := range w.nodes {
		x.n.CloseFlow(w.now, k2, true)
		w.flush(x)
		if _, ok := x.n.FlowStats(k2); ok || x.n.Stats().MemoryUsed != 0 {
			t.Errorf("node %d after abort: known %v, memory %v", x.id, ok, x.n.Stats().MemoryUsed)
		}
	}
}

// TestCorruptBlock: a relay whose memory changes a block is found out by the
// hash; the block comes intact, and the flow's error is reported.
func TestCorruptBlock(t *testing.T) {
	cfg := testConfig()
	cfg.E2EInitial = 2 * vtime.Second
	w := newWorld(t, 1, 3, cfg, worldOptions{})
	w.chain(0)
	k := w.open(0, 2, 1, 50_000, FlowOptions{})
	relay := func() *block {
		if f := w.nodes[1].n.lookup(k); f != nil {
			if b := f.find(0); b != nil && b.complete() {
				return b
			}
		}
		return nil
	}
	if !w.run(vtime.Time(vtime.Second), func() bool { return relay() != nil }) {
		t.Fatal("the relay never had the block")
	}
	relay().buf[12345] ^= 4
	w.finish(10*vtime.Second, k)
	errs := w.nodes[2].app.errors
	var ce *CorruptError
	if len(errs) != 1 || !errors.As(errs[0], &ce) || ce.Block != 0 || ce.Node != 2 || ce.Got == ce.Want {
		t.Errorf("errors %v", errs)
	}
	if got := w.nodes[2].n.Delivered(k); got != 50_000 {
		t.Errorf("delivered %v", got)
	}
	if s, _ := w.nodes[1].n.FlowStats(k); s.Corrupt != 1 {
		t.Errorf("relay: %+v", s)
	}
}

// TestNoAllocation: in the steady state no packet costs an allocation.
func TestNoAllocation(t *testing.T) {
	t.Run("radio", func(t *testing.T) { noAllocation(t, free{RadioPort}) })
	t.Run("wire", func(t *testing.T) { noAllocation(t, free{1}) })
}

func noAllocation(t *testing.T, radio free) {
	var nodes [2]*Node
	for i := range nodes {
		cfg := testConfig()
		cfg.ID = NodeID(i)
		n, err := NewNode(cfg, &radio, direct{}, Sink{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = n
	}
	if err := nodes[0].OpenFlow(0, 1, 1, Continual(1), FlowOptions{}); err != nil {
		t.Fatal(err)
	}
	now, packets := vtime.Time(0), 0
	step := func() {
		now = now.Add(vtime.Millisecond)
		for i, n := range nodes {
			n.Expire(now)
			for p, ok := n.Poll(now); ok; p, ok = n.Poll(now) {
				nodes[1-i].Receive(now, NodeID(i), p.Buf)
				n.TxDone(now, p.Port, p.Class, 1)
				if packets++; packets%100 == 0 {
					break
				}
			}
		}
	}
	for packets < 5000 {
		step()
	}
	before := packets
	if a := testing.AllocsPerRun(1000, step); a != 0 {
		t.Errorf("%v allocations per step", a)
	}
	if packets-before < 5000 {
		t.Errorf("only %d packets were sent", packets-before)
	}
}

// free is a Radio with one port and without limit; direct routes go straight to
// the destination.
type free struct{ port Port }

func (f *free) Port(NodeID) Port   { return f.port }
func (*free) Free(Port, Class) int { return 100 }

type direct struct{}

func (direct) NextHop(d NodeID) (NodeID, bool) { return d, true }
