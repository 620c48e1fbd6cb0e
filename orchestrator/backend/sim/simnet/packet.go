package simnet

import (
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/inet"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// packet is an IP packet without its bytes. One packet travels in one frame: a
// node that passes it on from the radio makes a copy, because the sender may
// still repeat the frame that carried it.
type packet struct {
	src, dst int32
	via      int32 // the next hop; a bridge on the way to it is another node
	ttl      uint8
	ac       wifi.AC
	id       uint16      // IP identification
	len      vtime.Bytes // IP total length

	// One of the four: a message of Hop between neighbours; a TCP segment for a
	// socket; a datagram of a UDP flow; or the beacon of a station of cooperative
	// TCP, a broadcast.
	hop    *hop.Message
	to     *socket
	seg    *tcp.Segment
	udp    *udpFlow
	seq    uint64
	beacon bool
	// Of a datagram that is a part of a message: the message's number, and how
	// many of its bytes these are.
	message, part int32

	next *packet // pool
}

// defaultTTL is net.ipv4.ip_default_ttl.
const defaultTTL = 64

// udpHeaders are an IPv4 header (20 B) and a UDP header (8 B).
const udpHeaders vtime.Bytes = inet.IPv4Len + inet.UDPLen

func (n *Net) newPacket() *packet {
	p := n.packets
	if p == nil {
		return new(packet)
	}
	n.packets = p.next
	p.next = nil
	return p
}

// originate returns an empty packet that begins its way at a node.
func (n *Net) originate(node int) *packet {
	p := n.newPacket()
	h := &n.hosts[node]
	h.ident++
	p.src, p.ttl, p.id = int32(node), defaultTTL, h.ident
	return p
}

func (n *Net) freePacket(p *packet) {
	if p.seg != nil {
		n.pool.Put(p.seg)
	}
	if p.hop != nil {
		n.hop.Free(p.hop)
	}
	*p = packet{next: n.packets}
	n.packets = p
}

// copyPacket returns an independent copy.
func (n *Net) copyPacket(p *packet) *packet {
	q := n.newPacket()
	*q = *p
	q.next = nil
	if p.seg != nil {
		q.seg = n.pool.Get()
		*q.seg = *p.seg
	}
	if p.hop != nil {
		q.hop = n.hop.Clone(p.hop)
	}
	return q
}
