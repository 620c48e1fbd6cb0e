package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// When to acknowledge (RFC 9293 §3.8.6.3, RFC 5681 §4.2), in Linux's form.

type ackPending uint8

const (
	ackScheduled ackPending = 1 << iota // an ACK is owed
	ackTimer                            // the delayed-ACK timer runs
	ackPushed                           // a segment ended a write
	ackPushed2                          // … a second one
	ackNow                              // at once
	ackNoMem                            // a segment was dropped for lack of memory
)

// The bounds of the delayed-ACK timer.
const (
	atoMin    = 40 * vtime.Millisecond  // TCP_ATO_MIN, TCP_DELACK_MIN
	delackMax = 200 * vtime.Millisecond // TCP_DELACK_MAX

	quickACKs = 16 // TCP_MAX_QUICKACKS
)

// delack is the state of delayed acknowledgement.
type delack struct {
	pending  ackPending
	quick    int            // ACKs still to be sent at once
	pingpong int            // > 0: the session is interactive
	ato      vtime.Duration // predicted interval; 0 before the first data
	lastData vtime.Time
	mss      int // guess of the peer's segment size (rcv_mss)
	lastSize int
	due      vtime.Time // when the timer was meant to fire

	// Compressed ACKs of out-of-order data (tcp_comp_sack_*).
	compressed int
	compNxt    uint64
	dupACKs    int
}

func (c *Conn) scheduleACK() { c.rcv.pending |= ackScheduled }

// dataReceived runs for every in-order data segment (tcp_event_data_recv).
func (c *Conn) dataReceived(s *Segment) {
	r := &c.rcv
	c.scheduleACK()
	c.measureMSS(s)
	c.rcvRTTMeasure()
	if r.ato == 0 {
		c.addQuickACKs(quickACKs) // the first data: let slow start proceed
		r.ato = atoMin
	} else {
		rto := usDuration(c.est.rto)
		switch m := c.now.Sub(r.lastData); {
		case m <= atoMin/2:
			r.ato = r.ato/2 + atoMin/2
		case m < r.ato:
			r.ato = min(r.ato/2+m, rto)
		case m > rto:
			c.addQuickACKs(quickACKs) // a long gap: the sender may have restarted
		}
	}
	r.lastData = c.now
	if s.Len >= 128 {
		c.growWindow(s.Len)
	}
}

// measureMSS guesses the peer's segment size; a smaller segment, or a full
// one with PSH, is taken for the end of a write (tcp_measure_rcv_mss).
func (c *Conn) measureMSS(s *Segment) {
	r := &c.rcv
	last := r.lastSize
	r.lastSize = 0
	if s.Len >= r.mss {
		if s.Len != r.mss {
			c.measureRatio(s.Len)
		}
		r.mss = min(s.Len, r.advMSS)
		if s.Flags&PSH != 0 {
			r.pending |= ackPushed
		}
		return
	}
	hdr := int(s.HeaderLen()) - 20
	if n := s.Len + hdr; n >= 536+20 || n >= 88+20 && s.Flags&(PSH|FIN|SYN) == 0 {
		n -= 20
		if c.syn.ts {
			n -= 12
		}
		r.lastSize = n
		if n == last {
			r.mss = n
			return
		}
	}
	if r.pending&ackPushed != 0 {
		r.pending |= ackPushed2
	}
	r.pending |= ackPushed
}

func (c *Conn) addQuickACKs(most int) {
	r := &c.rcv
	n := int(r.wnd) / (2 * max(r.mss, 1))
	if n == 0 {
		n = 2
	}
	r.quick = max(r.quick, min(n, most))
}

// enterQuickACK: something was out of order; acknowledge at once for a while.
func (c *Conn) enterQuickACK() {
	c.addQuickACKs(quickACKs)
	c.rcv.pingpong = 0
	c.rcv.ato = atoMin
}

func (c *Conn) quickACKMode() bool {
	return c.cfg.Ack == AckEvery || c.rcv.quick > 0 && c.rcv.pingpong == 0
}

