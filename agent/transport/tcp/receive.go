package tcp

import (
	"slices"

	"github.com/hopbed/hopbed/netem/vtime"
)

// receiver is the receive side.
type receiver struct {
	nxt    uint64
	copied uint64 // up to here the application has read
	wup    uint64 // nxt in the last segment sent
	wnd    uint64 // window advertised then
	scale  uint8

	// Out-of-order data as disjoint, sorted blocks.
	ofo     []Block
	finAt   uint64 // sequence number of a FIN that arrived; 0 = none
	finSeen bool   // … and everything before it

	// Memory charged, as the kernel charges it.
	mem, ofoMem int64

	// SACK blocks to report, the newest first (RFC 2018 §4).
	sack   [MaxSACK]Block
	nsack  int
	dsack  Block
	hasDup bool

	recvWindow

	// Timestamps (RFC 7323).
	sawTS        bool
	tsVal, tsEcr uint32
	tsRecent     uint32

	delack

	lastSeg     vtime.Time
	challenged  bool
	challengeAt vtime.Time
}

func (r *receiver) init(c *Conn) {
	r.ofo = r.ofo[:0]
	r.initWindow(c)
}

func (r *receiver) begin(c *Conn) {
	r.beginWindow(c)
	r.mss = min(r.advMSS, c.snd.mss, int(r.wnd/2), 536)
	r.mss = max(r.mss, 88)
}

// Read takes up to n bytes from the receive queue and returns how many there
// were. Reading opens the window and may make an ACK ready.
func (c *Conn) Read(now vtime.Time, n vtime.Bytes) vtime.Bytes {
	c.clock(now)
	r := &c.rcv
	have := c.Readable()
	n = min(n, have)
	if n <= 0 {
		return 0
	}
	r.copied += uint64(n)
	r.mem -= r.mem * int64(n) / int64(have)
	c.adjustSpace()
	c.readACK()
	return n
}

// Readable returns the bytes that Read would give.
func (c *Conn) Readable() vtime.Bytes {
	n := c.rcv.nxt - c.rcv.copied
	if c.rcv.finSeen && n > 0 {
		n--
	}
	return vtime.Bytes(n)
}

// EOF reports that the peer has closed and all its bytes were read.
func (c *Conn) EOF() bool { return c.rcv.finSeen && c.Readable() == 0 }

// charge is the memory that the kernel accounts for n bytes of one packet: the
// headers' share is the same for every length.
func (c *Conn) charge(n int) int64 {
	return int64(n) + max(int64(c.cfg.Truesize)-int64(c.snd.fullMSS), 0)
}

// queueData takes the payload of a segment (tcp_data_queue).
func (c *Conn) queueData(s *Segment) {
	r := &c.rcv
	if s.Seq == s.End() {
		return
	}
	r.hasDup = false
	end := s.Seq + uint64(s.Len)
	if s.Flags&FIN != 0 && s.End() > r.nxt {
		r.finAt = end
	}
	switch {
	case s.End() <= r.nxt: // a retransmission of what is here already
		c.setDSACK(s.Seq, s.End())
		c.enterQuickACK()
		c.scheduleACK()
	case s.Seq >= r.nxt+r.window() && !(s.Seq == r.nxt && s.Len == 0): // a probe of a closed window
		c.enterQuickACK()
		c.scheduleACK()
	case s.Seq > r.nxt:
		c.queueOutOfOrder(s, end)
	default:
		if s.Seq < r.nxt {
			c.setDSACK(s.Seq, r.nxt)
		}
		c.queueInOrder(s, end)
	}
}

func (c *Conn) queueInOrder(s *Segment, end uint64) {
	r := &c.rcv
	if s.Len > 0 && !c.room(s, true) {
		r.pending |= ackNow | ackNoMem
		c.scheduleACK()
		if r.nxt > r.copied {
			return // dropped: it will be sent again
		}
	}
	c.advance(end)
	if s.Len > 0 {
		r.mem += c.charge(s.Len)
		c.dataReceived(s)
	}
	if r.finAt != 0 && r.finAt == r.nxt && !r.finSeen {
		c.receiveFIN()
		if s.Flags&FIN == 0 {
			r.pending |= ackNow // it had come before: a gap was filled
		}
		return
	}
	if len(r.ofo) > 0 {
		c.takeOutOfOrder()
		if len(r.ofo) == 0 {
			r.pending |= ackNow // RFC 5681 §4.2: a gap was filled
		}
	}
	c.removeSACKs()
}

