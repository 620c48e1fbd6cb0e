package hop

import "github.com/hopbed/hopbed/netem/vtime"

// onAnnounce takes a BSYN or VBSYN from the neighbour that has the block.
func (n *Node) onAnnounce(now vtime.Time, from NodeID, m *message) {
	virtual := m.typ == typeVBSYN
	f := n.meet(now, from, m)
	if f == nil {
		n.stats.Unexpected++
		return
	}
	f.used = now
	b := f.find(m.block)
	n.learnBase(f, m.ann.base)
	if !f.delivered(m.block) {
		n.tellAgain(now, f, m.ann.base)
	}
	switch {
	case f.delivered(m.block):
		// The destination has it: answer, and say so again end to end if the
		// source seems not to know.
		n.answerFull(from, m)
		if virtual || m.ann.token != 0 || f.role == Relay {
			n.oweE2E(f, m.block, m.sent, n.cfg.VirtualTTL)
		}
		return
	case f.role == Destination && m.block-f.cum >= MaxWindow:
		// No honest source is so far ahead, whatever its window; and a
		// destination must never refuse what relays hold: they would have no
		// room for the block that is missing.
		f.stats.Blocked++
		return
	case b != nil && b.complete():
		n.answerFull(from, m)
		n.virtualHere(b, m)
		return
	case b == nil && !virtual && m.ann.token == 0 && f.role == Relay && f.passed(m.block):
		n.answerFull(from, m) // passed on and forgotten: the final BACK was lost
		return
	}
	if b != nil && !n.same(b, m) {
		if b.from != from && !n.abandoned(now, b) {
			n.stats.Unexpected++
			return
		}
		n.discard(b) // the announcer has another block of this number, or the other one was made up
		b = nil
	}
	if b == nil {
		b = n.request(now, f, m)
	}
	if b.from != from && b.rx == rxGranted && b.heard && now.Sub(b.lastHeard) < n.cfg.GrantExpiry {
		n.stats.Unexpected++ // it is coming from another neighbour just now
		return
	}
	b.from = from
	if b.owes&oweBACK == 0 || int16(m.attempt-b.rxAttempt) >= 0 || virtual != b.viaToken {
		b.rxAttempt, b.viaToken = m.attempt, virtual
	}
	b.base = max(b.base, m.ann.base)
	if virtual {
		b.token = m.attempt
	} else if m.ann.token != 0 {
		b.token = m.ann.token
	}
	if b.micro {
		n.announcedMicro(now, b, m)
		return
	}
	n.announcedLarge(now, b)
}

// meet returns the announced block's flow, made if need be; nil if this node
// is the source, the destination refuses, or there is no room.
func (n *Node) meet(now vtime.Time, from NodeID, m *message) *flow {
	if m.key.Src == n.cfg.ID {
		return nil // a loop, or a forgery
	}
	f := n.lookup(m.key)
	if f == nil {
		role := Relay
		if m.key.Dst == n.cfg.ID {
			if !n.app.Accept(now, m.key) {
				return nil
			}
			role = Destination
		} else if next, ok := n.routes.NextHop(m.key.Dst); !ok || next == from {
			return nil
		}
		if f = n.newFlow(now, m.key, role); f == nil {
			return nil
		}
	}
	if f.role == Destination {
		n.follow(now, f, m.ann.base)
	}
	return f
}

// same reports whether the announcement is of the block that is here.
func (n *Node) same(b *block, m *message) bool {
	return b.size == m.ann.size && b.payload == m.ann.payload && b.hash == m.ann.hash && b.micro == (m.flags&flagMicro != 0)
}

// abandoned reports whether nothing was heard of a block that is not complete for
// as long as a grant lasts.
func (n *Node) abandoned(now vtime.Time, b *block) bool {
	if b.rx == rxRequested {
		return now.Sub(b.lastReq) >= n.cfg.GrantExpiry
	}
	return b.rx == rxSuspended || now.Sub(b.lastHeard) >= n.cfg.GrantExpiry
}

// maxRequests bounds the announcements of one flow that are kept without a
// grant: more than one is rare (a route change, a token).
const maxRequests = 4

