package hop

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// testConfig has small blocks so that a test sees many.
func testConfig() Config {
	c := DefaultConfig()
	c.BlockSize = 64 * vtime.KiB
	return c
}

// finish runs until the destination has all of the flows, at most for limit,
// and until the sources know. That may take much longer: the last end-to-end
// BACK is unacknowledged, and the timeout after its loss is twice the block's
// delay, doubling.
func (w *world) finish(limit vtime.Duration, flows ...FlowKey) {
	w.t.Helper()
	all := func(end func(k FlowKey) NodeID) func() bool {
		return func() bool {
			for _, k := range flows {
				if !w.nodes[end(k)].app.finished[k] {
					return false
				}
			}
			return true
		}
	}
	dst, src := all(func(k FlowKey) NodeID { return k.Dst }), all(func(k FlowKey) NodeID { return k.Src })
	if !dst() && !w.run(w.now.Add(limit), dst) {
		w.t.Fatalf("not all delivered after %v\n%s", limit, w.summary())
	}
	if patience := 20*limit + 10*vtime.Minute; !src() && !w.run(w.now.Add(patience), src) {
		w.t.Fatalf("delivered, but the source does not know after %v\n%s", patience, w.summary())
	}
}

func TestOneHop(t *testing.T) {
	for _, size := range []vtime.Bytes{1, 1380, 1381, 16 * vtime.KiB, 16*vtime.KiB + 1, 300_000, 2 * vtime.MiB} {
		w := newWorld(t, 1, 2, testConfig(), worldOptions{})
		w.chain(0)
		k := w.open(0, 1, 7, size, FlowOptions{})
		w.finish(20*vtime.Second, k)
		if got := w.nodes[1].n.Delivered(k); got != size {
			t.Errorf("size %v: delivered %v", size, got)
		}
		st, _ := w.nodes[0].n.FlowStats(k)
		if st.Retransmitted != 0 || st.Unacked != 0 {
			t.Errorf("size %v: a clean link saw %+v", size, st)
		}
	}
}

func TestChains(t *testing.T) {
	for _, loss := range []float64{0, 0.2, 0.5, 0.8} {
		for hops := 1; hops <= 7; hops += 2 {
			t.Run(fmt.Sprintf("%d hops, loss %v", hops, loss), func(t *testing.T) {
				w := newWorld(t, uint64(hops), hops+1, testConfig(), worldOptions{jitter: 3 * vtime.Millisecond, dup: 0.05, arqTries: 4})
				w.chain(loss)
				k := w.open(0, hops, 1, 500_000, FlowOptions{})
				w.finish(200*vtime.Second, k)
			})
		}
	}
}

// TestCrossingFlows: flows that cross at one relay, in both directions, of
// both kinds of blocks, all arrive.
func TestCrossingFlows(t *testing.T) {
	w := newWorld(t, 3, 5, testConfig(), worldOptions{jitter: vtime.Millisecond, dup: 0.02, arqTries: 3})
	for i := 1; i < 5; i++ {
		w.link(0, i, 0.2) // a star: 0 relays everything
	}
	w.route()
	var flows []FlowKey
	for i := 1; i < 5; i++ {
		for j := 1; j < 5; j++ {
			if i != j {
				flows = append(flows, w.open(i, j, FlowID(10*i+j), vtime.Bytes(100_000+40_000*i), FlowOptions{BlockSize: vtime.Bytes(10_000 * (1 + i*j))}))
			}
		}
	}
	w.finish(3*vtime.Minute, flows...)
}

// TestPartition: the two links of a path are never up together. Blocks move
// one hop at a time all the same.
func TestPartition(t *testing.T) {
	w := newWorld(t, 1, 3, testConfig(), worldOptions{})
	w.chain(0)
	k := w.open(0, 2, 1, 400_000, FlowOptions{})
	for s := range 60 {
		w.loss[0][1], w.loss[1][0] = float64(s%2), float64(s%2)
		w.loss[1][2], w.loss[2][1] = float64(1-s%2), float64(1-s%2)
		w.run(vtime.Time(vtime.Duration(s+1)*5*vtime.Second), nil)
	}
	if !w.nodes[2].app.finished[k] {
		t.Fatalf("delivered %v of 400 kB in 30 contacts\n%s", w.nodes[2].n.Delivered(k), w.summary())
	}
}