func (c *Conn) advance(to uint64) {
	c.info.BytesReceived += vtime.Bytes(to - c.rcv.nxt)
	c.rcv.nxt = to
}

// takeOutOfOrder moves what has become in order.
func (c *Conn) takeOutOfOrder() {
	r := &c.rcv
	n := 0
	dupHigh := r.nxt
	for n < len(r.ofo) && r.ofo[n].Start <= r.nxt {
		b := r.ofo[n]
		if b.Start < dupHigh {
			c.extendDSACK(b.Start, min(b.End, dupHigh))
		}
		mem := r.ofoMem
		if n < len(r.ofo)-1 || len(r.ofo) > 1 {
			mem = r.ofoMem * int64(b.End-b.Start) / max(r.ofoBytes(n), 1)
		}
		r.ofoMem -= mem
		if b.End > r.nxt {
			r.mem += mem
			c.advance(b.End)
		}
		n++
	}
	r.ofo = slices.Delete(r.ofo, 0, n)
	if len(r.ofo) == 0 {
		r.mem += r.ofoMem
		r.ofoMem = 0
	}
	if r.finAt != 0 && r.finAt == r.nxt && !r.finSeen {
		c.receiveFIN()
	}
}

func (r *receiver) ofoBytes(from int) int64 {
	var n uint64
	for _, b := range r.ofo[from:] {
		n += b.End - b.Start
	}
	return int64(n)
}

// queueOutOfOrder stores a segment beyond a gap (tcp_data_queue_ofo).
func (c *Conn) queueOutOfOrder(s *Segment, end uint64) {
	r := &c.rcv
	if s.Len == 0 {
		c.scheduleACK() // a FIN beyond a gap: finAt remembers it
		return
	}
	if !c.room(s, false) {
		return
	}
	c.measureMSS(s)
	c.scheduleACK()
	seq := s.Seq
	i, _ := slices.BinarySearchFunc(r.ofo, seq, func(b Block, q uint64) int {
		if b.End < q {
			return -1
		}
		return 1
	})
	// r.ofo[i] is the first block that ends at or after seq.
	if i < len(r.ofo) && r.ofo[i].Start <= seq && end <= r.ofo[i].End && seq < r.ofo[i].End {
		c.setDSACK(seq, end) // all of it is here
	} else {
		r.ofoMem += c.charge(s.Len)
		j := i
		lo, hi := seq, end
		for ; j < len(r.ofo) && r.ofo[j].Start <= end; j++ {
			b := r.ofo[j]
			if a, z := max(b.Start, seq), min(b.End, end); a < z {
				c.extendDSACK(a, z)
			}
			lo, hi = min(lo, b.Start), max(hi, b.End)
		}
		if j > i {
			r.ofo[i] = Block{lo, hi}
			r.ofo = slices.Delete(r.ofo, i+1, j)
		} else {
			r.ofo = slices.Insert(r.ofo, i, Block{lo, hi})
		}
		if c.syn.sack {
			c.growWindow(s.Len)
		}
	}
	if c.syn.sack {
		c.newSACK(seq, end)
	}
	c.growBuffer(r.space)
}

