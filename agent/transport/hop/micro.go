package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Micro-blocks (paper §3.5): a block of at most MicroThreshold bytes travels
// together with its BSYN, in the voice queue with link-layer ARQ, before any
// bulk data. It waits for no grant: withholding and H do not apply to it; a
// node holds at most MicroWindow bytes of a flow's.

// inline reports whether the block fits into the BSYN itself.
func (b *block) inline(payload int) bool {
	return b.micro && b.count == 1 && announceLen+b.size <= payload
}

// startMicro sends the BSYN and the whole block behind it.
func (n *Node) startMicro(now vtime.Time, b *block) {
	n.timers.stop(&b.txTimer)
	b.todo.reset(b.count)
	for i := range b.count {
		b.todo.add(i)
	}
	b.ntodo, b.cursor, b.round = b.count, 0, 1
	b.f.stats.Rounds++
	b.lastAnswer = now
	b.tx = txSending
	n.owe(b, oweBSYN)
	n.enring(b)
}

// pollMicro builds the next data packet of the oldest micro-block.
func (n *Node) pollMicro(now vtime.Time, p *port) bool {
	if p.micro.len() == 0 {
		return false
	}
	b := *p.micro.at(0)
	n.sendData(now, b, Control)
	if b.tx != txSending {
		p.micro.pop()
	}
	return true
}

// announcedMicro takes the BSYN (or VBSYN) of a micro-block that is not
// complete here.
func (n *Node) announcedMicro(now vtime.Time, b *block, m *message) {
	f := b.f
	if b.rx == rxRequested {
		if f.hold == HoldAll {
			n.holdMicro(now, b)
			return
		}
		if !n.custody(b) || !n.microRoom(b) || !n.allocate(b, false) {
			f.stats.Blocked++
			n.discard(b)
			return
		}
	}
	n.receiveMicro(now, b)
	if m.flags&flagInline != 0 {
		n.take(now, b, 0, m)
	}
	// An incomplete micro-block is answered only when asked: at its beginning
	// the data are just behind the BSYN.
	if b.rx != rxComplete && (m.flags&flagPoll != 0 || m.typ == typeVBSYN) {
		n.owe(b, oweBACK)
	}
}

// receiveMicro takes what comes of a micro-block from now on.
func (n *Node) receiveMicro(now vtime.Time, b *block) {
	if b.rx == rxRequested {
		b.have.reset(b.count)
	}
	b.rx = rxGranted
	b.lastHeard = now
	n.timers.set(&b.rxTimer, now.Add(n.cfg.GrantExpiry))
}

// microRoom reports whether a relay may take one more micro-block of the
// flow. Silent ones make room: they are kept until then, because a sender
// with many micro-blocks on a slow link comes back to each only after long.
func (n *Node) microRoom(b *block) bool {
	f := b.f
	full := func() bool {
		bytes, blocks := f.micro()
		return bytes+vtime.Bytes(b.size) > n.cfg.MicroWindow || blocks >= MaxWindow
	}
	for f.role == Relay && full() {
		var silent *block
		for _, x := range f.blocks {
			if x.micro && x.rx == rxSuspended && (silent == nil || x.lastHeard < silent.lastHeard) {
				silent = x
			}
		}
		if silent == nil {
			return false
		}
		n.free(silent)
	}
	return true
}
