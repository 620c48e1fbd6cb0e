package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// ackFlags say what an ACK brought.
type ackFlags uint16

const (
	flagData            ackFlags = 1 << iota // the segment carried data
	flagWinUpdate                            // the window moved
	flagDataAcked                            // new data acknowledged
	flagRetransAcked                         // some of it had been retransmitted
	flagSynAcked                             // our SYN acknowledged
	flagDataSacked                           // new SACK
	flagLostRetrans                          // a retransmission was found lost
	flagOrigAcked                            // never-retransmitted data acknowledged or SACKed
	flagUnaAdvanced                          // snd_una moved
	flagDsack                                // a DSACK block
	flagDsackTLP                             // … for a loss probe
	flagSetTimer                             // restart the timer
	flagReneging                             // snd_una reached a SACKed segment
	flagAckMaybeDelayed                      // probably a delayed ACK
)

const (
	flagAcked    = flagDataAcked | flagSynAcked
	flagNotDup   = flagData | flagWinUpdate | flagAcked
	flagAlert    = flagDataSacked | flagDsack
	flagProgress = flagAcked | flagDataSacked
)

// rexmit says what an ACK allows to be sent beside new data.
type rexmit uint8

const (
	rexmitNone rexmit = iota
	rexmitLost        // what is marked lost
	rexmitNew         // new data first (F-RTO step 2b)
)

// sackState gathers what the SACK blocks of one ACK brought.
type sackState struct {
	first, last int64  // µs when the earliest and latest newly SACKed, never retransmitted segments were sent; 0 = none
	reord       uint64 // lowest such sequence number below the highest SACK
	delivered   int
}

func usDuration(us int64) vtime.Duration { return vtime.Duration(us) * vtime.Microsecond }

// ack processes the acknowledgement in s (RFC 5681, RFC 6675; the order of
// steps is that of tcp_ack) and reports whether it was acceptable.
func (c *Conn) ack(s *Segment) bool {
	snd := &c.snd
	prior := snd.una
	priorPackets := snd.packets
	priorDelivered, priorLost := c.rs.delivered, c.rs.lostTotal
	var f ackFlags
	var st sackState
	c.rateBegin()
	c.rs.cur.PriorInFlight = snd.inFlight()

	if s.Ack < prior {
		if s.Ack+min(snd.maxWnd, uint64(c.info.BytesAcked)) < prior {
			c.challengeACK()
			return false
		}
		c.oldAck(s, prior, &st)
		return true
	}
	if s.Ack > snd.nxt {
		return false // acknowledges what was never sent
	}
	if s.Ack > prior {
		f |= flagUnaAdvanced
		c.rec.retransmits = 0
	}
	priorFack := prior
	if c.syn.sack {
		priorFack = c.highestSack()
	}
	if s.Len > 0 || s.Flags&(SYN|FIN) != 0 {
		f |= flagData
	}
	f |= c.updateWindow(s)
	if c.syn.sack && s.NSACK > 0 {
		f |= c.processSACK(s, prior, &st)
		c.countDelivered(st.delivered)
	}
	c.rec.probes = 0

	rx := rexmitNone
	if priorPackets == 0 {
		if f&flagDsack != 0 {
			c.alert(prior, 0, &f, &rx)
		}
		c.ackProbe()
		if c.rec.tlpEnd != 0 {
			c.probeAcked(s.Ack, f)
		}
		return true
	}

	f |= c.cleanQueue(prior, priorFack, &st)
	c.rackUpdateWindow()
	if c.rec.tlpEnd != 0 {
		c.probeAcked(s.Ack, f)
	}
	if f&flagNotDup == 0 || f&flagAlert != 0 || c.w.State != Open {
		dup := 0
		if f&(flagUnaAdvanced|flagNotDup|flagDsack) == 0 {
			dup = 1
		}
		c.alert(prior, dup, &f, &rx)
	}
	if f&flagSetTimer != 0 {
		c.setXmitTimer()
	}
	delivered := int(c.rs.delivered - priorDelivered)
	rs := c.rateEnd(delivered, int(c.rs.lostTotal-priorLost), c.rec.reneg)
	rs.AckDelayed = f&flagAckMaybeDelayed != 0
	c.congestionControl(rs, delivered, f)
	c.transmitRecovery(rx)
	return true
}

// oldAck looks at the SACK blocks of an ACK that was overtaken.
func (c *Conn) oldAck(s *Segment, prior uint64, st *sackState) {
	if !c.syn.sack || s.NSACK == 0 {
		return
	}
	f := c.processSACK(s, prior, st)
	c.countDelivered(st.delivered)
	rx := rexmitNone
	c.alert(prior, 0, &f, &rx)
	c.transmitRecovery(rx)
}

// updateWindow takes the peer's window (RFC 9293 §3.10.7.4, with Linux's
// rule for which segment is newer) and moves snd_una.
func (c *Conn) updateWindow(s *Segment) ackFlags {
	snd := &c.snd
	var f ackFlags
	win := uint64(s.Window)
	if s.Flags&SYN == 0 {
		win <<= snd.scale
	}
	if s.Ack > snd.una || s.Seq > snd.wl1 || s.Seq == snd.wl1 && (win > snd.wnd || win == 0) {
		f |= flagWinUpdate
		snd.wl1 = s.Seq
		if snd.wnd != win {
			snd.wnd = win
			if snd.pending() {
				c.idleRestart()
			}
			c.sawWindow(win)
		}
	}
	c.info.BytesAcked += vtime.Bytes(s.Ack - snd.una)
	snd.una = s.Ack
	return f
}

