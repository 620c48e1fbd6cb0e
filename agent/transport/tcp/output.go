package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// pushMode says what writeXmit is called for.
type pushMode uint8

const (
	pushNormal pushMode = iota
	pushProbe           // one segment, whatever the window (TLP)
	pushOne             // one burst, not deferred (tcp_push_one)
)

// gsoMax is the largest burst in bytes, sk_gso_max_size: 65,536 less the
// largest TCP header.
const gsoMax = 65536 - 1 - 320

// push sends what the windows allow; with nothing in flight and something
// left it starts the zero-window timer.
func (c *Conn) push(noNagle bool) {
	switch c.state {
	case Established, CloseWait, FinWait1, Closing, LastAck:
	default:
		return
	}
	if c.writeXmit(noNagle, pushNormal) && c.tmr.kind == timerNone {
		c.setXmit(timerProbe, max(c.est.rto, c.rtoMin()))
	}
}

func (c *Conn) pushAll() { c.push(c.cfg.NoDelay) }

// currentMSS is the payload of a full segment now: SACK blocks of our own
// take room from it.
func (c *Conn) currentMSS() int {
	if n := c.sackBlocks(); n > 0 {
		return c.snd.mss - 4 - 8*n
	}
	return c.snd.mss
}

// sawWindow takes note of a window that the peer offers. While the largest one
// is less than two full segments, segments are half of it, so that the sender
// does not stop for want of a whole segment's room; a window of at most 536
// bytes may be filled by one (tcp_bound_to_half_wnd, tcp_sync_mss).
func (c *Conn) sawWindow(wnd uint64) {
	snd := &c.snd
	snd.maxWnd = max(snd.maxWnd, wnd)
	most := snd.maxWnd
	if most > 536 {
		most >>= 1
	}
	snd.mss = snd.fullMSS
	if most > 0 && uint64(snd.mss) > most {
		least := 68 - 20 // the smallest IP packet to be accepted anywhere, less the header
		if c.syn.ts {
			least -= 12
		}
		snd.mss = max(int(most), least)
	}
}

// tsoSegs is how many segments a burst should have: a millisecond's worth at
// the pacing rate, more when the peer is close, at least two
// (tcp_tso_autosize).
func (c *Conn) tsoSegs(mss int) int {
	if !c.cfg.TSO {
		return 1
	}
	least := 2
	if c.rate != nil {
		if n := c.rate.MinTSO(c.sync()); n > 0 {
			least = n
		}
	}
	n := c.w.PacingRate >> 10
	if r := c.minRTT() >> 9; r < 32 {
		n += gsoMax >> r
	}
	return max(int(min(n, gsoMax))/mss, least)
}

// cwndQuota is how many segments the window allows now, at most half of it so
// that two bursts are in flight.
func (c *Conn) cwndQuota() int {
	free := c.w.Cwnd - c.snd.inFlight()
	if free <= 0 {
		return 0
	}
	return min(max(c.w.Cwnd>>1, 1), free)
}

// fitsWindow reports whether the next segment fits into the peer's window.
func (c *Conn) fitsWindow() bool {
	n := min(c.snd.unsent(), int64(c.currentMSS()))
	e := c.snd.nxt + uint64(n)
	if c.snd.fin && n == c.snd.unsent() {
		e++
	}
	return e <= c.snd.wndEnd()
}

// nagleHolds: a small segment waits while an earlier small one is not yet
// acknowledged (RFC 9293 §3.7.4 in Minshall's form).
func (c *Conn) nagleHolds(noNagle bool) bool {
	return !noNagle && c.snd.packets > 0 && c.snd.sml > c.snd.una && c.snd.sml <= c.snd.nxt
}

