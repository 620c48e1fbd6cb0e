package tcp

// rack is the state of RACK (RFC 8985).
type rack struct {
	at       int64  // µs of transmission of the segment delivered that was sent last
	end      uint64 // its end
	rtt      int64  // its RTT
	advanced bool

	// The reordering window, in steps of a quarter of the minimal RTT.
	steps         int
	persist       int
	dsackSeen     bool
	lastDelivered uint64
}

// rackPersist is the number of recoveries that a widened window survives
// (§6.2.2 step 4).
const rackPersist = 16

// sentAfter orders transmissions by time, then by sequence number (§6.2).
func sentAfter(t1, t2 int64, end1, end2 uint64) bool {
	return t1 > t2 || t1 == t2 && end1 > end2
}

// rackAdvance takes note of a segment newly delivered (§6.2 steps 1–2).
func (c *Conn) rackAdvance(r *sent) {
	rtt := c.us - r.at
	if rtt < c.minRTT() && r.tag&tagEver != 0 {
		return // probably the original: the ACK is too early for the retransmission
	}
	c.rk.advanced = true
	c.rk.rtt = rtt
	if sentAfter(r.at, c.rk.at, r.end(), c.rk.end) {
		c.rk.at, c.rk.end = r.at, r.end()
	}
}

// rackWindow returns the reordering window (§6.2.2 step 4): none while no
// reordering has been seen and either recovery runs or DupThresh segments are
// SACKed. RFC 8985 caps it at the smoothed RTT, as Linux.
func (c *Conn) rackWindow() int64 {
	if c.rec.reordSeen == 0 {
		if c.w.State >= Recovery || c.snd.sacked >= c.rec.reordering {
			return 0
		}
	}
	return min(c.minRTT()>>2*int64(c.rk.steps), c.est.srtt8>>3)
}

// rackTimeLeft returns how long the segment may still take before it counts as lost.
func (c *Conn) rackTimeLeft(r *sent, wnd int64) int64 {
	return c.rk.rtt + wnd - (c.us - r.at)
}

// rackDetect marks segments lost that were sent before the last delivered one
// and have exceeded RTT + window (§6.2 step 5); it returns how long to wait
// for the others, 0 if there are none.
func (c *Conn) rackDetect() int64 {
	snd := &c.snd
	wnd := c.rackWindow()
	var wait int64
	for p := snd.oldest; p != 0; {
		o := p - 1
		r := snd.at(o)
		p = r.next
		if r.tag&tagLost != 0 && r.tag&tagRetrans == 0 {
			continue // lost already and not sent again
		}
		if !sentAfter(c.rk.at, r.at, c.rk.end, r.end()) {
			break
		}
		if left := c.rackTimeLeft(r, wnd); left <= 0 {
			c.markLost(o)
			snd.unlist(o)
		} else {
			wait = max(wait, left)
		}
	}
	return wait
}

// timeoutMin is TCP_TIMEOUT_MIN_US: added to the reordering and the probe
// timer for the peer's and the timer's coarseness.
const timeoutMin = 2000

// rackMark runs the detection after an ACK and reports whether it started the
// reordering timer.
func (c *Conn) rackMark() bool {
	if !c.rk.advanced {
		return false
	}
	c.rk.advanced = false
	wait := c.rackDetect()
	if wait > 0 {
		c.setXmit(timerReo, wait+timeoutMin)
	}
	return wait > 0
}

// rackTimeout runs when the reordering window has passed (§6.3).
func (c *Conn) rackTimeout() {
	prior, lost := c.snd.inFlight(), c.rs.lostTotal
	c.rackDetect()
	if c.snd.inFlight() != prior {
		if c.w.State != Recovery {
			c.enterRecovery()
			if c.rate == nil {
				c.reduceCwnd(1, int(c.rs.lostTotal-lost), 0)
			}
		}
		c.retransmitQueue()
	}
	if c.tmr.kind != timerRTO {
		c.rearmRTO()
	}
}

// rackUpdateWindow widens the reordering window by a step for a round with a
// DSACK, at most once per round trip, and narrows it again after 16
// recoveries (§6.2.2 step 4).
func (c *Conn) rackUpdateWindow() {
	pd := c.rs.cur.PriorDelivered
	if pd == 0 {
		return
	}
	if pd < c.rk.lastDelivered {
		c.rk.dsackSeen = false
	}
	if c.rk.dsackSeen {
		c.rk.steps = min(255, c.rk.steps+1)
		c.rk.dsackSeen = false
		c.rk.lastDelivered = c.rs.delivered
		c.rk.persist = rackPersist
	} else if c.rk.persist == 0 {
		c.rk.steps = 1
	}
}

// spuriousRetrans: the echoed timestamp is older than the retransmission, so
// the original was delivered (RFC 3522, Eifel).
func (c *Conn) spuriousRetrans(r *sent) bool {
	return r.tag&tagEver != 0 && c.echoBefore(c.tsAt(r.at))
}

// markLost tags a segment as lost, or its retransmission as lost again.
func (c *Conn) markLost(o uint64) {
	snd := &c.snd
	r := snd.at(o)
	if r.tag&tagSacked != 0 {
		return
	}
	if !snd.hintOK && snd.retrans >= snd.lost || snd.hintOK && r.seq < snd.at(snd.hint).seq {
		snd.hint, snd.hintOK = o, true
	}
	if r.tag&tagLost == 0 {
		snd.lost++
		r.tag |= tagLost
		c.rs.lostTotal++
	} else if r.tag&tagRetrans != 0 {
		r.tag &^= tagRetrans
		snd.retrans--
		c.rs.lostTotal++
	}
}
