package hop

import "github.com/hopbed/hopbed/netem/vtime"

// pump starts what may be started of a flow's complete blocks: one large
// block at a time, and micro-blocks up to MicroWindow. At the source it takes
// blocks from the Source as they can be started, never ahead.
func (n *Node) pump(now vtime.Time, f *flow) {
	if f.role == Destination {
		return
	}
	for {
		large, micro := false, vtime.Bytes(0)
		for _, b := range f.blocks {
			if b.active() && !b.resend {
				if b.micro {
					micro += vtime.Bytes(b.size)
				} else {
					large = large || !b.handedOver() || f.behind(b)
				}
			}
		}
		waiting := false
		for _, b := range f.blocks {
			switch {
			case b.tx != txHeld:
			case n.cfg.NoVirtual && b.id-f.oldest() >= MaxWindow:
				waiting = true // see announcedBase
			case b.micro && (micro == 0 || micro+vtime.Bytes(b.size) <= n.cfg.MicroWindow):
				micro += vtime.Bytes(b.size)
				n.start(now, b)
			case !b.micro && !large:
				large = true
				n.start(now, b)
			default:
				waiting = true
			}
		}
		if f.role != SourceRole || waiting || large || micro >= n.cfg.MicroWindow || !n.pull(now, f) {
			return
		}
	}
}

// oldest returns the lowest block that is here and not passed on. There is one.
func (f *flow) oldest() BlockID {
	for _, b := range f.blocks {
		if b.complete() && b.tx != txPassed {
			return b.id
		}
	}
	return f.nextID
}

// start begins the transfer of a complete block to the next hop.
func (n *Node) start(now vtime.Time, b *block) {
	b.round, b.tries, b.granted, b.noticed, b.lastAnswer = 0, 0, false, false, now
	next, ok := n.routes.NextHop(b.f.key.Dst)
	if ok {
		n.aim(b, next)
	}
	b.interval = n.firstWait(b)
	if !ok {
		// The block stays here; the timer looks for a route again.
		n.stats.NoRoute++
		b.tx = txRequest
		n.timers.set(&b.txTimer, now.Add(b.interval))
		b.next = noNode
		return
	}
	b.attempt++
	if b.micro {
		n.startMicro(now, b)
		return
	}
	b.tx = txRequest
	n.owe(b, oweBSYN)
}

// aim sets the block's next hop.
func (n *Node) aim(b *block, next NodeID) {
	p := n.portTo(next)
	if b.port != nil && b.port != p {
		b.f.srtt = rtt{} // another link's
	}
	b.next, b.port = next, p
}

// handedOver reports whether a block on a wire waits for the answer to a round
// that was sent as a whole: the flow's next block may be announced behind it.
func (b *block) handedOver() bool { return b.tx == txPolling && b.granted && b.port.wire }

// behind reports whether an older large block of the flow is still on its way,
// so that the block's own announcement can have no answer yet.
func (f *flow) behind(b *block) bool {
	for _, x := range f.blocks {
		if x == b {
			return false
		}
		if x.active() && !x.resend && !x.micro {
			return true
		}
	}
	return false
}

// firstWait is the wait before the first repetition of a BSYN that has not been
// granted. On a wire it is no shorter than that for a bitmap.
func (n *Node) firstWait(b *block) vtime.Duration {
	d := n.cfg.BSYNFloor
	if n.cfg.BSYNQuick > 0 {
		d = n.cfg.BSYNQuick
	}
	if n.cfg.Notice && b.port != nil && n.adapts(b) {
		d = min(d, n.pollInterval(b))
	}
	if b.port != nil && b.port.wire {
		d = max(d, min(n.pollInterval(b), n.cfg.BSYNFloor))
	}
	return d
}

// noNode is the next hop of a block without a route.
const noNode = ^NodeID(0)

// stopSending takes the block out of every list of the send side.
func (n *Node) stopSending(b *block) {
	n.timers.stop(&b.txTimer)
	n.dropControl(b, oweBSYN)
	switch b.tx {
	case txDraining:
		b.port.draining.remove(func(x **block) bool { return *x == b })
	case txSending:
		if b.micro {
			b.port.micro.remove(func(x **block) bool { return *x == b })
		}
	}
	b.tx = txNone
}