// writeXmit sends new data in bursts as far as the congestion window, the
// peer's window, pacing, Nagle's rule and burst deferral allow. It reports
// whether nothing is in flight although something waits.
func (c *Conn) writeXmit(noNagle bool, mode pushMode) bool {
	snd := &c.snd
	mss := c.currentMSS()
	maxSegs := c.tsoSegs(mss)
	total := 0
	var cwndLimited, rwndLimited bool
	for snd.pending() {
		if c.pacingHolds() {
			break
		}
		quota := c.cwndQuota()
		if quota == 0 {
			if mode != pushProbe {
				break
			}
			quota = 1
		}
		quota = min(quota, maxSegs)
		n, last := c.headBuffer(quota * mss)
		if !c.fitsWindow() {
			rwndLimited = true
			break
		}
		if n <= mss {
			if n < mss && last && !snd.fin && c.nagleHolds(noNagle) {
				break
			}
		} else {
			if mode == pushNormal && c.cfg.TSO && c.deferBurst(n, last, maxSegs, &cwndLimited, &rwndLimited) {
				break
			}
			n = min(n, c.splitPoint(n, last, mss, quota, noNagle))
		}
		snd.headLeft -= n
		total += c.sendBurst(n, mss, last)
		if mode != pushNormal {
			break
		}
	}
	c.chrono(rwndLimited)
	cwndLimited = cwndLimited || snd.inFlight() >= c.w.Cwnd
	if total > 0 || cwndLimited {
		c.validateCwnd(cwndLimited)
	}
	if total > 0 {
		if c.inReduction() {
			c.rec.prrOut += total
		}
		if mode != pushProbe {
			c.scheduleProbe(false)
		}
		return false
	}
	return snd.packets == 0 && snd.pending()
}

// headBuffer returns the length of the buffer at the head of the send queue,
// and whether it is the only one. Linux cuts what is written into buffers
// (bufferGoal); a burst does not span two of them unless the first holds less
// than the burst wants (tcp_grow_skb). The odd segment at the end of a buffer
// is why a full-speed flow sends a single segment now and then.
func (c *Conn) headBuffer(want int) (n int, last bool) {
	snd := &c.snd
	all := int(min(snd.unsent(), 1<<30))
	goal := c.bufferGoal()
	if snd.headLeft <= 0 {
		snd.headLeft = min(max(goal-snd.stolen, 1), all)
		snd.stolen = 0
	}
	n = min(snd.headLeft, all)
	if n < want && n < all {
		take := min(want-n, all-n, goal-snd.stolen)
		n += take
		if snd.stolen += take; snd.stolen >= goal || n == all {
			snd.stolen = 0 // the buffer behind it is used up
		}
		snd.headLeft = n
	}
	return n, n == all
}

// splitPoint returns how many bytes of the burst may leave now.
func (c *Conn) splitPoint(n int, last bool, mss, quota int, noNagle bool) int {
	window := int(c.snd.wndEnd() - c.snd.nxt)
	most := mss * quota
	if most <= window && !last {
		return most
	}
	need := min(n, window)
	if most <= need {
		return most
	}
	if part := need % mss; part != 0 && c.nagleHolds(noNagle) {
		return need - part
	}
	return need
}

// deferBurst waits for a larger burst (tcp_tso_should_defer): when the last
// transmission was less than a millisecond ago, less than a third of the
// window is free and the next ACK is likely soon.
func (c *Conn) deferBurst(n int, last bool, maxSegs int, cwndLimited, rwndLimited *bool) bool {
	snd := &c.snd
	if c.w.State >= Recovery || c.now.Sub(snd.pacedUntil) > vtime.Millisecond {
		return false
	}
	wnd := int(snd.wndEnd() - snd.nxt)
	cwnd := (c.w.Cwnd - snd.inFlight()) * snd.mss
	limit := min(wnd, cwnd)
	if limit >= maxSegs*snd.mss || !last && limit >= n {
		return false
	}
	if limit >= min(int(snd.wnd), c.w.Cwnd*snd.mss)/3 || snd.empty() {
		return false
	}
	// The ACK of the head of the queue must be due within a millisecond (or
	// half a short round trip). Kernels before 2025 deferred for up to half of
	// any round trip.
	srtt := c.est.srtt8 >> 3
	if due := snd.at(snd.head).at + srtt; due-c.us > min(srtt>>1, 1000) {
		return false
	}
	if cwnd < wnd {
		if cwnd <= n {
			*cwndLimited = true
			return true
		}
	} else if wnd <= n {
		*rwndLimited = true
		return true
	}
	return !(last && snd.fin)
}