// TestVirtualRetransmission: a relay dies after it took blocks. What is sent
// again for them crosses the hops behind it only: over the hops before, the
// block is virtual.
func TestVirtualRetransmission(t *testing.T) {
	cfg := testConfig()
	cfg.E2EInitial = 3 * vtime.Second
	w := newWorld(t, 1, 5, cfg, worldOptions{})
	w.chain(0)
	again := map[[2]NodeID]int{}
	seen := map[[2]NodeID]map[BlockID]map[uint16]bool{}
	tokens := 0
	w.trace = func(from, to NodeID, pkt []byte, _ bool) {
		var m message
		if parse(&m, pkt) != nil {
			return
		}
		hop := [2]NodeID{from, to}
		switch m.typ {
		case typeVBSYN:
			tokens++
		case typeData:
			if seen[hop] == nil {
				seen[hop] = map[BlockID]map[uint16]bool{}
			}
			if seen[hop][m.block] == nil {
				seen[hop][m.block] = map[uint16]bool{}
			}
			if seen[hop][m.block][m.seq] {
				again[hop]++
			}
			seen[hop][m.block][m.seq] = true
		}
	}
	k := w.open(0, 4, 1, 6*64*1024, FlowOptions{})
	holds := func() bool { // node 3 answers alone for a block
		f := w.nodes[3].n.lookup(k)
		g := w.nodes[2].n.lookup(k)
		if f == nil || g == nil {
			return false
		}
		for _, b := range f.blocks {
			if b.complete() && b.tx != txPassed {
				if u := g.find(b.id); u != nil && u.tx == txPassed {
					return true
				}
			}
		}
		return false
	}
	if !w.run(vtime.Time(vtime.Minute), holds) {
		t.Fatal("node 3 never held a block")
	}
	w.boot(3, cfg)
	w.finish(vtime.Minute, k)
	if again[[2]NodeID{0, 1}] != 0 || again[[2]NodeID{1, 2}] != 0 {
		t.Errorf("data sent again over the hops that had the block: %v", again)
	}
	if again[[2]NodeID{2, 3}] == 0 || tokens == 0 {
		t.Errorf("the block was not repeated from the last hop that had it: %v, %d tokens", again, tokens)
	}
	// The counters say the same.
	counted := uint64(0)
	for i, x := range w.nodes {
		s := x.n.Stats()
		counted += s.Tokens
		if s.Redundant != 0 || (s.DataAgain != 0) != (i == 2) || s.DataAgain != uint64(again[[2]NodeID{NodeID(i), NodeID(i + 1)}]) {
			t.Errorf("node %d counts %d data packets sent again, %d redundant", i, s.DataAgain, s.Redundant)
		}
	}
	if counted != uint64(tokens) {
		t.Errorf("%d tokens are counted, %d were sent", counted, tokens)
	}
}

// TestCacheEviction: with memory for few blocks the cache is bounded, nothing
// is lost, and blocks that the relay answers for stay.
func TestCacheEviction(t *testing.T) {
	cfg := testConfig()
	cfg.BlockSize, cfg.MemoryLimit, cfg.Window = 512*vtime.KiB, 2*MaxBlockSize, 16
	w := newWorld(t, 1, 4, cfg, worldOptions{rate: 54 * vtime.MbitPerSecond})
	w.chain(0)
	var flows []FlowKey
	for i := range 6 {
		flows = append(flows, w.open(0, 3, FlowID(i), 3*vtime.MiB, FlowOptions{}))
	}
	w.loss[3][2] = 0.9 // few end-to-end BACKs come back: caches fill
	w.run(vtime.Time(30*vtime.Second), nil)
	w.loss[3][2] = 0
	w.finish(5*vtime.Minute, flows...)
	evicted := uint64(0)
	for _, k := range flows {
		s, _ := w.nodes[1].n.FlowStats(k)
		evicted += s.Evicted
	}
	if evicted == 0 {
		t.Error("nothing was evicted: the test does not reach the limit")
	}
	if peak := w.nodes[1].n.Stats().MemoryPeak; peak > 2*cfg.MemoryLimit {
		t.Errorf("relay used %v", peak)
	}
}

