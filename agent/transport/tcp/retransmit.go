package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// resend sends a segment of the queue again (__tcp_retransmit_skb); false if
// the peer's window does not allow it. With a closed window the head is sent
// all the same: it serves as the probe.
func (c *Conn) resend(o uint64) bool {
	snd := &c.snd
	r := snd.at(o)
	if r.seq < snd.una && r.flags&SYN == 0 { // partly acknowledged: drop the head
		cut := int(min(snd.una-r.seq, uint64(r.len)))
		r.seq += uint64(cut)
		r.len -= cut
	}
	if r.seq >= snd.wndEnd() && r.seq != snd.una && r.flags&SYN == 0 {
		return false
	}
	r.at = c.paceStamp()
	if snd.inFlight() == 0 {
		c.cc.Event(c.now, c.sync(), TxStart)
	}
	c.info.TotalRetrans++
	c.info.BytesRetrans += vtime.Bytes(r.len)
	if r.flags&SYN != 0 {
		c.sendSYN(r, true)
	} else {
		c.emit(r, true)
		snd.lastSend = c.now
	}
	c.rateSent(r)
	snd.list(o)
	r.tag |= tagEver
	c.pacedBurst(r.len)
	return true
}

// retransmit is resend with the bookkeeping of loss recovery.
func (c *Conn) retransmit(o uint64) bool {
	ok := c.resend(o)
	r := c.snd.at(o)
	if ok && r.tag&tagRetrans == 0 { // after an undo an old copy may be counted still
		r.tag |= tagRetrans
		c.snd.retrans++
	}
	if c.rec.stamp == 0 {
		c.rec.stamp = c.tsAt(r.at)
	}
	c.rec.undoRetrans = max(c.rec.undoRetrans, 0) + 1
	return ok
}

// retransmitQueue sends what is marked lost, oldest first, as far as the
// window allows (RFC 6675 §5 C; tcp_xmit_retransmit_queue).
func (c *Conn) retransmitQueue() {
	snd := &c.snd
	if snd.packets == 0 {
		return
	}
	o := snd.head
	if snd.hintOK {
		o = max(snd.hint, snd.head)
	}
	hole, rearm := false, false
	for ; o < snd.tail; o++ {
		if c.pacingHolds() {
			break
		}
		if !hole {
			snd.hint, snd.hintOK = o, true
		}
		if c.w.Cwnd <= snd.inFlight() || snd.retrans >= snd.lost {
			break
		}
		r := snd.at(o)
		if r.tag&tagLost == 0 {
			hole = hole || r.tag&(tagRetrans|tagSacked) == 0
			continue
		}
		if r.tag&(tagSacked|tagRetrans) != 0 {
			continue
		}
		if !c.retransmit(o) {
			break
		}
		if c.inReduction() {
			c.rec.prrOut++
		}
		if o == snd.head && c.tmr.kind != timerReo {
			rearm = true
		}
	}
	if rearm {
		c.setXmit(timerRTO, c.est.rto)
	}
}

// Zero-window probes (RFC 9293 §3.8.6.1).

// windowProbe runs when the window has been closed for the probe interval.
func (c *Conn) windowProbe() {
	snd := &c.snd
	if snd.packets > 0 || !snd.pending() {
		c.rec.probes = 0
		return
	}
	if c.rec.probes >= c.cfg.Retries {
		c.fail(ErrTimeout)
		return
	}
	c.info.ZeroProbes++
	if snd.nxt < snd.wndEnd() { // open, but too small for a segment: send what fits
		n := int(min(snd.unsent(), int64(snd.wndEnd()-snd.nxt), int64(c.currentMSS())))
		c.sendBurst(n, c.currentMSS(), int64(n) == snd.unsent())
	} else {
		// An old sequence number makes the peer answer with its window.
		c.out.push(c.segment(snd.una-1, ACK))
	}
	if snd.packets > 0 || !snd.pending() {
		c.rec.probes = 0
		c.est.backoff = 0
		return
	}
	c.rec.probes++
	if c.est.backoff < c.cfg.Retries {
		c.est.backoff++
	}
	c.setXmit(timerProbe, c.probeInterval())
}

// probeInterval is the RTO, at least 200 ms, doubled by the backoff.
func (c *Conn) probeInterval() int64 {
	base := max(c.est.rto, c.rtoMin())
	top := int64(c.cfg.RTOMax) / 1000
	b := c.est.backoff
	for ; b > 0 && base < top; b-- {
		base <<= 1
	}
	return min(base, top)
}

// ackProbe looks at the window after an ACK with nothing in flight.
func (c *Conn) ackProbe() {
	if !c.snd.pending() {
		return
	}
	// tcp_ack_probe wants room for the whole next segment.
	if c.fitsWindow() {
		c.est.backoff = 0
		if c.tmr.kind == timerProbe {
			c.stopXmit()
		}
		return
	}
	c.setXmit(timerProbe, c.probeInterval())
}
