package tcp

// Timeouts (RFC 6298 §5) and F-RTO (RFC 5682, the SACK-enhanced version).

// retransmitTimeout is the RTO.
func (c *Conn) retransmitTimeout() {
	snd := &c.snd
	if c.state == SynReceived {
		c.synAckTimeout()
		return
	}
	if snd.packets == 0 || snd.empty() {
		return
	}
	if snd.wnd == 0 && c.state != SynSent {
		// The window was shrunk to nothing: the retransmission is a probe.
		// Linux gives up if the peer has been silent for twice the largest RTO.
		if c.rec.stamp != 0 && int64(c.tsNow()-c.rec.stamp) > 2*int64(c.cfg.RTOMax)/1e6 && c.silent() {
			c.fail(ErrTimeout)
			return
		}
		c.enterLoss()
		c.retransmit(snd.head)
		c.backoff()
		return
	}
	c.info.Timeouts++
	if c.timedOut() {
		c.fail(ErrTimeout)
		return
	}
	c.enterLoss()
	c.rec.retransmits++
	c.syn.timeouts++
	c.retransmit(snd.head)
	c.backoff()
}

// backoff doubles the timeout (RFC 6298 §5.5). Linux keeps the first four SYN
// timeouts at one second (tcp_syn_linear_timeouts).
func (c *Conn) backoff() {
	if c.state != SynSent || c.syn.timeouts > synLinear {
		c.est.backoff++
		c.est.rto = min(c.est.rto<<1, int64(c.cfg.RTOMax)/1000)
	}
	c.setXmit(timerRTO, c.est.rto)
}

// synLinear is tcp_syn_linear_timeouts.
const synLinear = 4

// silent reports that nothing came from the peer for twice the largest RTO.
func (c *Conn) silent() bool {
	return c.now.Sub(c.rcv.lastSeg) > 2*c.cfg.RTOMax
}

// timedOut reports whether to give up (tcp_retries2: the time that so many
// backoffs from 200 ms would take, RFC 9293 §3.8.3 R2).
func (c *Conn) timedOut() bool {
	if c.state == SynSent {
		return c.rec.retransmits >= c.cfg.SYNRetries+synLinear
	}
	if c.rec.retransmits == 0 {
		return false
	}
	base, top := int64(c.cfg.RTOMin)/1e6, int64(c.cfg.RTOMax)/1e6 // ms
	base = max(base, 1)
	linear := 0
	for top/base>>(linear+1) > 0 {
		linear++
	}
	var limit int64
	if c.cfg.Retries <= linear {
		limit = (2<<c.cfg.Retries - 1) * base
	} else {
		limit = (2<<linear-1)*base + int64(c.cfg.Retries-linear)*top
	}
	return int64(int32(c.tsNow()-c.rec.stamp)) >= limit
}

// enterLoss begins recovery by timeout (RFC 5681 §3.1 (4)).
func (c *Conn) enterLoss() {
	snd, rec := &c.snd, &c.rec
	fresh := c.w.State < Recovery
	c.timeoutMarkLost()
	if c.w.State <= Disorder || snd.una >= rec.high || c.w.State == Loss && rec.retransmits == 0 {
		rec.priorSsthresh = c.currentSsthresh()
		c.w.PriorCwnd = c.w.Cwnd
		c.w.Ssthresh = c.cc.Ssthresh(c.sync())
		c.cc.Event(c.now, c.sync(), LossEvent)
		c.initUndo()
	}
	c.w.Cwnd = snd.inFlight() + 1
	c.w.CwndCnt = 0
	snd.cwndStamp = c.now
	if c.w.State <= Disorder && snd.sacked >= defaultReordering {
		rec.reordering = min(rec.reordering, defaultReordering)
	}
	c.setCA(Loss)
	rec.high = snd.nxt
	rec.tlpEnd = 0
	// RFC 5682 §3.1 step 1: not within another recovery, except for repeated
	// timeouts of the same segment.
	rec.frto = c.cfg.FRTO && (fresh || rec.retransmits > 0)
}

// timeoutMarkLost marks the queue lost, but for what was sent less than a
// round trip ago (RFC 8985 §6.3); SACKs are kept unless the receiver reneged.
func (c *Conn) timeoutMarkLost() {
	snd := &c.snd
	if snd.empty() {
		return
	}
	reneg := snd.at(snd.head).tag&tagSacked != 0
	if reneg {
		snd.sacked = 0
		c.rec.reneg = true
	} else if !c.syn.sack {
		snd.sacked = 0
	}
	for o := snd.head; o < snd.tail; o++ {
		r := snd.at(o)
		if reneg {
			if r.tag&tagSacked != 0 {
				r.tag &^= tagSacked
				snd.list(o)
			}
		} else if o != snd.head && c.rackTimeLeft(r, 0) > 0 {
			continue
		}
		c.markLost(o)
	}
	snd.hintOK = false
}

// processLoss handles an ACK in Loss: F-RTO, undo, or slow-start
// retransmission.
func (c *Conn) processLoss(f ackFlags, dup int, rx *rexmit) {
	snd, rec := &c.snd, &c.rec
	recovered := snd.una >= rec.high
	if f&flagUnaAdvanced != 0 && c.tryUndoLoss(false) {
		return
	}
	if rec.frto {
		// RFC 5682 §3.1 step 3b: never-retransmitted data arrived, so the
		// timeout was spurious.
		if f&flagOrigAcked != 0 && c.tryUndoLoss(true) {
			return
		}
		if snd.nxt > rec.high {
			if f&flagDataSacked != 0 || dup > 0 {
				rec.frto = false // step 3a: the loss was real
			}
		} else if f&flagUnaAdvanced != 0 && !recovered {
			rec.high = snd.nxt
			if snd.pending() && snd.wndEnd() > snd.nxt {
				*rx = rexmitNew // step 2b
				return
			}
			rec.frto = false
		}
	}
	if recovered {
		c.tryUndoRecovery()
		return
	}
	if !c.syn.sack {
		if snd.nxt > rec.high && dup > 0 {
			c.addRenoSack(dup)
		} else if f&flagUnaAdvanced != 0 {
			snd.sacked = 0
		}
	}
	*rx = rexmitLost
}

func (c *Conn) tryUndoLoss(frto bool) bool {
	if !frto && !c.mayUndo() {
		return false
	}
	c.undoReduction(true)
	if frto {
		c.info.SpuriousRTOs++
	}
	c.rec.retransmits = 0
	if c.holdsReopen() {
		return true
	}
	if frto || c.syn.sack {
		c.setCA(Open)
		c.rec.reneg = false
	}
	return true
}
