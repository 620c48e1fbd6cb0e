package winrewrite

import (
	"encoding/binary"

	"github.com/hopbed/hopbed/netem/inet"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Change is a window that a packet is to have in place of its own. The zero value
// is none.
type Change struct {
	at       int // of the TCP header in the packet; 0: no change
	from, to uint16
}

// Any reports whether there is a change.
func (c Change) Any() bool { return c.at > 0 }

// Offsets in a TCP header (RFC 9293 §3.1).
const (
	offsetData     = 12
	offsetFlags    = 13
	offsetWindow   = 14
	offsetChecksum = 16
)

// Apply writes the window into the packet that See was given, or a copy of it,
// and repairs the checksum by what changed (RFC 1624, equation 3), so that a packet
// that was damaged stays so.
func (c Change) Apply(packet []byte) {
	if !c.Any() {
		return
	}
	h := packet[c.at:]
	binary.BigEndian.PutUint16(h[offsetWindow:], c.to)
	sum := uint32(^binary.BigEndian.Uint16(h[offsetChecksum:])) + uint32(^c.from) + uint32(c.to)
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(h[offsetChecksum:], ^uint16(sum))
}

// SeePacket is See for an IP packet, from its IP header on. What is not TCP, or
// cannot be read as such, passes without a change: fragments but the first,
// IPv6 with extension headers, packets that are cut short.
func (r *Rewriter) SeePacket(now vtime.Time, packet []byte, d Direction) Change {
	s, at, ok := parse(packet)
	if !ok {
		return Change{}
	}
	to := r.See(now, &s, d)
	if to == s.Window {
		return Change{}
	}
	return Change{at: at, from: s.Window, to: to}
}

// parse reads the TCP segment of a packet, and says where its header begins.
func parse(packet []byte) (s Segment, at int, ok bool) {
	total := 0 // the packet's length by its IP header
	switch {
	case len(packet) >= inet.IPv4Len && packet[0]>>4 == 4: // RFC 791 §3.1
		at = int(packet[0]&0xf) * 4
		total = int(binary.BigEndian.Uint16(packet[2:]))
		if at < inet.IPv4Len || packet[9] != inet.ProtocolTCP || binary.BigEndian.Uint16(packet[6:])&0x1fff != 0 {
			return s, 0, false
		}
		s.Src.IP, s.Dst.IP = mapped(packet[12:16]), mapped(packet[16:20])
	case len(packet) >= ipv6Len && packet[0]>>4 == 6: // RFC 8200 §3
		at = ipv6Len
		total = at + int(binary.BigEndian.Uint16(packet[4:]))
		if packet[6] != inet.ProtocolTCP {
			return s, 0, false
		}
		s.Src.IP, s.Dst.IP = [16]byte(packet[8:]), [16]byte(packet[24:])
	default:
		return s, 0, false
	}
	if total > len(packet) || total < at+inet.TCPLen {
		return s, 0, false
	}
	h := packet[at:total]
	data := int(h[offsetData]>>4) * 4
	if data < inet.TCPLen || data > len(h) {
		return s, 0, false
	}
	s.Src.Port, s.Dst.Port = binary.BigEndian.Uint16(h), binary.BigEndian.Uint16(h[2:])
	s.SYN = h[offsetFlags]&0x02 != 0
	s.Window = binary.BigEndian.Uint16(h[offsetWindow:])
	s.Payload = len(h) - data
	s.WScale = -1
	if s.SYN {
		s.options(h[inet.TCPLen:data])
	}
	return s, at, true
}

const ipv6Len = 40

func mapped(v4 []byte) (a [16]byte) {
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], v4)
	return a
}

// options reads those of a SYN (RFC 9293 §3.1, RFC 7323 §2.2) up to the first
// that is malformed.
func (s *Segment) options(o []byte) {
	for len(o) > 0 {
		switch o[0] {
		case 0: // end of the list
			return
		case 1: // no operation
			o = o[1:]
			continue
		}
		if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) {
			return
		}
		switch {
		case o[0] == 2 && o[1] == 4:
			s.MSS = int(binary.BigEndian.Uint16(o[2:]))
		case o[0] == 3 && o[1] == 3:
			s.WScale = int(o[2])
		}
		o = o[o[1]:]
	}
}