// drained is called when a round's last packet has left the MAC. The BSYN of
// a large block follows; a micro-block's receiver answers by itself when it
// is complete, so that its BSYN is only the repair.
func (n *Node) drained(now vtime.Time, b *block) {
	b.tx = txPolling
	b.tries = 0
	b.interval = n.pollInterval(b)
	if b.micro {
		n.timers.set(&b.txTimer, now.Add(b.interval))
		return
	}
	n.owe(b, oweBSYN)
}

// sendBSYN builds the block's BSYN and arms its timer.
func (n *Node) sendBSYN(now vtime.Time, p *port, b *block) bool {
	if b.tx != txRequest && b.tx != txPolling && !(b.micro && b.tx == txSending) {
		return false
	}
	m := n.announce(b, typeBSYN, b.token)
	m.To, m.attempt = b.next, b.attempt
	b.f.stats.BSYNs++
	if b.tx == txSending {
		// The beginning of a micro-block: its data follow, or are in it.
		if b.inline(n.cfg.Payload) {
			p.micro.remove(func(x **block) bool { return *x == b })
			b.f.stats.BytesSent += vtime.Bytes(b.size)
			n.lastGiven(now, b)
		}
		return true
	}
	if b.tries == 0 {
		b.bsynAt = now
	}
	b.tries++
	b.bsynLast = now
	b.mark(p)
	n.timers.set(&b.txTimer, now.Add(b.interval))
	return true
}

// announce builds a BSYN or VBSYN but for its attempt and to whom it goes.
func (n *Node) announce(b *block, typ msgType, token uint16) *Message {
	m := n.outOf(b, typ, Control)
	if b.last {
		m.flags |= flagLast
	}
	if b.micro {
		m.flags |= flagMicro
		switch {
		case typ != typeBSYN:
		case b.tx == txPolling || b.tx == txRequest:
			m.flags |= flagPoll
		case b.inline(n.cfg.Payload):
			m.flags |= flagInline
			m.lend(b, b.buf)
		}
	}
	m.ann = announcement{size: b.size, payload: b.payload, token: token, base: n.knownBase(b), hash: b.hash}
	return m
}

// announcedBase is the lowest block that may still come to the destination.
// Without end-to-end acknowledgements nobody knows; what is a whole window
// back is given up. It cannot be still on its way: no node lets a block pass
// another one of its flow that is a window older.
func (n *Node) announcedBase(b *block) BlockID {
	if n.cfg.NoVirtual {
		return b.id - min(b.id, MaxWindow-1)
	}
	return b.f.base
}

// sendExpired handles the send side's timer: a BSYN was not answered.
func (n *Node) sendExpired(now vtime.Time, b *block) {
	if b.tx != txRequest && b.tx != txPolling {
		return
	}
	next, ok := n.routes.NextHop(b.f.key.Dst)
	switch {
	case !ok:
		n.stats.NoRoute++
		b.interval = min(2*b.interval, n.cfg.BSYNCeil)
		n.timers.set(&b.txTimer, now.Add(b.interval))
		return
	case next != b.next || n.portTo(next) != b.port:
		n.start(now, b) // the route has changed: begin again with the new hop
		return
	}
	if b.micro && b.tries == 0 {
		// The first BSYN of a micro-block's round: nothing was lost yet but
		// the receiver's own answer.
		n.owe(b, oweBSYN)
		return
	}
	if n.announcing(now, b) || b.port.wire && b.tx == txRequest && b.f.behind(b) {
		// The last one is still in the MAC, which tries on its own; or it cannot
		// be answered before the block ahead has arrived.
		n.timers.set(&b.txTimer, now.Add(b.interval))
		return
	}
	b.f.stats.BSYNTimeouts++
	if b.granted && now.Sub(b.lastAnswer) >= 2*n.cfg.GrantExpiry {
		// The receiver has ended the grant by now, or is gone: ask slowly.
		b.granted = false
		b.tx, b.noticed = txRequest, false
		b.interval = n.cfg.BSYNFloor
	} else if b.granted {
		b.interval = min(2*b.interval, n.pollCeil(b))
	} else {
		b.interval = n.unanswered(b)
	}
	n.owe(b, oweBSYN)
}

