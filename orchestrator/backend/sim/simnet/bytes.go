package simnet

import (
	"github.com/hopbed/hopbed/agent/coop"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/inet"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/orchestrator/backend/sim/simhop"
)

// What a capture needs: packets as bytes, and the pipes to watch. Nothing of it
// has an effect on the run.

// The range of Linux's ephemeral ports (net.ipv4.ip_local_port_range).
const (
	firstEphemeral = 32768
	numEphemeral   = 60999 - firstEphemeral + 1
)

// ephemeralPort returns the port of a new connection that a node makes.
func (n *Net) ephemeralPort(node int) uint16 {
	h := &n.hosts[node]
	p := firstEphemeral + h.ephemeral%numEphemeral
	h.ephemeral++
	return p
}

// Pipe returns the pipe of a wired link (an index in Config.Pipes) that leads
// away from its given end.
func (n *Net) Pipe(link, end int) *pipe.Pipe { return n.ports[link][end].pipe }

// Bytes writes packets of a network as the bytes that they stand for. Those of Hop
// are complete; payloads of TCP and UDP, which the model does not have, are zeros.
type Bytes struct {
	net     *Net
	addr    func(node int) [4]byte
	options [40]byte
	hop     [hop.MaxPacket]byte
}

// Bytes returns the network's packets as bytes; addr gives a node's address.
func (n *Net) Bytes(addr func(node int) [4]byte) *Bytes { return &Bytes{net: n, addr: addr} }

// The DSCPs of Hop's classes, as agents send them: CS1 and CS6.
var hopDSCP = [hop.NumClasses]uint8{hop.Data: 8, hop.Control: 48}

// Append appends the first limit bytes, at least, of a packet, or all of it, to
// dst: from the IP header on. payload is that of the frame or of the pipe's packet
// that carries it.
func (b *Bytes) Append(dst []byte, payload any, limit int) []byte {
	p := payload.(*packet)
	from := len(dst)
	ip := inet.IPv4{Length: uint16(p.len), ID: p.id, TTL: p.ttl, Src: b.addr(int(p.src)), Dst: b.addr(int(p.dst)), Protocol: inet.ProtocolUDP}
	switch {
	case p.hop != nil:
		ip.DSCP = hopDSCP[simhop.ClassOf(p.ac)]
		dst = ip.AppendUDP(ip.Append(dst), transport.HopPort, transport.HopPort, p.hop.Bytes(b.hop[:0]))
	case p.beacon:
		ip.DSCP, ip.Dst = coop.DSCP, [4]byte{255, 255, 255, 255}
		dst = ip.AppendUDP(ip.Append(dst), coop.Port, coop.Port, coop.Beacon())
	case p.udp != nil:
		port := uint16(transport.FlowPort + p.udp.order.ID)
		ip.DSCP = uint8(p.udp.order.Options.DSCP)
		dst = ip.AppendUDP(ip.Append(dst), port, port, nil)
	default:
		ip.Protocol = inet.ProtocolTCP
		ip.DSCP = p.to.link.dscp
		dst = b.appendTCP(ip.Append(dst), &ip, p)
	}
	for to := from + min(limit, int(p.len)); len(dst) < to; {
		dst = append(dst, 0)
	}
	return dst
}

func (b *Bytes) appendTCP(dst []byte, ip *inet.IPv4, p *packet) []byte {
	s, to, from := p.seg, p.to, p.to.peer
	o := b.options[:0]
	if s.Flags&tcp.SYN != 0 && s.MSS > 0 {
		o = inet.AppendMSS(o, uint16(s.MSS))
	}
	permitted := s.Flags&tcp.SYN != 0 && s.SACKPermitted
	switch {
	case s.HasTS:
		o = inet.AppendTimestamps(o, permitted, s.TSVal, s.TSEcr)
	case permitted:
		o = inet.AppendSACKPermitted(o)
	}
	if s.Flags&tcp.SYN != 0 {
		if s.WScale >= 0 {
			o = inet.AppendWindowScale(o, uint8(s.WScale))
		}
	} else if s.NSACK > 0 {
		o = inet.AppendSACK(o, s.NSACK)
		base := to.initial()
		for _, k := range s.SACK[:s.NSACK] {
			o = inet.AppendEdge(inet.AppendEdge(o, base+uint32(k.Start)), base+uint32(k.End))
		}
	}
	h := inet.TCP{Src: from.port, Dst: to.port, Seq: from.initial() + uint32(s.Seq), Flags: uint8(s.Flags), Window: s.Window, Options: o}
	if s.Flags&tcp.ACK != 0 {
		h.Ack = to.initial() + uint32(s.Ack)
	}
	return ip.AppendTCP(dst, &h)
}

// initial is the socket's initial sequence number on the wire: the model counts
// from 0. It mixes what tells connections apart, as RFC 9293 §3.4.1 has it.
func (s *socket) initial() uint32 {
	x := s.net.cfg.Seed ^ uint64(s.node)<<48 ^ uint64(s.peer.node)<<32 ^ uint64(s.port)<<16 ^ uint64(s.peer.port)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finaliser of splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32(x >> 32)
}
