package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Ack withholding (paper §3.4): a receiver tells one sender at a time to send
// a large block. Without ARQ a collision costs the sender nothing that it
// would notice, so that two senders hidden from each other would destroy each
// other's bursts for the whole of their blocks.

// announcedLarge takes a BSYN (or VBSYN) of a large block that is not
// complete here.
func (n *Node) announcedLarge(now vtime.Time, b *block) {
	b.lastReq, b.stale = now, false
	if b.rx == rxGranted {
		b.heard, b.lastHeard = true, now
		n.armGrant(now, b)
		n.owe(b, oweBACK)
		return
	}
	if n.cfg.GrantPoll || n.cfg.NoWithholding {
		if n.mayGrant() && n.eligible(now, b) {
			n.grant(now, b)
		}
	} else {
		n.regrant(now)
	}
	if b.rx == rxGranted {
		return
	}
	if n.mayGrant() {
		b.f.stats.Blocked++
	} else {
		b.f.stats.Withheld++
	}
	n.notify(b)
}

// mayGrant reports whether withholding allows a grant now.
func (n *Node) mayGrant() bool { return n.granted == nil || n.cfg.NoWithholding }

// regrant passes a free grant to the best waiting request. Every event that
// may free a grant or make a request eligible calls it.
func (n *Node) regrant(now vtime.Time) {
	if n.cfg.GrantPoll {
		return
	}
	for n.mayGrant() {
		best := n.best(now)
		if best == nil || !n.grant(now, best) {
			return
		}
	}
}

// best returns the waiting request to grant next, or nil: one that GrantAgeing
// grants have passed by, else the smallest, then the oldest.
func (n *Node) best(now vtime.Time) *block {
	var best *block
	for _, b := range n.waiting {
		if best != nil && !n.before(b, best) || !n.eligible(now, b) {
			continue
		}
		best = b
	}
	return best
}

// before orders two waiting requests.
func (n *Node) before(a, b *block) bool {
	agedA, agedB := a.passedBy >= n.cfg.GrantAgeing, b.passedBy >= n.cfg.GrantAgeing
	switch {
	case agedA != agedB:
		return agedA
	case !agedA && a.size != b.size:
		return a.size < b.size
	}
	return a.firstReq < b.firstReq
}

// eligible reports whether backpressure, memory and routes allow a grant and
// the request still stands.
func (n *Node) eligible(now vtime.Time, b *block) bool {
	if b.stale || n.holding(b.f) || now.Sub(b.lastReq) > n.cfg.RequestTTL || !n.custody(b) {
		return false
	}
	if b.f.role == Relay && !n.cfg.NoBackpressure && b.rx == rxRequested && b.f.slots() >= n.cfg.H && n.evictable(b.f) == nil {
		return false
	}
	return b.room > 0 || n.hasRoom(b)
}

// custody reports whether a relay can take responsibility for the block: it
// knows a next hop, and that is not where the block comes from.
func (n *Node) custody(b *block) bool {
	if b.f.role != Relay {
		return true
	}
	next, ok := n.routes.NextHop(b.f.key.Dst)
	return ok && next != b.from
}

// evictable returns a suspended block of the flow, or nil: its sender was
// silent until its grant expired, and now offers another block.
func (n *Node) evictable(f *flow) *block {
	for _, b := range f.blocks {
		if b.rx == rxSuspended && !b.micro {
			return b
		}
	}
	return nil
}

// grant tells the block's announcer to send. b is eligible. It is false only
// if there is no memory after all.
func (n *Node) grant(now vtime.Time, b *block) bool {
	f := b.f
	if f.role == Relay && !n.cfg.NoBackpressure && b.rx == rxRequested && f.slots() >= n.cfg.H {
		n.free(n.evictable(f))
	}
	if !n.allocate(b, false) {
		return false
	}
	b.rx = rxGranted
	if !n.cfg.NoWithholding {
		n.granted = b
	}
	f.stats.Grants++
	kept := n.waiting[:0]
	for _, w := range n.waiting {
		if w != b {
			if n.eligible(now, w) {
				w.passedBy++
			}
			kept = append(kept, w)
		}
	}
	clear(n.waiting[len(kept):])
	n.waiting = kept
	b.passedBy = 0
	b.heard, b.lastHeard = false, now
	n.armGrant(now, b)
	n.owe(b, oweBACK)
	return true
}

// armGrant sets the timer of a grant's silence.
func (n *Node) armGrant(now vtime.Time, b *block) {
	at := b.lastHeard.Add(n.cfg.GrantExpiry)
	if n.cfg.GrantRepeat > 0 {
		at = vtime.Min(at, now.Add(n.cfg.GrantRepeat))
	}
	n.timers.set(&b.rxTimer, at)
}

// grantExpired handles the receive side's timer.
func (n *Node) grantExpired(now vtime.Time, b *block) {
	if b.rx != rxGranted {
		return
	}
	silent := now.Sub(b.lastHeard)
	if silent < n.cfg.GrantExpiry {
		if n.cfg.GrantRepeat > 0 && silent >= n.cfg.GrantRepeat && !b.micro {
			n.owe(b, oweBACK)
		}
		n.armGrant(now, b)
		return
	}
	b.f.stats.GrantsExpired++
	switch {
	case b.micro:
		b.rx = rxSuspended // microRoom or makeRoom frees it if need be
	case b.nhave == 0:
		n.discard(b)
	default:
		n.stopReceiving(b)
		b.rx, b.stale, b.firstReq = rxSuspended, true, now
		n.waiting = append(n.waiting, b)
	}
	n.regrant(now)
}
