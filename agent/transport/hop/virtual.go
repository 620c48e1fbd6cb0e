package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Virtual retransmission (paper §3.2). The source repeats a block that was
// not acknowledged end to end in time by a token, the VBSYN, that travels
// over the relays that have the block in their cache. Only behind the last of
// these are data sent again.

// maxE2E bounds the doubling of the end-to-end timeout.
const maxE2E = vtime.Minute

// e2eTimeout is the flow's end-to-end timeout: E2EInitial before the first
// end-to-end BACK, then twice the latest block's round-trip delay, or with
// E2ELiteral that delay.
func (n *Node) e2eTimeout(f *flow) vtime.Duration {
	switch {
	case f.stats.E2EDelay == 0:
		return n.cfg.E2EInitial
	case n.cfg.E2ELiteral:
		return f.stats.E2EDelay
	}
	return max(2*f.stats.E2EDelay, n.cfg.E2EFloor)
}

// armE2E starts the end-to-end timer of a source's block that the first hop
// has. It doubles with every token, because a token that finds the block on
// its way helps nothing.
func (n *Node) armE2E(now vtime.Time, b *block) {
	d := n.e2eTimeout(b.f)
	if !n.cfg.E2ELiteral {
		limit := max(d, maxE2E)
		d = min(d<<min(b.tokAttempt, 6), limit)
	}
	n.timers.set(&b.vtTimer, now.Add(d))
}

// virtualExpired handles the timer of the end-to-end timeout and of the VBSYN.
func (n *Node) virtualExpired(now vtime.Time, b *block) {
	switch {
	case b.tx != txPassed:
	case b.tok == tokenOut && n.portToward(b.f.key.Dst) == b.bsynPort && n.announcing(now, b):
		n.timers.set(&b.vtTimer, now.Add(b.tokInterval)) // still in the MAC
	case b.tok == tokenOut:
		b.f.stats.BSYNTimeouts++
		b.tokInterval = min(2*b.tokInterval, n.cfg.BSYNCeil)
		n.owe(b, oweVBSYN)
	case b.f.role == SourceRole:
		n.startToken(b, max(b.tokAttempt+1, 1), n.cfg.VirtualTTL)
	}
}

// startToken sends a VBSYN for a block that is cached here.
func (n *Node) startToken(b *block, attempt uint16, ttl uint8) {
	b.tok, b.tokAttempt, b.tokTTL = tokenOut, attempt, ttl
	b.tokInterval = n.cfg.BSYNFloor
	n.owe(b, oweVBSYN)
}

// endToken is called when the next hop has answered the VBSYN.
func (n *Node) endToken(now vtime.Time, b *block) {
	b.tok = tokenNone
	n.timers.stop(&b.vtTimer)
	n.dropControl(b, oweVBSYN)
	if b.f.role == SourceRole {
		n.armE2E(now, b)
		n.stall(now, b.f)
	}
}

// sendVBSYN builds the token and arms its timer.
func (n *Node) sendVBSYN(now vtime.Time, p *port, b *block) bool {
	if b.tok != tokenOut || b.tx != txPassed {
		return false
	}
	n.timers.set(&b.vtTimer, now.Add(b.tokInterval))
	next, ok := n.routes.NextHop(b.f.key.Dst)
	if !ok {
		n.stats.NoRoute++
		return false
	}
	b.tokNext = next
	b.mark(p)
	b.f.stats.Tokens++
	n.stats.Tokens++
	m := n.announce(b, typeVBSYN, b.tokAttempt)
	m.To, m.ttl, m.attempt = next, b.tokTTL, b.tokAttempt
	return true
}

// onVBACK takes the next hop's word that it has the block.
func (n *Node) onVBACK(now vtime.Time, from NodeID, m *message) {
	f := n.lookup(m.key)
	if f == nil {
		n.stats.Unexpected++
		return
	}
	b := f.find(m.block)
	if b == nil || !b.awaits(from, m) {
		n.stats.Unexpected++
		return
	}
	n.endToken(now, b)
}

// awaits reports whether the message answers the block's VBSYN.
func (b *block) awaits(from NodeID, m *message) bool {
	return b.tok == tokenOut && b.tx == txPassed && b.tokNext == from && b.tokAttempt == m.attempt
}

