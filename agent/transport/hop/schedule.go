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
	sendWait                      // a BACK that says that a request waits
	sendVBACK                     // an answer to a VBSYN
	forwardE2E                    // an end-to-end BACK of a flow unknown here
	maxReplies = 256              // bound of the last four
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
		n.push(controlItem{kind: kind, b: b, f: b.f})
	}
}

// dropControl takes owed messages of the block back.
func (n *Node) dropControl(b *block, what uint8) {
	if b.owes&what == 0 {
		return
	}
	b.owes &^= what
	for _, p := range n.active {
		p.control.remove(func(c *controlItem) bool { return c.b == b && b.owes&oweBit(c.kind) == 0 })
	}
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

// reply queues a message that belongs to no block. Beyond maxReplies per port
// it is dropped: whoever asked asks again.
func (n *Node) reply(c controlItem) {
	if p := n.portOf(&c); p.replies < maxReplies {
		p.replies++
		p.control.push(c)
		n.activate(p)
	}
}

// sendControl builds an owed message that was taken from the port; false if it
// is not owed any more or has no route.
func (n *Node) sendControl(now vtime.Time, p *port, c *controlItem) bool {
	switch c.kind {
	case sendBSYN:
		c.b.owes &^= oweBSYN
		return n.sendBSYN(now, p, c.b)
	case sendBACK:
		c.b.owes &^= oweBACK
		return n.sendBACK(c.b)
	case sendVBSYN:
		c.b.owes &^= oweVBSYN
		return n.sendVBSYN(now, p, c.b)
	case sendE2E:
		return n.sendE2E(now, c.f)
	}
	p.replies--
	m := n.out
	m.To, m.Class, m.header, m.data = c.to, Control, c.hdr, nil
	switch c.kind {
	case sendFull:
		putFull(m.bitmap(), int(c.hdr.count))
	case sendWait:
		clear(m.bitmap())
	case forwardE2E:
		next, ok := n.routes.NextHop(c.hdr.key.Src)
		if !ok {
			n.stats.NoRoute++
			return false
		}
		m.To, m.cum, m.sack = next, c.cum, c.sack
	}
	return true
}

// poll builds the next message to send now in n.out; false if there is none or no
// queue takes one. The ports take turns by packets, so that one whose queue
// never fills leaves the others their chance.
func (n *Node) poll(now vtime.Time) bool {
	for {
		n.moved = false
		for i := 0; i < len(n.active); {
			k := (n.turn + i) % len(n.active)
			p := n.active[k]
			if n.pollPort(now, p) {
				n.turn = k + 1
				return true
			}
			if !p.idle() {
				i++
				continue
			}
			p.active = false
			n.active = append(n.active[:k], n.active[k+1:]...)
			if k < n.turn {
				n.turn--
			}
		}
		if !n.moved {
			return false
		}
	}
}

// pollPort builds the port's next message: control first, then micro-blocks,
// then one txop of data per flow, round robin (paper §3.5).
func (n *Node) pollPort(now vtime.Time, p *port) bool {
	if p == n.nowhere {
		for p.control.len() > 0 {
			if c := p.control.pop(); !n.elsewhere(p, &c) {
				n.sendControl(now, p, &c) // which notes that there is no route
			}
		}
		return false
	}
	if p.control.len() > 0 || p.micro.len() > 0 {
		for n.room(now, p, Control) {
			if p.control.len() > 0 {
				c := p.control.pop()
				if n.elsewhere(p, &c) {
					continue
				}
				if n.sendControl(now, p, &c) {
					return n.give(now, p)
				}
				continue
			}
			if p.wire && !n.room(now, p, Data) {
				break
			}
			if n.pollMicro(now, p) {
				return n.give(now, p)
			}
			break
		}
	}
	for p.ring.len() > 0 && !n.paused(now, p) && n.room(now, p, Data) {
		if n.pollData(now, p) {
			return n.give(now, p)
		}
	}
	if p.draining.len() > 0 {
		n.lookAt(now, p, Data)
		n.lookAt(now, p, Control)
		n.drain(now, p)
		if p.control.len() > 0 && n.room(now, p, Control) {
			return n.pollPort(now, p)
		}
	}
	n.lookAgain(now, p)
	return false
}

// give counts the message as handed to the port.
func (n *Node) give(now vtime.Time, p *port) bool {
	m := n.out
	m.Port = p.id
	p.queue(m.Class).give(now)
	if m.Class == Control {
		n.stats.ControlSent++
	} else {
		n.stats.DataSent++
	}
	return true
}

// pollData builds the next data packet of the port's round robin; false if the
// flow whose turn it is has none, which leaves the ring.
func (n *Node) pollData(now vtime.Time, p *port) bool {
	f := *p.ring.at(0)
	var b *block
	for _, x := range f.blocks {
		if x.tx == txSending && !x.micro && x.port == p {
			b = x
			break
		}
	}
	if b == nil {
		p.ring.pop()
		n.endTxop(p)
		return false
	}
	n.sendData(now, b, Data)
	if p.credit--; p.credit <= 0 {
		n.endTxop(p)
		p.ring.push(p.ring.pop())
	}
	return true
}

// sendData builds the next packet of the block's round. The last one of the
// round puts the block into the draining list.
func (n *Node) sendData(now vtime.Time, b *block, c Class) {
	i := b.todo.next(b.cursor)
	b.todo.del(i)
	b.ntodo--
	b.cursor = i + 1
	m := n.outOf(b, typeData, c)
	m.To, m.attempt, m.seq = b.next, b.attempt, uint16(i)
	if b.micro {
		m.flags = flagMicro
	}
	from, size := b.offset(i), b.length(i)
	m.lend(b, b.buf[from:from+size])
	s := &b.f.stats
	s.PacketsSent++
	s.BytesSent += vtime.Bytes(size)
	if b.round > 1 {
		s.Retransmitted++
		s.BytesAgain += vtime.Bytes(size)
	}
	if b.resend {
		s.DataAgain++
		n.stats.DataAgain++
	}
	if b.ntodo == 0 {
		n.lastGiven(now, b)
	}
}

// lastGiven notes that the packet being built ends the block's round. On a
// wire the BSYN may follow at once: nothing overtakes there. (A micro-block has
// no BSYN to send, but the timer of its answer begins when the packet leaves.)
func (n *Node) lastGiven(now vtime.Time, b *block) {
	p := b.port
	if p.wire && !b.micro {
		b.lastAnswer = now // the grant lasts from the last packet, not from its beginning
		n.drained(now, b)
		n.pump(now, b.f) // the next block is announced behind it
		return
	}
	b.tx = txDraining
	b.drainMark = p.queue(b.class()).given + 1 // give counts it next
	p.draining.push(b)
}

// enring puts the block's flow into its port's round robin, or a micro-block
// into its own queue.
func (n *Node) enring(b *block) {
	p := b.port
	n.activate(p)
	if b.micro {
		p.micro.push(b)
		return
	}
	if !p.inRing(b.f) {
		p.ring.push(b.f)
	}
}