// cleanQueue removes what is cumulatively acknowledged and takes the RTT
// samples (tcp_clean_rtx_queue).
func (c *Conn) cleanQueue(prior, priorFack uint64, st *sackState) ackFlags {
	snd := &c.snd
	var f ackFlags
	var firstAt, lastAt int64
	priorSacked := snd.sacked
	reord := snd.nxt
	acked := 0
	for !snd.empty() {
		r := snd.at(snd.head)
		if r.end() > snd.una {
			break
		}
		switch {
		case r.tag&(tagEver|tagRetrans) != 0:
			if r.tag&tagRetrans != 0 {
				snd.retrans--
			}
			f |= flagRetransAcked
		case r.tag&tagSacked == 0:
			lastAt = r.at
			if firstAt == 0 {
				firstAt = r.at
			}
			reord = min(reord, r.seq)
			if r.end() <= c.rec.high {
				f |= flagOrigAcked
			}
		}
		if r.tag&tagSacked != 0 {
			snd.sacked--
		} else if c.syn.sack {
			c.countDelivered(1)
			if !c.spuriousRetrans(r) {
				c.rackAdvance(r)
			}
		}
		if r.tag&tagLost != 0 {
			snd.lost--
		}
		if r.tag&tagBuffer != 0 {
			snd.buffers--
		}
		snd.packets--
		acked++
		c.rateDelivered(r)
		if r.flags&SYN != 0 {
			f |= flagSynAcked
			c.rec.stamp = 0
		} else {
			f |= flagDataAcked
		}
		if snd.hintOK && snd.hint == snd.head {
			snd.hintOK = false
		}
		snd.unlist(snd.head)
		snd.head++
	}
	if !snd.empty() && snd.at(snd.head).tag&tagSacked != 0 {
		f |= flagReneging
	}
	seqRTT, sackRTT, caRTT := int64(-1), int64(-1), int64(-1)
	if firstAt != 0 && f&flagRetransAcked == 0 {
		seqRTT, caRTT = c.us-firstAt, c.us-lastAt
		if acked == 1 && priorSacked == 0 && snd.una-prior < uint64(snd.mss) &&
			c.rs.cur.PriorDelivered+1 == c.rs.delivered && f&flagSynAcked == 0 && st.delivered == 0 {
			f |= flagAckMaybeDelayed // a lone runt over the whole round trip
		}
	}
	if st.first != 0 {
		sackRTT, caRTT = c.us-st.first, c.us-st.last
	}
	caRTT, sampled := c.rttUpdate(f, seqRTT, sackRTT, caRTT)
	c.rs.cur.RTT = usDuration(caRTT)
	if caRTT < 0 {
		c.rs.cur.RTT = -1
	}
	if f&flagAcked != 0 {
		f |= flagSetTimer
		if !c.syn.sack {
			c.removeRenoSacks(acked)
			if f&flagRetransAcked != 0 {
				f &^= flagOrigAcked
			}
		} else if reord < priorFack {
			c.checkReordering(reord) // a hole that was never retransmitted got filled
		}
	} else if !snd.empty() && sampled && sackRTT >= 0 && sackRTT > c.us-snd.at(snd.head).at {
		// The SACKed data was sent before the head was last sent: progress.
		f |= flagSetTimer
	}
	c.cc.Acked(c.now, c.sync(), acked, c.rs.cur.RTT)
	return f
}

// congestionControl lets PRR or the congestion control set the window.
func (c *Conn) congestionControl(rs *RateSample, delivered int, f ackFlags) {
	if c.rate != nil {
		c.rate.Main(c.now, c.sync(), rs)
		if c.w.MarkAppLimited {
			c.w.MarkAppLimited = false
			c.rs.appLimited = max(c.rs.delivered+uint64(c.snd.inFlight()), 1)
		}
		return
	}
	if c.inReduction() {
		c.reduceCwnd(delivered, rs.Losses, f)
	} else if c.mayRaise(f) {
		c.cc.Avoid(c.now, c.sync(), delivered)
		c.snd.cwndStamp = c.now
	}
	c.pacingRate()
}

// mayRaise: the window grows on in-order delivery (RFC 5681); on any
// delivery once the path is known to reorder.
func (c *Conn) mayRaise(f ackFlags) bool {
	if c.rec.reordering > defaultReordering {
		return f&flagProgress != 0
	}
	return f&flagDataAcked != 0
}

// transmitRecovery sends what the ACK allowed, after the window was set.
func (c *Conn) transmitRecovery(rx rexmit) {
	if rx == rexmitNone || c.state == SynSent {
		return
	}
	if rx == rexmitNew {
		c.push(true)
		if c.snd.nxt > c.rec.high {
			return
		}
		c.rec.frto = false
	}
	c.retransmitQueue()
}
