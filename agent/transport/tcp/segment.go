package tcp

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Flags are the control bits of a segment (RFC 9293 §3.1).
type Flags uint8

// The control bits that the model uses.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// String writes the flags in tcpdump's letters: S, F, R, P and "." for ACK.
func (f Flags) String() string {
	var b strings.Builder
	for _, l := range [...]struct {
		bit  Flags
		name string
	}{{SYN, "S"}, {FIN, "F"}, {RST, "R"}, {PSH, "P"}, {ACK, "."}} {
		if f&l.bit != 0 {
			b.WriteString(l.name)
		}
	}
	return b.String()
}

// Block is one SACK block: the sequence numbers in [Start, End) (RFC 2018 §3).
type Block struct{ Start, End uint64 }

// MaxSACK is the largest number of SACK blocks in one segment: 4 fit into 40
// bytes of options, 3 beside a timestamp (RFC 2018 §3).
const MaxSACK = 4

// Segment is a TCP segment without its payload's bytes.
//
// Sequence numbers are 64 bits wide and never wrap, inside the state machine
// and in the segment; both directions begin at 0 (the SYN). The low 32 bits
// are what a real header would carry (a trace adds its own initial number).
type Segment struct {
	Seq, Ack uint64
	Len      int // payload bytes
	Flags    Flags

	// Window is the field of the header, 16 bits, not yet scaled: a box on
	// the path that rewrites windows works on this field and on WScale of the
	// SYNs, as a real one would. (RFC 7323 §2.2: never scaled in a SYN.)
	Window uint16

	// Options of a SYN. MSS 0 and WScale -1 mean that the option is absent.
	MSS           int
	WScale        int
	SACKPermitted bool

	// The timestamps option (RFC 7323 §3); values in milliseconds, as Linux.
	HasTS        bool
	TSVal, TSEcr uint32

	NSACK int
	SACK  [MaxSACK]Block // the first NSACK are in use; a DSACK comes first (RFC 2883)

	// Retransmission marks a payload that was sent before. It is for traces
	// and counters on the path; no receiver looks at it.
	Retransmission bool

	next *Segment // free list
}

// HeaderLen returns the bytes of the IPv4 header, the TCP header and its
// options as Linux lays them out: IP 20 + TCP 20, timestamps 12 with padding,
// n SACK blocks 4 + 8n, and in a SYN MSS 4, window scale 4, SACK-permitted 4
// (2 merged into the timestamps' padding when both are there).
func (s *Segment) HeaderLen() vtime.Bytes {
	n := 40
	if s.HasTS {
		n += 12
	}
	if s.Flags&SYN != 0 {
		if s.MSS > 0 {
			n += 4
		}
		if s.WScale >= 0 {
			n += 4
		}
		if s.SACKPermitted && !s.HasTS {
			n += 4
		}
	} else if s.NSACK > 0 {
		n += 4 + 8*s.NSACK
	}
	return vtime.Bytes(n)
}

// WireLen returns the length of the IP packet.
func (s *Segment) WireLen() vtime.Bytes { return s.HeaderLen() + vtime.Bytes(s.Len) }

// End returns the sequence number after the segment; SYN and FIN count one.
func (s *Segment) End() uint64 {
	e := s.Seq + uint64(s.Len)
	if s.Flags&SYN != 0 {
		e++
	}
	if s.Flags&FIN != 0 {
		e++
	}
	return e
}

// String writes the segment in the notation of the test scripts, such as
// "P. 1:1449(1448) ack 1 win 502 sack 2897:4345".
func (s *Segment) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d:%d(%d)", s.Flags, s.Seq, s.Seq+uint64(s.Len), s.Len)
	if s.Flags&ACK != 0 {
		fmt.Fprintf(&b, " ack %d", s.Ack)
	}
	fmt.Fprintf(&b, " win %d", s.Window)
	for i := range s.NSACK {
		fmt.Fprintf(&b, " sack %d:%d", s.SACK[i].Start, s.SACK[i].End)
	}
	return b.String()
}

// Pool is a free list of segments, owned by one thread. The zero value is
// ready. A path returns with Put what the machines took with Get, so that a
// long run allocates nothing.
type Pool struct{ free *Segment }

// Get returns a cleared segment.
func (p *Pool) Get() *Segment {
	s := p.free
	if s == nil {
		s = new(Segment)
	} else {
		p.free = s.next
		*s = Segment{}
	}
	s.WScale = -1
	return s
}

// Put takes back a segment that nobody refers to any more.
func (p *Pool) Put(s *Segment) {
	s.next = p.free
	p.free = s
}
