package tcp

import "math/bits"

// The receive window and the automatic tuning of the receive buffer (dynamic
// right-sizing, tcp_rcv_space_adjust).

// recvWindow is the state of the receive window; bytes.
type recvWindow struct {
	buf    int64  // sk_rcvbuf, in memory
	clamp  uint64 // largest window
	thresh uint64 // rcv_ssthresh: the window grows slowly up to the clamp
	ratio  int64  // payload per memory, in 1/256 (scaling_ratio)
	advMSS int

	// The receiver's round-trip estimate, eightfold, in µs.
	rtt8      int64
	rttSeq    uint64
	rttAt     int64
	lastTSEcr uint32

	// Bytes that the application read in the last round trip.
	space    int64
	spaceSeq uint64
	spaceAt  int64
}

// window returns what is left of the window advertised last.
func (r *receiver) window() uint64 {
	if end := r.wup + r.wnd; end > r.nxt {
		return end - r.nxt
	}
	return 0
}

func (r *receiver) winFromMem(m int64) int64 { return m * r.ratio >> 8 }
func (r *receiver) memFromWin(w int64) int64 { return w << 8 / r.ratio }

// initWindow chooses the window and the scale for the SYN
// (tcp_select_initial_window): the scale is for the largest buffer that
// tuning may reach (RFC 7323 §2.3).
func (r *receiver) initWindow(c *Conn) {
	r.ratio = 128 // TCP_DEFAULT_SCALING_RATIO
	r.buf = int64(c.cfg.RecvBuffer)
	mss := int64(c.cfg.MSS)
	r.advMSS = c.cfg.MSS
	var most int64
	if n := c.cfg.RecvWindow; n > 0 {
		r.wnd = uint64(int64(n) * mss)
		most = int64(r.wnd)
	} else {
		w := r.winFromMem(r.buf)
		if w > mss {
			w -= w % mss
		}
		r.wnd = uint64(w)
		most = max(int64(c.cfg.RecvBufferMax), w)
	}
	r.scale = 0
	if c.cfg.WindowScale {
		r.scale = uint8(min(max(bits.Len64(uint64(most))-16, 0), 14))
	}
	r.clamp = 65535 << r.scale
	r.wnd = min(r.wnd, r.clamp)
	r.thresh = r.wnd
}

// wholeSegments rounds the bound that the first window has down to whole
// segments when the answer to a SYN offers it: only then is it known what the
// options take (tcp_openreq_init_rwin).
func (r *receiver) wholeSegments(c *Conn) {
	if mss := uint64(r.advMSS); c.cfg.RecvWindow > 0 && r.wnd > mss {
		r.wnd -= r.wnd % mss
		r.thresh = r.wnd
	}
}

// beginWindow sets the limits when the connection is established
// (tcp_init_buffer_space).
func (r *receiver) beginWindow(c *Conn) {
	r.spaceAt, r.spaceSeq = c.us, r.copied
	if c.cfg.RecvWindow > 0 {
		r.clamp = min(r.clamp, uint64(c.cfg.RecvWindow*c.cfg.MSS))
	} else {
		most := uint64(r.winFromMem(r.buf))
		mss := uint64(r.advMSS)
		r.clamp = min(r.clamp, most)
		if r.clamp > 2*mss && r.clamp+mss > most {
			r.clamp = max(2*mss, most-mss)
		}
	}
	r.thresh = min(r.thresh, r.clamp)
	r.space = int64(min(r.thresh, r.wnd, uint64(10*r.advMSS)))
}

// freeSpace is the window that the free memory allows.
func (c *Conn) freeSpace() int64 {
	r := &c.rcv
	if c.cfg.RecvWindow > 0 {
		return int64(r.clamp) - int64(r.nxt-r.copied)
	}
	return r.winFromMem(r.buf - r.mem - r.ofoMem)
}

func (c *Conn) fullSpace() int64 {
	if c.cfg.RecvWindow > 0 {
		return int64(c.rcv.clamp)
	}
	return c.rcv.winFromMem(c.rcv.buf)
}

// windowNow is the window that would be advertised now (__tcp_select_window):
// receiver-side silly-window avoidance (RFC 9293 §3.8.6.2.2) closes the window
// when less than a segment or a sixteenth of the buffer is free.
func (c *Conn) windowNow() uint64 {
	r := &c.rcv
	mss := int64(r.mss)
	free, allowed := c.freeSpace(), c.fullSpace()
	full := min(int64(r.clamp), allowed)
	if mss > full {
		if mss = full; mss <= 0 {
			return 0
		}
	}
	if free < full>>1 {
		r.quick = 0
		free = free >> r.scale << r.scale
		if free < allowed>>4 || free < mss {
			return 0
		}
	}
	free = min(free, int64(r.thresh))
	if r.scale > 0 {
		unit := int64(1) << r.scale
		return uint64((free + unit - 1) &^ (unit - 1))
	}
	w := int64(r.wnd)
	if w <= free-mss || w > free {
		w = free - free%mss
	} else if mss == full && free > w+full>>1 {
		w = free
	}
	return uint64(w)
}