// request makes the record of an announced block.
func (n *Node) request(now vtime.Time, f *flow, m *message) *block {
	var oldest *block
	k := 0
	for _, b := range f.blocks {
		if b.rx == rxRequested {
			k++
			if oldest == nil || b.lastReq < oldest.lastReq {
				oldest = b
			}
		}
	}
	if k >= maxRequests {
		n.free(oldest)
	}
	b := n.newBlock(f, m.block)
	b.rx = rxRequested
	b.size, b.payload, b.count = m.ann.size, m.ann.payload, int(m.count)
	b.hash, b.sent = m.ann.hash, m.sent
	b.last, b.micro = m.flags&flagLast != 0, m.flags&flagMicro != 0
	b.firstReq, b.lastReq = now, now
	b.have.reset(b.count)
	if !b.micro {
		n.waiting = append(n.waiting, b)
	}
	return b
}

// stopReceiving takes the block out of every list of the receive side.
func (n *Node) stopReceiving(b *block) {
	n.timers.stop(&b.rxTimer)
	n.dropControl(b, oweBACK)
	if n.granted == b {
		n.granted = nil
	}
	for i, x := range n.waiting {
		if x == b {
			copy(n.waiting[i:], n.waiting[i+1:])
			n.waiting[len(n.waiting)-1] = nil
			n.waiting = n.waiting[:len(n.waiting)-1]
			break
		}
	}
}

// onData takes one packet of a block under grant. Packets of blocks that were
// not announced, and of other neighbours than the announcer, are dropped:
// nobody can write into a block but the one who was asked to.
func (n *Node) onData(now vtime.Time, from NodeID, m *message) {
	f := n.lookup(m.key)
	if f == nil || f.role == SourceRole {
		n.stats.Unexpected++
		return
	}
	b := f.find(m.block)
	if b == nil || b.from != from || b.room == 0 {
		if b == nil && (f.delivered(m.block) || f.passed(m.block)) {
			n.redundant(f)
		} else {
			n.stats.Unexpected++
		}
		return
	}
	if b.complete() {
		n.redundant(f)
		return
	}
	i := int(m.seq)
	if int(m.count) != b.count || len(m.data) != b.length(i) {
		n.stats.Unexpected++
		return
	}
	f.used, b.heard, b.lastHeard = now, true, now
	if !b.viaToken && int16(m.attempt-b.rxAttempt) > 0 && b.owes&oweBACK == 0 {
		b.rxAttempt = m.attempt
	}
	n.take(now, b, i, m)
}

// redundant counts a packet of a block that was complete here already: its sender did
// not know, or did not heed it.
func (n *Node) redundant(f *flow) {
	f.stats.Duplicates++
	f.stats.Redundant++
	n.stats.Redundant++
}

// take stores packet i of the block, the message's data.
func (n *Node) take(now vtime.Time, b *block, i int, m *message) {
	f := b.f
	if b.have.has(i) {
		f.stats.Duplicates++
		return
	}
	n.put(b, i, m.data, m.mem)
	b.have.add(i)
	b.nhave++
	if f.role == Destination {
		f.stats.Delivered += vtime.Bytes(len(m.data))
	}
	if b.nhave == b.count {
		n.completed(now, b)
	}
}

// completed is called when a block's last packet has come.
func (n *Node) completed(now vtime.Time, b *block) {
	f := b.f
	if got := b.blockHash(); got != b.hash {
		f.stats.Corrupt++
		if f.role == Destination {
			f.stats.Delivered -= vtime.Bytes(b.size)
			n.app.Failed(now, f.key, &CorruptError{Node: n.cfg.ID, Flow: f.key, Block: b.id, Want: b.hash, Got: got})
		}
		b.nhave = 0
		b.have.reset(b.count)
		b.dropBytes()
		return // the next bitmap is empty, and the block comes again
	}
	owed := b.owes&oweBACK != 0 || b.micro
	n.stopReceiving(b)
	b.rx = rxComplete
	f.stats.BlocksReceived++
	if b.micro {
		f.stats.MicroBlocks++
	}
	if owed {
		n.owe(b, oweBACK)
	}
	if f.role == Destination {
		n.arrived(now, b)
	} else {
		b.tx = txHeld
		n.pump(now, f)
	}
	n.regrant(now)
}

