package hop

import (
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Message is one packet as the state machine speaks it: where it goes and what it
// says, not laid out as bytes. PollMessage fills one and ReceiveMessage takes it,
// which is all that a simulation of many nodes in one process needs; Bytes lays it
// out for whoever must see the packet. Its zero value is ready for PollMessage.
//
// A message refers to the bytes of its sender's block instead of a copy, and the block
// that receives it shares them: it has what the sender has. No node uses their memory
// again before everyone has released it, whatever becomes of the block. All nodes that
// exchange messages are therefore driven by one thread.
type Message struct {
	To    NodeID
	Port  Port
	Class Class

	message
	store  []byte // the bitmap of a BACK
	lender *block // whose bytes data are, until PollMessage or Poll returns
}

// Len is the number of bytes of the packet: header and payload, without IP and UDP.
func (m *Message) Len() int { return HeaderLen + m.bodyLen() }

// Bytes appends the packet to dst as it goes over the wire.
func (m *Message) Bytes(dst []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, m.Len())[:at+m.Len()]
	m.put(dst[at:])
	return dst
}

// Release gives the block's bytes back and must be called once for each message
// that PollMessage or Clone filled, before it is filled again. A message that is
// forgotten instead costs its sender a buffer, no more.
func (m *Message) Release() {
	if m.mem != nil {
		m.mem.release()
		m.mem = nil
	}
	m.data = nil
}

// Clone makes m an independent copy of from.
func (m *Message) Clone(from *Message) {
	store := append(m.store[:0], from.store...)
	*m = *from
	m.store = store
	switch {
	case m.mem != nil:
		m.mem.refs++
	case m.typ == typeBACK:
		m.data = store
	}
}

// Poll returns the next packet to send now; false if there is none or no queue
// takes one.
func (n *Node) Poll(now vtime.Time) (Packet, bool) { return n.PollInto(now, n.scratch[:]) }

// PollInto is Poll with the packet laid out in buf, which has room for MaxPacket
// bytes: it is valid for as long as the caller leaves buf alone.
func (n *Node) PollInto(now vtime.Time, buf []byte) (Packet, bool) {
	m := &n.built
	n.out = m
	if !n.poll(now) {
		return Packet{}, false
	}
	m.lender = nil
	buf = buf[:m.Len()]
	m.put(buf)
	return Packet{To: m.To, Port: m.Port, Class: m.Class, Buf: buf}, true
}

// PollMessage is Poll with the packet as a message.
func (n *Node) PollMessage(now vtime.Time, m *Message) bool {
	n.out = m
	if !n.poll(now) {
		return false
	}
	if b := m.lender; b != nil {
		m.lender = nil
		m.mem = b.lend()
	}
	return true
}

// ReceiveMessage is Receive of a packet that another node built with PollMessage.
// m is neither kept nor changed.
func (n *Node) ReceiveMessage(now vtime.Time, from NodeID, m *Message) {
	if m.check() != nil {
		n.stats.BadPackets++
		return
	}
	n.receive(now, from, &m.message)
}

// outOf begins the message of a block in n.out.
func (n *Node) outOf(b *block, typ msgType, c Class) *Message {
	m := n.out
	m.Class = c
	h := &m.header
	h.typ, h.flags, h.ttl = typ, 0, 1
	h.key, h.block = b.f.key, b.id
	h.attempt, h.seq, h.count, h.sent = 0, 0, uint16(b.count), b.sent
	m.data = nil
	return m
}

// lend makes data, which are the block's, those of the message.
func (m *Message) lend(b *block, data []byte) { m.lender, m.data = b, data }

// bitmap makes the message's data a bitmap of m.count bits, and returns it to be
// filled.
func (m *Message) bitmap() []byte {
	size := (int(m.count) + 7) / 8
	if cap(m.store) < size {
		m.store = make([]byte, size)
	}
	m.store = m.store[:size]
	m.data = m.store
	return m.store
}
