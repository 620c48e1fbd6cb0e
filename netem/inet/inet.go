package inet

import "encoding/binary"

// Header lengths in bytes, without options.
const (
	IPv4Len = 20
	UDPLen  = 8
	TCPLen  = 20
)

// Protocol numbers (IANA).
const (
	ProtocolTCP = 6
	ProtocolUDP = 17
)

// IPv4 is a header without options (RFC 791 §3.1). Don't Fragment is set, as
// Linux does for TCP and UDP (path MTU discovery, RFC 1191).
type IPv4 struct {
	DSCP     uint8 // 6 bits
	Length   uint16
	ID       uint16
	TTL      uint8
	Protocol uint8
	Src, Dst [4]byte
}

// Append appends the header with its checksum.
func (h *IPv4) Append(b []byte) []byte {
	at := len(b)
	b = append(b, 0x45, h.DSCP<<2)
	b = binary.BigEndian.AppendUint16(b, h.Length)
	b = binary.BigEndian.AppendUint16(b, h.ID)
	b = append(b, 0x40, 0, h.TTL, h.Protocol, 0, 0) // DF
	b = append(b, h.Src[:]...)
	b = append(b, h.Dst[:]...)
	binary.BigEndian.PutUint16(b[at+10:], ^fold(sum(0, b[at:])))
	return b
}

// AppendUDP appends a UDP header (RFC 768) for the IP header ip, whose Length
// says how long the datagram is. payload is its begin; what is missing is zeros,
// and not appended.
func (h *IPv4) AppendUDP(b []byte, src, dst uint16, payload []byte) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint16(b, h.Length-IPv4Len)
	b = append(b, 0, 0)
	b = append(b, payload...)
	c := ^fold(sum(h.pseudo(), b[at:]))
	if c == 0 {
		c = 0xffff // 0 stands for: no checksum
	}
	binary.BigEndian.PutUint16(b[at+6:], c)
	return b
}

// TCP flags (RFC 9293 §3.1).
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// TCP is a TCP header.
type TCP struct {
	Src, Dst uint16 // ports
	Seq, Ack uint32
	Flags    uint8
	Window   uint16
	// Options are a multiple of 4 bytes, at most 40.
	Options []byte
}

// AppendTCP appends a TCP header for the IP header h, whose Length says how long
// the segment is. The payload is zeros, and not appended.
func (h *IPv4) AppendTCP(b []byte, t *TCP) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, t.Src)
	b = binary.BigEndian.AppendUint16(b, t.Dst)
	b = binary.BigEndian.AppendUint32(b, t.Seq)
	b = binary.BigEndian.AppendUint32(b, t.Ack)
	b = append(b, byte((TCPLen+len(t.Options))/4<<4), t.Flags)
	b = binary.BigEndian.AppendUint16(b, t.Window)
	b = append(b, 0, 0, 0, 0) // checksum, urgent pointer
	b = append(b, t.Options...)
	binary.BigEndian.PutUint16(b[at+16:], ^fold(sum(h.pseudo(), b[at:])))
	return b
}

// TCP options (RFC 9293 §3.2, RFC 7323, RFC 2018) as Linux pads them.

// AppendMSS appends the maximum segment size.
func AppendMSS(o []byte, mss uint16) []byte { return append(o, 2, 4, byte(mss>>8), byte(mss)) }

// AppendWindowScale appends NOP and the window scale.
func AppendWindowScale(o []byte, shift uint8) []byte { return append(o, 1, 3, 3, shift) }

// AppendSACKPermitted appends two NOPs and SACK-permitted.
func AppendSACKPermitted(o []byte) []byte { return append(o, 1, 1, 4, 2) }

// AppendTimestamps appends the timestamps behind two bytes: two NOPs, or
// SACK-permitted.
func AppendTimestamps(o []byte, sackPermitted bool, val, ecr uint32) []byte {
	if sackPermitted {
		o = append(o, 4, 2)
	} else {
		o = append(o, 1, 1)
	}
	o = append(o, 8, 10)
	o = binary.BigEndian.AppendUint32(o, val)
	return binary.BigEndian.AppendUint32(o, ecr)
}

// AppendSACK appends two NOPs and the head of n SACK blocks; the caller appends
// the 2n edges with AppendEdge.
func AppendSACK(o []byte, n int) []byte { return append(o, 1, 1, 5, byte(2+8*n)) }

// AppendEdge appends a sequence number.
func AppendEdge(o []byte, seq uint32) []byte { return binary.BigEndian.AppendUint32(o, seq) }

// pseudo is the sum of the pseudo-header (RFC 9293 §3.1).
func (h *IPv4) pseudo() uint32 {
	s := sum(0, h.Src[:])
	s = sum(s, h.Dst[:])
	return s + uint32(h.Protocol) + uint32(h.Length-IPv4Len)
}

// sum adds 16-bit words to s (RFC 1071); it holds up to 64 KiB.
func sum(s uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