// discard frees a block that is not complete.
func (n *Node) discard(b *block) {
	if b.f.role == Destination && b.nhave > 0 {
		bytes := b.nhave * b.payload
		if last := b.count - 1; b.have.has(last) {
			bytes -= b.payload - b.length(last)
		}
		b.f.stats.Delivered -= vtime.Bytes(bytes)
	}
	n.free(b)
}

// sendBACK builds the answer to the block's announcement.
func (n *Node) sendBACK(b *block) bool {
	m := n.outOf(b, typeBACK, Control)
	m.To, m.attempt = b.from, b.rxAttempt
	if b.viaToken {
		m.flags = flagVirtual
	}
	b.have.put(m.bitmap(), b.count)
	b.f.stats.BACKs++
	return true
}

// answerFull queues the answer to an announcement of a block that is
// complete, here or at the destination: a full BACK, or a VBACK.
func (n *Node) answerFull(to NodeID, m *message) {
	c := controlItem{kind: sendFull, to: to, hdr: header{typ: typeBACK, ttl: 1, key: m.key, block: m.block,
		attempt: m.attempt, count: m.count, sent: m.sent}}
	if m.typ == typeVBSYN {
		c.kind, c.hdr.typ, c.hdr.count = sendVBACK, typeVBACK, 0
	} else if f := n.lookup(m.key); f != nil {
		f.stats.BACKs++
	}
	n.reply(c)
}

// arrived is called when a block is complete at its destination.
func (n *Node) arrived(now vtime.Time, b *block) {
	f := b.f
	f.sack |= 1 << (b.id - f.cum)
	if b.last {
		f.hasLast, f.lastID = true, b.id
	}
	n.oweE2E(f, b.id, b.sent, n.cfg.VirtualTTL)
	if n.cfg.Unordered {
		n.deliver(now, b)
	}
	n.advance(now, f)
}

// deliver hands the block to the App.
func (n *Node) deliver(now vtime.Time, b *block) {
	f := b.f
	age := now.Sub(b.sent)
	f.stats.DelaySum += age
	f.stats.DelayCount++
	n.app.Deliver(now, Delivery{Flow: f.key, Block: b.id, Data: b.buf, Last: b.last, Sent: b.sent, Age: age})
	n.freeBuffer(b)
}

// advance delivers what is next in order, and moves cum.
func (n *Node) advance(now vtime.Time, f *flow) {
	for f.sack&1 != 0 {
		if b := f.find(f.cum); b != nil {
			if b.room > 0 {
				n.deliver(now, b)
			}
			if b.owes&oweBACK != 0 {
				n.answerOwed(b)
			}
			n.free(b)
		}
		f.sack >>= 1
		f.cum++
	}
	if f.hasLast && f.cum > f.lastID && !f.finished {
		f.finished = true
		n.app.Finished(now, f.key)
	}
}

// answerOwed turns the BACK that a complete block owes into one that needs
// the block no more.
func (n *Node) answerOwed(b *block) {
	h := header{typ: typeBACK, ttl: 1, key: b.f.key, block: b.id, attempt: b.rxAttempt, count: uint16(b.count), sent: b.sent}
	if b.viaToken {
		h.flags = flagVirtual
	}
	n.reply(controlItem{kind: sendFull, to: b.from, hdr: h})
	b.f.stats.BACKs++
}

// follow takes the source's base: the blocks below were acknowledged by an
// earlier life of this destination, and never come again. It is believed at
// once by a destination that has nothing yet; later a step is bounded by the
// window, which no true base exceeds.
func (n *Node) follow(now vtime.Time, f *flow, base BlockID) {
	if f.met && (base <= f.cum || base-f.cum > MaxWindow) {
		return
	}
	if !f.met {
		f.met, f.cum = true, base
		return
	}
	for f.cum < base {
		if b := f.find(f.cum); b != nil && !b.complete() {
			n.discard(b)
		}
		f.sack |= 1
		n.advance(now, f)
	}
}