// checkACK decides after each segment (__tcp_ack_snd_check).
func (c *Conn) checkACK() {
	r := &c.rcv
	if r.pending&ackScheduled == 0 {
		return // a data segment has carried it
	}
	if r.nxt-r.wup > uint64(r.mss) && (r.nxt == r.copied || c.windowNow() >= r.wnd) ||
		c.quickACKMode() || r.pending&ackNow != 0 {
		c.sendACK()
		return
	}
	if len(r.ofo) == 0 {
		c.delayACK()
		return
	}
	// Out-of-order data is acknowledged at once (RFC 5681 §4.2), but Linux
	// compresses the duplicate ACKs after the third: one per 5 % of the RTT,
	// at most 1 ms.
	if !c.syn.sack || r.compressed >= 44 {
		c.sendACK()
		return
	}
	if r.compNxt != r.nxt {
		r.compNxt = r.nxt
		r.dupACKs = 0
	}
	if r.dupACKs < 3 {
		r.dupACKs++
		c.sendACK()
		return
	}
	r.compressed++
	if c.tmr.comp != vtime.Never {
		return
	}
	rtt8 := r.rtt8
	if c.est.srtt8 > 0 && c.est.srtt8 < rtt8 {
		rtt8 = c.est.srtt8
	}
	c.tmr.comp = c.now.Add(min(vtime.Millisecond, vtime.Duration(rtt8)*125/20))
}

func (c *Conn) compressExpired() {
	c.tmr.comp = vtime.Never
	if c.rcv.compressed > 0 {
		c.sendACK()
	}
}

// flushCompressed sends what compression held back.
func (c *Conn) flushCompressed() {
	if c.rcv.compressed > 0 {
		c.rcv.compressed = 0
		c.tmr.comp = vtime.Never
		c.sendACK()
	}
}

// delayACK starts the delayed-ACK timer (tcp_send_delayed_ack): 40 ms, more
// when segments come slowly, at most the RTT or 200 ms.
func (c *Conn) delayACK() {
	r := &c.rcv
	ato := r.ato
	if ato > atoMin {
		most := 500 * vtime.Millisecond
		if r.pingpong > 0 || r.pending&ackPushed != 0 {
			most = delackMax
		}
		if c.est.srtt8 > 0 {
			most = min(most, max(usDuration(c.est.srtt8>>3), atoMin))
		}
		ato = min(ato, most)
	}
	ato = min(ato, delackMax, max(c.cfg.RTOMin-c.jiffy, c.jiffy))
	due := c.now.Add(ato)
	if r.pending&ackTimer != 0 {
		if r.due <= c.now.Add(ato/4) {
			c.sendACK() // the timer is about to fire
			return
		}
		if r.due < due {
			return // an older timer is earlier
		}
	}
	r.pending |= ackTimer
	r.due = due
	c.tmr.delack = c.after(microsUp(ato))
}

// delackExpired is the delayed-ACK timer. The kernel does not stop it when
// the ACK was sent otherwise; it then finds nothing to do.
func (c *Conn) delackExpired() {
	r := &c.rcv
	c.tmr.delack = vtime.Never
	if r.compressed > 0 {
		c.flushCompressed()
		return
	}
	if r.pending&ackTimer == 0 {
		return
	}
	if r.due > c.now {
		c.tmr.delack = c.after(microsUp(r.due.Sub(c.now)))
		return
	}
	r.pending &^= ackTimer
	if r.pending&ackScheduled == 0 {
		return
	}
	if r.pingpong == 0 {
		r.ato = min(r.ato*2, usDuration(c.est.rto)) // the second segment did not come: wait longer
	} else {
		r.pingpong = 0
		r.ato = atoMin
	}
	c.info.DelayedACKs++
	c.sendACK()
}

// ackSent clears what the segment just built has acknowledged.
func (c *Conn) ackSent() {
	r := &c.rcv
	if r.compressed > 0 {
		r.compressed = 0
		c.tmr.comp = vtime.Never
	}
	if r.quick > 0 && r.pending&ackScheduled != 0 {
		if r.quick--; r.quick == 0 {
			r.ato = atoMin
		}
	}
	r.pending = 0
}

// readACK sends an ACK from reading (tcp_cleanup_rbuf): for the second full
// segment if the window check held it back, for a push that the reader has
// consumed entirely, or for a window that reading has at least doubled.
func (c *Conn) readACK() {
	r := &c.rcv
	if c.state == Closed {
		return
	}
	now := false
	if r.pending&ackScheduled != 0 {
		now = r.nxt-r.wup > uint64(r.mss) ||
			(r.pending&ackPushed2 != 0 || r.pending&ackPushed != 0 && r.pingpong == 0) && r.nxt == r.copied
	}
	if !now && !r.finSeen {
		have := r.window()
		if 2*have <= r.clamp {
			win := c.windowNow()
			now = win > 0 && win >= 2*have
		}
	}
	if now {
		c.sendACK()
	}
}

// pingpong counts data sent soon after data received: an interactive session
// delays its ACKs to let data carry them.
func (c *Conn) pingpong() {
	if c.rcv.ato > 0 && c.now.Sub(c.rcv.lastData) < c.rcv.ato {
		c.rcv.pingpong = 1
	}
}
