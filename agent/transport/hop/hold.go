package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Back-pressure of the application at a destination. It is that of a relay
// (paper §3.3) with the application as the next hop: announcements of a held
// flow get no answer, and the blocks stay with whoever has them.

// Holding says what a flow that ends here takes.
type Holding uint8

// What a flow takes: all, but no large block while HoldLarge says so; nothing; or
// all, whatever HoldLarge says.
const (
	HoldAsOthers Holding = iota
	HoldAll
	HoldNothing
)

// Hold sets what a flow that ends here takes. What was granted before still
// comes, so that the App has to have room for one block more (for MaxWindow
// blocks with Config.NoWithholding). A flow that ends elsewhere, or is unknown, is
// not held. With HoldAll it may be called from within Deliver, and then holds back
// the block that is announced behind the delivered one.
func (n *Node) Hold(now vtime.Time, key FlowKey, h Holding) {
	f := n.lookup(key)
	if f == nil || f.role != Destination || f.hold == h {
		return
	}
	f.hold = h
	if h == HoldAll {
		return
	}
	for _, b := range f.blocks { // none leaves
		// A micro-block's sender asks again after up to BSYNCeil; a bitmap tells it
		// to send now.
		if b.micro && b.rx == rxRequested && now.Sub(b.lastReq) <= n.cfg.RequestTTL && n.allocate(b, false) {
			n.receiveMicro(now, b)
			n.owe(b, oweBACK)
		}
	}
	n.regrant(now)
}

// HoldLarge stops or lets go the large blocks of all flows that end here and of
// which Hold says nothing else: for an application that has no room for more. With
// true it may be called from within Deliver.
func (n *Node) HoldLarge(now vtime.Time, hold bool) {
	if n.heldLarge == hold {
		return
	}
	n.heldLarge = hold
	if !hold {
		n.regrant(now)
	}
}

// holding reports whether a flow may get no grant of a large block.
func (n *Node) holding(f *flow) bool {
	return f.hold == HoldAll || n.heldLarge && f.role == Destination && f.hold == HoldAsOthers
}

// holdMicro keeps the announcement of a held flow's micro-block, if it is one
// of the next to be delivered.
func (n *Node) holdMicro(now vtime.Time, b *block) {
	f := b.f
	b.lastReq = now
	f.stats.Blocked++
	k := 0
	last := b
	for _, x := range f.blocks {
		if x.rx == rxRequested {
			k, last = k+1, x
		}
	}
	if k >= maxRequests {
		n.discard(last)
	}
}