// onBACK takes a bitmap from the next hop.
func (n *Node) onBACK(now vtime.Time, from NodeID, m *message) {
	f := n.lookup(m.key)
	if f == nil || f.role == Destination {
		n.stats.Unexpected++
		return
	}
	b := f.find(m.block)
	if b == nil || int(m.count) != b.count {
		n.stats.Unexpected++
		return
	}
	f.used = now
	if m.flags&flagVirtual != 0 {
		n.onVirtualBACK(now, from, m, b)
		return
	}
	if m.flags&flagWait != 0 {
		n.onNotice(now, from, m, b)
		return
	}
	full := allOnes(m.data, b.count)
	switch {
	case !b.active() || from != b.next:
		n.stats.Unexpected++
	case full:
		// True whatever round it answers.
		if b.port.wire && m.attempt == b.attempt && b.tx == txPolling {
			n.measure(now, b)
		}
		n.passOn(now, b)
	case m.attempt != b.attempt || b.tx != txRequest && b.tx != txPolling:
		// It answers an older round (or the receiver repeated itself while
		// this round is under way): what it misses may be on its way.
		n.stats.Unexpected++
	default:
		n.measure(now, b)
		n.nextRound(now, b, m.data)
	}
}

// measure takes the time from a round's BSYN to its answer.
func (n *Node) measure(now vtime.Time, b *block) {
	switch {
	case !b.granted:
	case b.tries == 1:
		b.f.srtt.sample(now.Sub(b.bsynAt)) // Karn: not when repeated
	case b.port.wire:
		b.f.srtt.miss(b.interval)
	case n.cfg.PollAdaptive && b.f.srtt.srtt == 0:
		// Where most exchanges fail there would never be a sample: the time since
		// the last copy is one unless the answer is that of an earlier copy.
		b.f.srtt.sample(now.Sub(b.bsynLast))
	}
}

// nextRound sends what the bitmap misses.
func (n *Node) nextRound(now vtime.Time, b *block, have []byte) {
	n.timers.stop(&b.txTimer)
	n.dropControl(b, oweBSYN)
	b.ntodo = b.todo.missing(have, b.count)
	if b.round > 0 && b.ntodo == b.count && !n.intact(now, b) {
		return
	}
	b.cursor = 0
	b.granted = true
	b.lastAnswer = now
	b.attempt++
	b.round++
	b.f.stats.Rounds++
	b.tx = txSending
	n.enring(b)
}

// intact is called when a receiver has nothing after a round of the block: it
// may have found the hash wrong. A relay whose copy is at fault drops it; the
// source's token brings another. A source can only say so.
func (n *Node) intact(now vtime.Time, b *block) bool {
	got := b.blockHash()
	if got == b.hash {
		return true
	}
	b.f.stats.Corrupt++
	if b.f.role == SourceRole {
		n.app.Failed(now, b.f.key, &CorruptError{Node: n.cfg.ID, Flow: b.f.key, Block: b.id, Want: b.hash, Got: got})
		return true
	}
	f := b.f
	n.free(b)
	n.pump(now, f)
	n.regrant(now)
	return false
}

// passOn ends a transfer: the next hop has the block.
func (n *Node) passOn(now vtime.Time, b *block) {
	f := b.f
	n.stopSending(b)
	b.tx = txPassed
	b.resend = true // it counts no more, also if a token has it sent again
	f.stats.BlocksSent++
	if f.role == Relay {
		f.setPassed(b.id)
	}
	switch {
	case n.cfg.NoVirtual:
		n.free(b)
		if f.role == SourceRole {
			f.stats.BlocksAcked++
			n.settle(now, f)
		}
	case f.role == SourceRole:
		n.armE2E(now, b)
	default:
		n.cache(b)
	}
	n.pump(now, f)
	n.hasten(now, f)
	if f.role == SourceRole {
		n.stall(now, f)
	}
	n.regrant(now) // backpressure has eased
}

// hasten is called when a block has arrived: the announcement of the one behind
// it can be answered now, and is repeated soon if that answer is lost.
func (n *Node) hasten(now vtime.Time, f *flow) {
	for _, b := range f.blocks {
		if b.tx == txRequest && b.txTimer.pos != 0 && b.next != noNode && b.port.wire && !b.micro && !f.behind(b) {
			b.interval = n.firstWait(b)
			n.timers.set(&b.txTimer, now.Add(b.interval))
			return
		}
	}
}
