package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Back-pressure of the application at a destination. It is that of a relay
// (paper §3.3) with the application as the next hop: announcements of a held
// flow get no answer, and the blocks stay with whoever has them.

// Hold stops or lets go what a flow that ends here receives: while it is held no
// further block of it is granted. What was granted before still comes, so that
// the App has to have room for one block more (for MaxWindow blocks with
// Config.NoWithholding). A flow that ends elsewhere, or is unknown, is not held.
func (n *Node) Hold(now vtime.Time, key FlowKey, hold bool) {
	f := n.lookup(key)
	if f == nil || f.role != Destination || f.held == hold {
		return
	}
	f.held = hold
	if hold {
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

// HoldLarge stops or lets go the large blocks of every flow that ends here: for
// an application that has no room for more of any of them.
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
	return f.held || n.heldLarge && f.role == Destination
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