// onVirtualBACK takes a bitmap that answers a VBSYN: the next hop does not
// have the block, and has granted it. The block is sent from here again.
func (n *Node) onVirtualBACK(now vtime.Time, from NodeID, m *message, b *block) {
	if !b.awaits(from, m) {
		n.stats.Unexpected++
		return
	}
	if allOnes(m.data, b.count) {
		n.endToken(now, b)
		return
	}
	b.tok = tokenNone
	n.timers.stop(&b.vtTimer)
	n.dropControl(b, oweVBSYN)
	n.uncache(b)
	b.f.stats.Virtual++
	n.aim(b, from)
	b.token, b.round, b.tries = b.tokAttempt, 0, 0
	n.nextRound(now, b, m.data)
}

// virtualHere passes a token on from a relay that has the whole block: by a
// VBSYN if the block was passed on, else with the block when it goes. Tokens
// are recognised by (flow, block, attempt) and passed on once.
func (n *Node) virtualHere(b *block, m *message) {
	attempt, ttl := m.ann.token, n.cfg.VirtualTTL
	if m.typ == typeVBSYN {
		attempt, ttl = m.attempt, m.ttl-1
	}
	if attempt == 0 || b.tokAny && int16(attempt-b.tokSeen) <= 0 {
		return
	}
	b.tokAny, b.tokSeen = true, attempt
	switch {
	case b.tx != txPassed:
		b.token = attempt
	case ttl > 0:
		n.startToken(b, attempt, ttl)
	}
}

// oweE2E queues the flow's end-to-end BACK, reporting on a block.
func (n *Node) oweE2E(f *flow, id BlockID, sent vtime.Time, ttl uint8) {
	if n.cfg.NoVirtual && f.role == Destination {
		return
	}
	f.e2eBlock, f.e2eSent, f.e2eTTL = id, sent, ttl
	if !f.e2eOwed {
		f.e2eOwed = true
		n.push(controlItem{kind: sendE2E, f: f})
	}
}

// sendE2E builds the flow's end-to-end BACK towards the source.
func (n *Node) sendE2E(now vtime.Time, f *flow) bool {
	f.e2eOwed = false
	next, ok := n.routes.NextHop(f.key.Src)
	if !ok {
		n.stats.NoRoute++ // a VBSYN will ask again
		return false
	}
	f.e2eTold, f.e2eAt = true, now
	m := n.out
	m.To, m.Class, m.data = next, Control, nil
	m.header = header{typ: typeE2EBACK, ttl: f.e2eTTL, key: f.key, block: f.e2eBlock, sent: f.e2eSent}
	m.cum, m.sack = f.cum, f.sack
	return true
}

// onE2E takes an end-to-end BACK: the source frees what it covers, a relay
// does so and passes it on.
func (n *Node) onE2E(now vtime.Time, m *message) {
	f := n.lookup(m.key)
	switch {
	case m.key.Src == n.cfg.ID:
		if f == nil || f.role != SourceRole || !f.plausible(m) {
			n.stats.Unexpected++
			return
		}
		n.sourceE2E(now, f, m)
		return
	case m.key.Dst == n.cfg.ID:
		n.stats.Unexpected++
		return
	case m.ttl <= 1:
		return
	case f == nil:
		h := m.header
		h.ttl--
		n.reply(controlItem{kind: forwardE2E, hdr: h, cum: m.cum, sack: m.sack})
		return
	}
	f.used = now
	f.merge(m.cum, m.sack)
	for i := len(f.blocks) - 1; i >= 0; i-- {
		if b := f.blocks[i]; f.delivered(b.id) {
			if b.active() || b.tx == txHeld {
				f.stats.BlocksSent++
			}
			n.free(b)
		}
	}
	n.oweE2E(f, m.block, m.sent, m.ttl-1)
	n.pump(now, f)
	n.hasten(now, f)
	n.regrant(now)
}

// plausible reports whether the end-to-end BACK speaks only of blocks that
// exist.
func (f *flow) plausible(m *message) bool {
	if m.block >= f.nextID || m.cum > f.nextID {
		return false
	}
	d := f.nextID - m.cum
	return d >= MaxWindow || m.sack>>d == 0
}

// sourceE2E frees what the destination has.
func (n *Node) sourceE2E(now vtime.Time, f *flow, m *message) {
	f.used = now
	if f.find(m.block) != nil {
		if d := now.Sub(m.sent); d > 0 && d < vtime.Hour {
			f.stats.E2EDelay = d
		}
	}
	for i := len(f.blocks) - 1; i >= 0; i-- {
		b := f.blocks[i]
		if b.id < m.cum || b.id-m.cum < MaxWindow && m.sack>>(b.id-m.cum)&1 != 0 {
			n.acknowledge(now, b)
		}
	}
	n.settle(now, f)
	n.pump(now, f)
	n.hasten(now, f)
	n.settle(now, f)
}