// room reports whether the buffer takes the segment; if not, it tries what
// Linux tries: a larger buffer, collapsing, and dropping the newest
// out-of-order data (tcp_prune_queue).
func (c *Conn) room(s *Segment, inOrder bool) bool {
	r := &c.rcv
	if c.cfg.RecvWindow > 0 {
		return true // the window alone limits
	}
	need := c.charge(s.Len)
	fits := func() bool { return r.mem+r.ofoMem+need <= r.buf }
	if fits() {
		return true
	}
	if r.mem+r.ofoMem == 0 {
		return true
	}
	c.clampWindow()
	if fits() {
		return true
	}
	// Collapsing copies the payload into full pages: an eighth of overhead.
	payload := int64(c.Readable())
	r.mem = min(r.mem, payload+payload>>3)
	if n := r.ofoBytes(0); n > 0 {
		r.ofoMem = min(r.ofoMem, n+n>>3)
	}
	if fits() {
		return true
	}
	for len(r.ofo) > 0 && !fits() {
		last := len(r.ofo) - 1
		if s.Seq > r.ofo[last].Start {
			break
		}
		cut := r.ofoMem * int64(r.ofo[last].End-r.ofo[last].Start) / max(r.ofoBytes(0), 1)
		if last == 0 {
			cut = r.ofoMem
		}
		r.ofoMem -= cut
		r.ofo = r.ofo[:last]
		r.nsack = 0
	}
	return fits()
}

// The SACK blocks to report.

func (c *Conn) newSACK(seq, end uint64) {
	r := &c.rcv
	for i := range r.nsack {
		b := &r.sack[i]
		if seq > b.End || b.Start > end {
			continue
		}
		b.Start, b.End = min(b.Start, seq), max(b.End, end)
		if i >= 2 {
			c.flushCompressed()
		}
		first := *b
		copy(r.sack[1:i+1], r.sack[:i])
		r.sack[0] = first
		c.mergeSACKs()
		return
	}
	if r.nsack >= 2 {
		c.flushCompressed() // ACKs may be lost: do not let blocks scroll away unreported
	}
	n := min(r.nsack, MaxSACK-1)
	copy(r.sack[1:n+1], r.sack[:n])
	r.sack[0] = Block{seq, end}
	r.nsack = n + 1
}

// mergeSACKs lets the first block swallow those that it now touches.
func (c *Conn) mergeSACKs() {
	r := &c.rcv
	n := 1
	for i := 1; i < r.nsack; i++ {
		b := r.sack[i]
		if b.Start <= r.sack[0].End && r.sack[0].Start <= b.End {
			r.sack[0].Start = min(r.sack[0].Start, b.Start)
			r.sack[0].End = max(r.sack[0].End, b.End)
			continue
		}
		r.sack[n] = b
		n++
	}
	r.nsack = n
}

// removeSACKs drops the blocks that the cumulative ACK has passed.
func (c *Conn) removeSACKs() {
	r := &c.rcv
	if len(r.ofo) == 0 {
		r.nsack = 0
		return
	}
	n := 0
	for i := range r.nsack {
		if r.sack[i].Start > r.nxt {
			r.sack[n] = r.sack[i]
			n++
		}
	}
	r.nsack = n
}

func (c *Conn) setDSACK(seq, end uint64) {
	if c.syn.sack && c.cfg.DSACK {
		c.rcv.dsack, c.rcv.hasDup = Block{seq, end}, true
	}
}

func (c *Conn) extendDSACK(seq, end uint64) {
	d := &c.rcv.dsack
	if !c.rcv.hasDup {
		c.setDSACK(seq, end)
	} else if seq <= d.End && d.Start <= end {
		d.Start, d.End = min(d.Start, seq), max(d.End, end)
	}
}

// sackBlocks is how many blocks the next segment carries: 3 beside a
// timestamp, else 4.
func (c *Conn) sackBlocks() int {
	if !c.syn.sack {
		return 0
	}
	n := c.rcv.nsack
	if c.rcv.hasDup {
		n++
	}
	if c.syn.ts {
		return min(n, 3)
	}
	return min(n, MaxSACK)
}

// addSACK writes the blocks: a DSACK first (RFC 2883 §4), which is reported once.
func (c *Conn) addSACK(s *Segment) {
	n := c.sackBlocks()
	if n == 0 {
		return
	}
	i := 0
	if c.rcv.hasDup {
		s.SACK[0] = c.rcv.dsack
		i = 1
		c.rcv.hasDup = false
	}
	copy(s.SACK[i:n], c.rcv.sack[:n-i])
	s.NSACK = n
}
