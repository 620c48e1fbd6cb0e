package tcp

// Tail loss probes (RFC 8985 §7).

// scheduleProbe starts the probe timer if a probe is allowed and reports it:
// with SACK, outside recovery. The timeout is 2·SRTT (RFC 8985 §7.2) plus two
// milliseconds, or with one segment in flight plus the minimum RTO for a delayed
// ACK; never later than the RTO.
func (c *Conn) scheduleProbe(advancing bool) bool {
	if !c.cfg.TLP || c.snd.packets == 0 || !c.syn.sack || c.w.State != Open && c.w.State != CWR {
		return false
	}
	pto := int64(1000000)
	if c.est.srtt8 > 0 {
		pto = c.est.srtt8 >> 2
		if c.snd.packets == 1 {
			pto += c.rtoMin()
		} else {
			pto += timeoutMin
		}
	}
	rto := c.est.rto
	if !advancing {
		rto = c.rtoDelta()
	}
	if rto > 0 {
		pto = min(pto, rto)
	}
	c.setXmit(timerTLP, pto)
	return true
}

// sendProbe sends a new segment, or the last one again (§7.3).
func (c *Conn) sendProbe() {
	snd := &c.snd
	if c.rec.tlpEnd == 0 && c.trySendProbe() {
		c.rec.tlpEnd = snd.nxt
		c.info.TLPProbes++
		c.tmr.kind = timerNone // the RTO starts anew
	}
	c.rearmRTO()
}

func (c *Conn) trySendProbe() bool {
	snd := &c.snd
	c.rec.tlpRetrans = false
	if snd.pending() && c.fitsWindow() {
		n := snd.packets
		c.writeXmit(true, pushProbe)
		return snd.packets > n
	}
	if snd.empty() || !c.resend(snd.tail-1) {
		return false
	}
	c.rec.tlpRetrans = true
	return true
}

// probeAcked ends the episode (§7.4.2).
func (c *Conn) probeAcked(ack uint64, f ackFlags) {
	rec := &c.rec
	if ack < rec.tlpEnd {
		return
	}
	switch {
	case !rec.tlpRetrans, f&flagDsackTLP != 0:
		rec.tlpEnd = 0
	case ack > rec.tlpEnd:
		// The probe repaired a loss that nothing else noticed: reduce once.
		c.beginReduction()
		c.setCA(CWR)
		c.endReduction()
		c.tryKeepOpen()
		c.info.TLPRecovers++
	case f&(flagUnaAdvanced|flagNotDup|flagDataSacked) == 0:
		rec.tlpEnd = 0 // a pure duplicate ACK: both copies arrived
	}
}