// selectWindow sets the window that a segment advertises; it never moves its
// right edge back (RFC 9293 §3.8.6).
func (c *Conn) selectWindow() uint16 {
	r := &c.rcv
	if r.pending&ackNoMem != 0 {
		r.wnd, r.wup = 0, r.nxt
		return 0
	}
	have, w := r.window(), c.windowNow()
	if w < have {
		unit := uint64(1) << r.scale
		w = (have + unit - 1) &^ (unit - 1)
	}
	r.wnd, r.wup = w, r.nxt
	return uint16(min(w, 65535<<r.scale) >> r.scale)
}

// growWindow opens the window by up to twice the segment's length while its
// memory is in proportion (tcp_grow_window), and asks for a quick ACK to tell
// the sender.
func (c *Conn) growWindow(n int) {
	r := &c.rcv
	room := min(int64(r.clamp), c.freeSpace()) - int64(r.thresh)
	if room <= 0 {
		return
	}
	mem := r.winFromMem(c.charge(n))
	if c.cfg.RecvWindow > 0 {
		mem = int64(n)
	}
	grow := 0
	if mem <= int64(n) {
		grow = 2 * r.advMSS
	} else {
		// Bloated memory: allowed only while the window is small.
		mem >>= 1
		for w := r.winFromMem(int64(c.cfg.RecvBufferMax)) >> 1; int64(r.thresh) <= w; w >>= 1 {
			if mem <= int64(n) {
				grow = 2 * r.mss
				break
			}
			mem >>= 1
		}
	}
	if grow > 0 {
		r.thresh += uint64(min(room, int64(max(grow, 2*n))))
		r.quick |= 1
	}
}

// measureRatio learns how much payload a unit of memory holds.
func (c *Conn) measureRatio(n int) {
	if c.cfg.RecvWindow > 0 {
		return
	}
	r := &c.rcv
	old := r.ratio
	r.ratio = min(max(int64(n)<<8/max(c.charge(n), 1), 1), 255)
	if r.ratio != old {
		r.clamp = min(uint64(r.winFromMem(r.buf)), 65535<<r.scale)
		r.clamp = max(r.clamp, 1)
		r.thresh = min(r.thresh, r.clamp)
		r.space = min(r.space, int64(r.clamp))
	}
}

// clampWindow reacts to a full buffer: memory in use may become the buffer's
// size up to the limit, else the window shrinks to two segments.
func (c *Conn) clampWindow() {
	r := &c.rcv
	r.quick = 0
	used := r.mem + r.ofoMem
	if most := int64(c.cfg.RecvBufferMax); r.buf < most {
		r.buf = max(r.buf, min(used, most))
	}
	if used > r.buf {
		r.thresh = min(r.clamp, uint64(2*r.advMSS))
	}
}

// rcvRTTMeasure estimates the RTT as the time that a window of data takes,
// the only way without timestamps.
func (c *Conn) rcvRTTMeasure() {
	r := &c.rcv
	if r.rttAt != 0 {
		if r.nxt < r.rttSeq {
			return
		}
		c.rcvRTTUpdate(max(c.us-r.rttAt, 1), true)
	}
	r.rttSeq = r.nxt + r.wnd
	r.rttAt = c.us
}

// rcvRTTByTS takes the RTT from the echoed timestamp of full segments.
func (c *Conn) rcvRTTByTS(s *Segment) {
	r := &c.rcv
	if s.TSEcr == r.lastTSEcr {
		return
	}
	r.lastTSEcr = s.TSEcr
	if s.Len >= r.mss {
		if d := c.tsRTT(0); d > 0 {
			c.rcvRTTUpdate(d, false)
		}
	}
}

func (c *Conn) rcvRTTUpdate(us int64, byWindow bool) {
	r := &c.rcv
	m := us << 3
	if r.rtt8 == 0 || m < r.rtt8 {
		r.rtt8 = m
		return
	}
	if byWindow || r.nxt != r.copied {
		return // could grossly overestimate
	}
	r.rtt8 += us - r.rtt8>>3
}

// adjustSpace tunes the buffer to twice what the application reads in a round
// trip (dynamic right-sizing).
func (c *Conn) adjustSpace() {
	r := &c.rcv
	if r.rtt8 == 0 || c.us-r.spaceAt < r.rtt8>>3 {
		return
	}
	read := int64(r.copied-r.spaceSeq) - int64(r.nxt-r.copied)
	if read > r.space {
		c.growBuffer(read)
	}
	r.spaceSeq, r.spaceAt = r.copied, c.us
}

// growBuffer makes room for twice the measure, because it is one round trip
// late, and for the growth of slow start on top.
func (c *Conn) growBuffer(measure int64) {
	r := &c.rcv
	old := max(r.space, 1)
	r.space = measure
	if c.cfg.RecvWindow > 0 {
		return
	}
	win := measure << 1
	win += (win * (measure - old) / old) << 1
	if n := len(r.ofo); n > 0 {
		win += int64(r.ofo[n-1].End - r.nxt)
	}
	buf := min(r.memFromWin(win), int64(c.cfg.RecvBufferMax))
	if buf > r.buf {
		r.buf = buf
		r.clamp = min(uint64(r.winFromMem(buf)), 65535<<r.scale)
	}
}