// TestFlowTable: strangers' announcements create a bounded number of flows,
// and idle ones make room.
func TestFlowTable(t *testing.T) {
	cfg := testConfig()
	cfg.MaxFlows = 4
	w := newWorld(t, 1, 3, cfg, worldOptions{})
	w.chain(0)
	for i := range 20 {
		k := w.open(0, 2, FlowID(i), 20_000, FlowOptions{})
		w.finish(10*vtime.Second, k)
		w.nodes[0].n.CloseFlow(w.now, k, true)
		w.nodes[2].n.CloseFlow(w.now, k, true)
		if got := w.nodes[1].n.Stats().Flows; got > 4 {
			t.Fatalf("relay knows %d flows, the limit is 4", got)
		}
	}
	// Flows of which only announcements came make room for one that begins here.
	r := w.nodes[1].n
	for i := range FlowID(4) {
		pkt := make([]byte, HeaderLen+announceLen)
		putAnnouncement(pkt[HeaderLen:], &announcement{size: 20_000, payload: 1400, hash: 1})
		seal(pkt, &header{typ: typeBSYN, ttl: 1, key: FlowKey{Src: 0, Dst: 2, Flow: 1000 + i}, count: 15})
		r.Receive(w.now, 0, pkt)
	}
	own := w.open(1, 2, 1, 20_000, FlowOptions{})
	w.finish(10*vtime.Second, own)
	r.CloseFlow(w.now, own, true)
	w.nodes[2].n.CloseFlow(w.now, own, true)
	w.nodes[2].app.refuse = true
	k := w.open(0, 2, 99, 20_000, FlowOptions{})
	w.run(w.now.Add(5*vtime.Second), nil)
	if _, known := w.nodes[2].n.FlowStats(k); known || w.nodes[2].n.Delivered(k) != 0 {
		t.Error("a refused flow has state at its destination")
	}
	w.nodes[2].app.refuse = false
	w.finish(10*vtime.Second, k)
}

// TestStrangersData: nobody but the granted sender can write into a block.
func TestStrangersData(t *testing.T) {
	w := newWorld(t, 1, 3, testConfig(), worldOptions{})
	w.chain(0)
	k := w.open(0, 1, 1, 60_000, FlowOptions{})
	partial := func() bool { d := w.nodes[1].n.Delivered(k); return d > 20_000 && d < 50_000 }
	if !w.run(vtime.Time(vtime.Second), partial) {
		t.Fatal("no partial block")
	}
	before := w.nodes[1].n.Delivered(k)
	for seq := range 43 {
		pkt := make([]byte, HeaderLen+1400)
		seal(pkt, &header{typ: typeData, ttl: 1, key: k, seq: uint16(seq), count: 43, attempt: 2})
		w.nodes[1].n.Receive(w.now, 2, pkt)                 // another neighbour
		w.nodes[1].n.Receive(w.now, 0, pkt[:HeaderLen+700]) // cut
	}
	if got := w.nodes[1].n.Delivered(k); got != before {
		t.Errorf("a stranger's data counted: %v, before %v", got, before)
	}
	w.finish(10*vtime.Second, k)
}

// TestMicroBesideBulk: a small block does not wait behind a bulk transfer.
func TestMicroBesideBulk(t *testing.T) {
	delay := func(set func(*Config)) vtime.Duration {
		cfg := DefaultConfig()
		set(&cfg)
		w := newWorld(t, 1, 3, cfg, worldOptions{})
		w.chain(0)
		w.open(0, 2, 1, -1, FlowOptions{})
		w.run(vtime.Time(5*vtime.Second), nil)
		var sum vtime.Duration
		for i := range 20 {
			k := w.open(0, 2, FlowID(100+i), 12_000, FlowOptions{})
			w.run(w.now.Add(20*vtime.Second), func() bool { return w.nodes[2].app.finished[k] })
			s, _ := w.nodes[2].n.FlowStats(k)
			if s.DelayCount != 1 {
				t.Fatalf("micro-block %d did not arrive in 20 s", i)
			}
			sum += s.DelaySum
		}
		return sum / 20
	}
	micro := delay(func(*Config) {})
	ordered := delay(func(c *Config) { c.NoMicro = true })
	t.Logf("delay of 12 kB over two hops beside bulk: %v as a micro-block, %v as a small block", micro, ordered)
	if micro >= ordered {
		t.Errorf("a micro-block takes %v, without the mechanism %v", micro, ordered)
	}
	if micro > 100*vtime.Millisecond {
		t.Errorf("a micro-block takes %v", micro)
	}
}

// TestDeterministic: equal seeds give equal packets at equal times.
func TestDeterministic(t *testing.T) {
	run := func() uint64 {
		w := newWorld(t, 7, 6, testConfig(), worldOptions{jitter: 5 * vtime.Millisecond, dup: 0.1})
		w.chain(0.3)
		h := uint64(0)
		w.trace = func(from, to NodeID, pkt []byte, lost bool) {
			h = mix(h ^ blockHash(pkt) ^ uint64(w.now)<<8 ^ uint64(from)<<4 ^ uint64(to))
		}
		for i := range 5 {
			w.open(i, (i+3)%6, FlowID(i), -1, FlowOptions{})
		}
		w.run(vtime.Time(20*vtime.Second), nil)
		return h
	}
	if a, b := run(), run(); a != b {
		t.Errorf("two runs of one seed differ: %x, %x", a, b)
	}
}
