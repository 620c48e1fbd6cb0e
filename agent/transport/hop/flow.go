package hop

import (
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// flow is one flow at one node.
type flow struct {
	key    FlowKey
	role   Role
	stats  FlowStats
	blocks []*block // by id
	srtt   rtt
	used   vtime.Time

	// Source.
	src       Source
	blockSize int
	nextID    BlockID
	base      BlockID // lowest block not acknowledged end to end
	ended     bool    // the Source has no further block
	dry       bool    // the Source had nothing; Wake clears it

	// Destination, and at relays what the end-to-end BACKs that passed said:
	// every block below cum, and block cum+i where bit i of sack is set, is
	// complete at the destination.
	cum      BlockID
	sack     uint64
	met      bool // a first announcement has set cum
	hasLast  bool
	lastID   BlockID
	finished bool
	hold     Holding // destination: what the application takes (hold.go)

	// The end-to-end BACK to send or forward: the newest is the whole truth.
	e2eOwed  bool
	e2eBlock BlockID
	e2eSent  vtime.Time
	e2eTTL   uint8
	e2eTold  bool       // one was sent …
	e2eAt    vtime.Time // … at this time last

	// Relay: blocks passed on, so that a repeated BSYN is recognised after
	// the block is gone: bit i is block passedTop-i.
	passedAny  bool
	passedTop  BlockID
	passedBits uint64
}

// find returns the flow's block id, or nil.
func (f *flow) find(id BlockID) *block {
	for _, b := range f.blocks {
		if b.id == id {
			return b
		}
	}
	return nil
}

// delivered reports whether the block is known to be complete at the
// destination.
func (f *flow) delivered(id BlockID) bool {
	return id < f.cum || id-f.cum < MaxWindow && f.sack>>(id-f.cum)&1 != 0
}

// merge takes over what an end-to-end BACK says.
func (f *flow) merge(cum BlockID, sack uint64) {
	if cum > f.cum {
		f.slide(cum)
	}
	if d := f.cum - cum; d < MaxWindow {
		f.sack |= sack >> d
	}
	f.normalise()
}

// slide moves cum forward.
func (f *flow) slide(cum BlockID) {
	if d := cum - f.cum; d < MaxWindow {
		f.sack >>= d
	} else {
		f.sack = 0
	}
	f.cum = cum
}

// normalise moves cum over the blocks that sack has at its beginning.
func (f *flow) normalise() {
	k := bits.TrailingZeros64(^f.sack)
	f.sack >>= k
	f.cum += BlockID(k)
}

// setPassed notes that a relay passed the block on.
func (f *flow) setPassed(id BlockID) {
	switch {
	case !f.passedAny:
		f.passedAny, f.passedTop, f.passedBits = true, id, 1
	case id > f.passedTop:
		if d := id - f.passedTop; d < 64 {
			f.passedBits <<= d
		} else {
			f.passedBits = 0
		}
		f.passedTop = id
		f.passedBits |= 1
	case f.passedTop-id < 64:
		f.passedBits |= 1 << (f.passedTop - id)
	}
}

// passed reports whether a relay passed the block on. Blocks further back
// than the window are acknowledged end to end by the meaning of the window.
func (f *flow) passed(id BlockID) bool {
	if !f.passedAny || id > f.passedTop {
		return false
	}
	d := f.passedTop - id
	return d >= 64 || f.passedBits>>d&1 != 0
}

// slots counts the large blocks of the flow against H: complete and not yet
// passed on, or reserved by a grant (paper §3.3; reserved at the grant, so that
// concurrent grants cannot overrun H).
func (f *flow) slots() int {
	k := 0
	for _, b := range f.blocks {
		if b.micro || b.resend {
			continue
		}
		if b.rx == rxGranted || b.rx == rxSuspended || b.rx == rxComplete && b.tx != txPassed {
			k++
		}
	}
	return k
}

// micro counts the flow's micro-blocks that are here and were never passed on.
func (f *flow) micro() (bytes vtime.Bytes, blocks int) {
	for _, b := range f.blocks {
		if b.micro && b.room > 0 && !b.resend {
			bytes += vtime.Bytes(b.size)
			blocks++
		}
	}
	return bytes, blocks
}

// lookup returns a flow known to the node, or nil. Packets come in bursts: most are
// of the flow of the one before.
func (n *Node) lookup(key FlowKey) *flow {
	if f := n.looked; f != nil && f.key == key {
		return f
	}
	f := n.index[key]
	if f != nil {
		n.looked = f
	}
	return f
}

// newFlow adds a flow; nil if the table is full of flows in use.
func (n *Node) newFlow(now vtime.Time, key FlowKey, role Role) *flow {
	if len(n.flows) >= n.cfg.MaxFlows && !n.evictFlow(now) {
		return nil
	}
	f := &flow{key: key, role: role, used: now}
	f.stats.Key, f.stats.Role = key, role
	n.flows = append(n.flows, f)
	n.index[key] = f
	return f
}

// evictFlow forgets the relayed flow that has been idle longest, first among
// those without blocks, then among those of which there are only announcements,
// parts of blocks (whoever announced them does so again) and the cache's copies.
// Flows with blocks to pass on, and flows that begin or end here, stay.
func (n *Node) evictFlow(now vtime.Time) bool {
	var oldest *flow
	for _, f := range n.flows {
		if f.role != Relay || f.custody() {
			continue
		}
		empty := len(f.blocks) == 0
		if oldest == nil || empty && len(oldest.blocks) > 0 || empty == (len(oldest.blocks) == 0) && f.used < oldest.used {
			oldest = f
		}
	}
	if oldest == nil {
		return false
	}
	held := len(oldest.blocks) > 0
	n.forget(oldest)
	if held {
		n.regrant(now)
	}
	return true
}

// custody reports whether the node has a block of the flow to pass on.
func (f *flow) custody() bool {
	for _, b := range f.blocks {
		if b.complete() && !b.cached {
			return true
		}
	}
	return false
}

// forget drops a flow with everything that it has here.
func (n *Node) forget(f *flow) {
	for len(f.blocks) > 0 {
		n.free(f.blocks[len(f.blocks)-1])
	}
	for _, p := range n.active {
		p.ring.remove(func(x **flow) bool { return *x == f })
		p.control.remove(func(c *controlItem) bool { return c.f == f })
	}
	delete(n.index, f.key)
	if n.looked == f {
		n.looked = nil
	}
	for i, x := range n.flows {
		if x == f {
			copy(n.flows[i:], n.flows[i+1:])
			n.flows[len(n.flows)-1] = nil
			n.flows = n.flows[:len(n.flows)-1]
			return
		}
	}
}