// sendBurst sends n new bytes (and the FIN if they are the last) and returns
// the number of segments. The last segment of a burst of several carries PSH,
// as Linux does to flush receivers that coalesce.
func (c *Conn) sendBurst(n, mss int, last bool) int {
	snd := &c.snd
	if snd.inFlight() == 0 {
		c.cc.Event(c.now, c.sync(), TxStart)
	}
	at := c.paceStamp()
	fin := last && snd.fin && int64(n) == snd.unsent()
	empty := snd.packets == 0
	segs := 0
	for done := 0; ; {
		l := min(mss, n-done)
		done += l
		o, r := snd.append()
		r.seq, r.len, r.at = snd.nxt, l, at
		if done == n {
			if l > 0 && (segs > 0 || int64(l) == snd.unsent()) {
				r.flags |= PSH
			}
			if fin {
				r.flags |= FIN
				snd.finSent = true
			}
			r.tag = tagBuffer
			snd.buffers++
		}
		c.rateSent(r)
		snd.list(o)
		snd.nxt = r.end()
		snd.packets++
		segs++
		if l < mss {
			snd.sml = snd.nxt
		}
		c.emit(r, false)
		if done == n {
			break
		}
	}
	snd.lastSend = c.now
	c.pacedBurst(n)
	c.pingpong()
	if empty || c.tmr.kind == timerTLP {
		c.rearmRTO()
	}
	return segs
}

// emit puts a segment of the retransmission queue into the output.
func (c *Conn) emit(r *sent, again bool) {
	s := c.segment(r.seq, r.flags|ACK)
	s.Len = r.len
	s.Retransmission = again
	if r.len > 0 {
		c.info.DataSegsOut++
		c.info.BytesSent += vtime.Bytes(r.len)
	}
	c.out.push(s)
}

// segment returns a segment with the acknowledgement, the window and the
// options of now; what was owed as an ACK is thereby sent.
func (c *Conn) segment(seq uint64, f Flags) *Segment {
	s := c.pool.Get()
	s.Seq, s.Flags = seq, f
	if f&ACK != 0 {
		s.Ack = c.rcv.nxt
	}
	if f&RST == 0 {
		c.addOptions(s)
	}
	if f&(ACK|RST) == ACK {
		s.Window = c.selectWindow()
		c.ackSent()
	}
	c.info.SegsOut++
	return s
}

func (c *Conn) addOptions(s *Segment) {
	if c.syn.ts {
		s.HasTS, s.TSVal, s.TSEcr = true, c.tsNow(), c.rcv.tsRecent
	}
	if s.Flags&SYN == 0 {
		c.addSACK(s)
	}
}

// sendACK sends a pure ACK.
func (c *Conn) sendACK() {
	if c.state == Closed {
		return
	}
	c.out.push(c.segment(c.snd.nxt, ACK))
}

// challengeACK answers what does not fit the connection (RFC 5961 §3, §7),
// at most one in 500 ms (tcp_invalid_ratelimit).
func (c *Conn) challengeACK() {
	if c.rcv.challenged && c.now.Sub(c.rcv.challengeAt) < 500*vtime.Millisecond {
		return
	}
	c.rcv.challenged, c.rcv.challengeAt = true, c.now
	c.sendACK()
}

// tsNow is the timestamp clock: milliseconds, as Linux's; it begins at 1
// because 0 means none.
func (c *Conn) tsNow() uint32        { return c.tsAt(c.us) }
func (c *Conn) tsAt(us int64) uint32 { return uint32(us/1000) + 1 }
func (c *Conn) echoBefore(t uint32) bool {
	return c.rcv.sawTS && c.rcv.tsEcr != 0 && int32(c.rcv.tsEcr-t) < 0
}

// pacing: only BBR paces (sk_pacing_status); the others merely note when they
// sent last.

func (c *Conn) pacingHolds() bool {
	if !c.w.Pacing || c.snd.pacedUntil <= c.now {
		return false
	}
	if c.tmr.pace == vtime.Never {
		c.tmr.pace = c.snd.pacedUntil
	}
	return true
}

// paceStamp returns the transmission time of the next burst in µs.
func (c *Conn) paceStamp() int64 {
	c.snd.pacePrev = c.snd.pacedUntil
	c.snd.pacedUntil = max(c.snd.pacedUntil, c.now)
	return micros(c.snd.pacedUntil)
}

// pacedBurst moves the earliest next transmission by the burst's time at the
// pacing rate, less at most half for having been late
// (tcp_update_skb_after_send).
func (c *Conn) pacedBurst(n int) {
	if !c.w.Pacing || c.w.PacingRate == 0 || n == 0 || c.info.DataSegsOut < 10 {
		return
	}
	t := vtime.Duration(uint64(n) * 1_000_000_000 / c.w.PacingRate)
	credit := c.snd.pacedUntil.Sub(c.snd.pacePrev)
	t -= min(t/2, max(credit, 0))
	c.snd.pacedUntil = c.snd.pacedUntil.Add(t)
}
