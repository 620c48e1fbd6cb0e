package hop

import "github.com/hopbed/hopbed/netem/vtime"

// controlKind is a kind of control message to send.
type controlKind uint8

const (
	sendBSYN   controlKind = iota // for b
	sendBACK                      // for b
	sendVBSYN                     // for b
	sendE2E                       // for f: its newest end-to-end BACK
	sendFull                      // a BACK with every bit set, for a block that is not kept
	sendVBACK                     // an answer to a VBSYN
	forwardE2E                    // an end-to-end BACK of a flow unknown here
	maxReplies = 256              // bound of the last three
)

// controlItem is one control message that is owed. Messages of a block or
// flow are built when they are sent, so that they say what is true then and
// never pile up; the others carry their fields.
type controlItem struct {
	kind controlKind
	b    *block
	f    *flow
	to   NodeID
	hdr  header
	cum  BlockID
	sack uint64
}

// owe queues a control message of the block, once.
func (n *Node) owe(b *block, what uint8) {
	if b.owes&what == 0 {
		b.owes |= what
		kind := sendBSYN
		switch what {
		case oweBACK:
			kind = sendBACK
		case oweVBSYN:
			kind = sendVBSYN
		}
		n.control.push(controlItem{kind: kind, b: b, f: b.f})
	}
}

// dropControl takes owed messages of the block back.
func (n *Node) dropControl(b *block, what uint8) {
	if b.owes&what == 0 {
		return
	}
	b.owes &^= what
	n.control.remove(func(c *controlItem) bool { return c.b == b && b.owes&oweBit(c.kind) == 0 })
}

// oweBit is the owes bit of a block's control message.
func oweBit(k controlKind) uint8 {
	switch k {
	case sendBSYN:
		return oweBSYN
	case sendBACK:
		return oweBACK
	case sendVBSYN:
		return oweVBSYN
	}
	return 0
}

// reply queues a message that belongs to no block. Beyond maxReplies it is
// dropped: whoever asked asks again.
func (n *Node) reply(c controlItem) {
	if n.replies < maxReplies {
		n.replies++
		n.control.push(c)
	}
}

// sendControl builds an owed message; false if it is not owed any more or has
// no route.
func (n *Node) sendControl(now vtime.Time, c controlItem) (Packet, bool) {
	switch c.kind {
	case sendBSYN:
		c.b.owes &^= oweBSYN
		return n.sendBSYN(now, c.b)
	case sendBACK:
		c.b.owes &^= oweBACK
		return n.sendBACK(c.b)
	case sendVBSYN:
		c.b.owes &^= oweVBSYN
		return n.sendVBSYN(now, c.b)
	case sendE2E:
		return n.sendE2E(c.f)
	}
	n.replies--
	to := c.to
	size := 0
	switch c.kind {
	case sendFull:
		size = (int(c.hdr.count) + 7) / 8
		putFull(n.scratch[HeaderLen:], int(c.hdr.count))
	case forwardE2E:
		next, ok := n.routes.NextHop(c.hdr.key.Src)
		if !ok {
			n.stats.NoRoute++
			return Packet{}, false
		}
		to, size = next, e2eLen
		putE2E(n.scratch[HeaderLen:], c.cum, c.sack)
	}
	pkt := n.scratch[:HeaderLen+size]
	seal(pkt, &c.hdr)
	return Packet{To: to, Class: Control, Buf: pkt}, true
}

// poll returns the next packet: control first, then micro-blocks, then one
// txop of data per flow, round robin (paper §3.5).
func (n *Node) poll(now vtime.Time) (Packet, bool) {
	if n.control.len() > 0 || n.microRing.len() > 0 {
		for n.room(now, Control) {
			if n.control.len() > 0 {
				if p, ok := n.sendControl(now, n.control.pop()); ok {
					return n.give(now, p)
				}
				continue
			}
			if p, ok := n.pollMicro(); ok {
				return n.give(now, p)
			}
			break
		}
	}
	for n.ring.len() > 0 && !n.paused(now) && n.room(now, Data) {
		if p, ok := n.pollData(now); ok {
			return n.give(now, p)
		}
	}
	if n.draining.len() > 0 {
		n.lookAt(now, Data)
		n.lookAt(now, Control)
		n.drain(now)
		if n.control.len() > 0 && n.room(now, Control) {
			return n.poll(now)
		}
	}
	n.lookAgain(now)
	return Packet{}, false
}

// give counts the packet as handed to the MAC.
func (n *Node) give(now vtime.Time, p Packet) (Packet, bool) {
	n.mac[p.Class].give(now)
	if p.Class == Control {
		n.stats.ControlSent++
	} else {
		n.stats.DataSent++
	}
	return p, true
}

// pollData takes the next data packet of the round robin; false if the flow
// whose turn it is has none, which leaves the ring.
func (n *Node) pollData(now vtime.Time) (Packet, bool) {
	f := *n.ring.at(0)
	var b *block
	for _, x := range f.blocks {
		if x.tx == txSending && !x.micro {
			b = x
			break
		}
	}
	if b == nil {
		n.ring.pop()
		f.inRing = false
		n.endTxop()
		return Packet{}, false
	}
	p := n.sendData(b, Data)
	if n.credit--; n.credit <= 0 {
		n.endTxop()
		n.ring.push(n.ring.pop())
	}
	return p, true
}

// sendData builds the next packet of the block's round. The last one of the
// round puts the block into the draining list.
func (n *Node) sendData(b *block, c Class) Packet {
	i := b.todo.next(b.cursor)
	b.todo.del(i)
	b.ntodo--
	b.cursor = i + 1
	h := header{typ: typeData, ttl: 1, key: b.f.key, block: b.id, attempt: b.attempt,
		seq: uint16(i), count: uint16(b.count), sent: b.sent}
	if b.micro {
		h.flags = flagMicro
	}
	pkt := n.scratch[:HeaderLen+b.length(i)]
	copy(pkt[HeaderLen:], b.buf[b.offset(i):])
	seal(pkt, &h)
	s := &b.f.stats
	s.PacketsSent++
	s.BytesSent += vtime.Bytes(b.length(i))
	if b.round > 1 {
		s.Retransmitted++
	}
	if b.ntodo == 0 {
		n.lastGiven(b)
	}
	return Packet{To: b.next, Class: c, Buf: pkt}
}

// lastGiven notes that the packet being built ends the block's round.
func (n *Node) lastGiven(b *block) {
	b.tx = txDraining
	b.drainMark = n.mac[b.class()].given + 1 // give counts it next
	n.draining.push(b)
}

// enring puts the block's flow into the round robin, or a micro-block into
// its own queue.
func (n *Node) enring(b *block) {
	if b.micro {
		n.microRing.push(b)
		return
	}
	if !b.f.inRing {
		b.f.inRing = true
		n.ring.push(b.f)
	}
}
