package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// The tags of a segment in the retransmission queue (Linux's TCPCB_*).
const (
	tagSacked  = 1 << iota // SACKed
	tagLost                // thought to be lost
	tagRetrans             // retransmitted, and that copy is in flight
	tagEver                // retransmitted at least once
	tagBuffer              // ends a buffer (sk_buff) of Linux's retransmission queue
)

// sent is one segment in the retransmission queue: at most one MSS. (Linux
// keeps bursts of several segments as one buffer and splits it where SACKs
// or losses need it; records of one segment behave alike.)
type sent struct {
	seq   uint64
	len   int
	flags Flags
	tag   uint8
	at    int64 // µs of the last transmission

	// Rate sample (see rate.go): the state when it was sent.
	txFirst, txDeliveredAt int64
	txDelivered            uint64
	txAppLimited           bool

	// Neighbours in the order of transmission, as ordinals + 1; 0 = none.
	prev, next uint64
	listed     bool
}

func (s *sent) end() uint64 {
	e := s.seq + uint64(s.len)
	if s.flags&(SYN|FIN) != 0 {
		e++
	}
	return e
}

// sender is the send side: sequence numbers, the retransmission queue and the
// unsent bytes.
type sender struct {
	una, nxt  uint64
	written   uint64 // end of what the application wrote
	fin       bool   // the application closed: a FIN follows the last byte
	finSent   bool
	wnd       uint64 // peer's window, scaled
	maxWnd    uint64 // largest ever seen
	wl1       uint64 // peer's sequence number at the last window update
	scale     uint8
	mss       int    // payload per full segment (mss_cache)
	fullMSS   int    // the same as negotiated; mss is less while the peer's window is tiny
	sml       uint64 // end of the last small segment (Minshall's Nagle)
	wakeAfter bool   // the application met a full buffer (SOCK_NOSPACE)
	buf       int64  // sk_sndbuf
	buffers   int    // buffers in the retransmission queue
	headLeft  int    // bytes in the buffer at the head of the unsent ones
	stolen    int    // bytes taken from the buffer behind it

	// The retransmission queue: a ring of records by ordinal.
	ring       []sent
	head, tail uint64
	oldest     uint64 // head and tail of the list in order of transmission,
	newest     uint64 // as ordinals + 1

	packets, sacked, lost, retrans int // packets_out, sacked_out, lost_out, retrans_out
	hint                           uint64
	hintOK                         bool   // hint is where to look for the next retransmission
	fack                           uint64 // end of the highest SACKed segment
	cache                          [MaxSACK]Block
	ncache                         int

	lastSend   vtime.Time // of data (lsndtime)
	pacedUntil vtime.Time // last transmission or, paced, earliest next (tcp_wstamp)
	pacePrev   vtime.Time // the same before the last burst
	usageSeq   uint64     // cwnd_usage_seq
	cwndStamp  vtime.Time
	cwndUsed   int
}

const firstRing = 64

func (s *sender) init(c *Conn) {
	s.ring = make([]sent, firstRing)
	s.mss, s.fullMSS = c.cfg.MSS, c.cfg.MSS
	s.buf = int64(c.cfg.SendBuffer)
	s.written = 1 // byte 0 of the sequence space is the SYN
}

func (s *sender) purge() {
	s.head, s.tail, s.oldest, s.newest = 0, 0, 0, 0
	s.packets, s.sacked, s.lost, s.retrans = 0, 0, 0, 0
	s.buffers, s.headLeft, s.stolen = 0, 0, 0
	s.hintOK = false
	s.written = max(s.nxt, 1)
	s.fin = false
}

func (s *sender) at(o uint64) *sent { return &s.ring[o&uint64(len(s.ring)-1)] }
func (s *sender) empty() bool       { return s.head == s.tail }

// unsent returns the bytes written and not yet sent.
func (s *sender) unsent() int64 {
	if s.nxt >= s.written {
		return 0
	}
	return int64(s.written - s.nxt)
}

// pending reports whether anything waits to be sent for the first time.
func (s *sender) pending() bool { return s.unsent() > 0 || s.fin && !s.finSent }

func (s *sender) wndEnd() uint64 { return s.una + s.wnd }

func (s *sender) inFlight() int { return s.packets - s.sacked - s.lost + s.retrans }

// append adds a record at the end and returns it; the ring grows by doubling
// while a window of data is larger than ever before.
func (s *sender) append() (uint64, *sent) {
	if s.tail-s.head == uint64(len(s.ring)) {
		ring := make([]sent, 2*len(s.ring))
		for o := s.head; o < s.tail; o++ {
			ring[o&uint64(len(ring)-1)] = *s.at(o)
		}
		s.ring = ring
	}
	o := s.tail
	s.tail++
	r := s.at(o)
	*r = sent{}
	return o, r
}

// find returns the ordinal of the segment that holds seq; ok is false if none
// does.
func (s *sender) find(seq uint64) (uint64, bool) {
	lo, hi := s.head, s.tail
	for lo < hi {
		m := lo + (hi-lo)/2
		if s.at(m).end() <= seq {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == s.tail || s.at(lo).seq > seq {
		return lo, false
	}
	return lo, true
}

// unlist takes a segment out of the order of transmission.
func (s *sender) unlist(o uint64) {
	r := s.at(o)
	if !r.listed {
		return
	}
	if r.prev != 0 {
		s.at(r.prev - 1).next = r.next
	} else {
		s.oldest = r.next
	}
	if r.next != 0 {
		s.at(r.next - 1).prev = r.prev
	} else {
		s.newest = r.prev
	}
	r.prev, r.next, r.listed = 0, 0, false
}

// list puts a segment at the end of the order of transmission.
func (s *sender) list(o uint64) {
	s.unlist(o)
	r := s.at(o)
	r.prev, r.listed = s.newest, true
	if s.newest != 0 {
		s.at(s.newest - 1).next = o + 1
	} else {
		s.oldest = o + 1
	}
	s.newest = o + 1
}
