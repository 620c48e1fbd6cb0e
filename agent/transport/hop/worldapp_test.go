package hop

import (
	"github.com/hopbed/hopbed/netem/vtime"
)

// testApp verifies every delivered block against the flow's generator.
type testApp struct {
	w        *world
	node     *testNode
	pos      map[FlowKey]uint64
	seen     map[FlowKey]map[BlockID]bool
	blocks   map[FlowKey]int
	finished map[FlowKey]bool
	errors   []error
	refuse   bool
	block    vtime.Bytes // block size, to check blocks out of order
	order    bool
	hostile  bool // strangers send, too: the hash is all that is known of blocks
}

func (a *testApp) Accept(vtime.Time, FlowKey) bool { return !a.refuse }

func flowSeed(k FlowKey) uint64 { return uint64(k.Flow)*1e6 + uint64(k.Src)*1e3 + uint64(k.Dst) }

func (a *testApp) Deliver(now vtime.Time, d Delivery) {
	t := a.w.t
	if a.seen[d.Flow] == nil {
		a.seen[d.Flow] = make(map[BlockID]bool)
	}
	if a.seen[d.Flow][d.Block] {
		t.Fatalf("%v: node %d: block %d of %v delivered twice", now, a.node.id, d.Block, d.Flow)
	}
	a.seen[d.Flow][d.Block] = true
	if a.hostile {
		return
	}
	pos := a.pos[d.Flow]
	if a.order && int(d.Block) != a.blocks[d.Flow] {
		t.Fatalf("%v: node %d: block %d of %v delivered out of order, want %d", now, a.node.id, d.Block, d.Flow, a.blocks[d.Flow])
	}
	if !a.order {
		pos = uint64(d.Block) * uint64(a.block)
	}
	if !CheckPattern(flowSeed(d.Flow), pos, d.Data) {
		t.Fatalf("%v: node %d: block %d of %v is not what its source sent", now, a.node.id, d.Block, d.Flow)
	}
	a.pos[d.Flow] += uint64(len(d.Data))
	a.blocks[d.Flow]++
}

func (a *testApp) Finished(_ vtime.Time, f FlowKey) {
	if a.finished[f] {
		a.w.t.Fatalf("node %d: flow %v finished twice", a.node.id, f)
	}
	a.finished[f] = true
}

func (a *testApp) Failed(_ vtime.Time, _ FlowKey, err error) { a.errors = append(a.errors, err) }
