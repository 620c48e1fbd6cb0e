package tcp

// The window arithmetic shared by the congestion controls (tcp_cong.c), the
// validation of the window (RFC 7661 as Linux does it) and its restart after
// idle (RFC 2861).

// sync copies into the control's view what changed outside it.
func (c *Conn) sync() *Window {
	w, s := &c.w, &c.snd
	w.InFlight, w.PacketsOut = s.inFlight(), s.packets
	w.Delivered, w.SndNxt, w.SndUna = c.rs.delivered, s.nxt, s.una
	w.BytesAcked = uint64(c.info.BytesAcked)
	w.MSS = s.mss
	w.SRTT = usDuration(c.est.srtt8 >> 3)
	w.MinRTT = 0
	if c.est.min.set {
		w.MinRTT = usDuration(c.minRTT())
	}
	w.LastSend = s.lastSend
	w.AppLimited = c.rs.appLimited != 0
	w.NextSend = s.pacedUntil
	return w
}

// InSlowStart reports whether the window is below the threshold.
func (w *Window) InSlowStart() bool { return w.Cwnd < w.Ssthresh }

// Limited reports whether the window limits the flow, so that it may grow
// (tcp_is_cwnd_limited): in slow start also while it is less than twice what
// was in flight.
func (w *Window) Limited() bool {
	return w.CwndLimited || w.InSlowStart() && w.Cwnd < 2*w.MaxPacketsOut
}

// SlowStart raises the window by one per segment acknowledged, up to the
// threshold (RFC 5681 §3.1 with ABC, RFC 3465, L = ∞: Linux counts every
// segment of a stretch ACK), and returns the segments left over.
func (w *Window) SlowStart(acked int) int {
	next := min(w.Cwnd+acked, w.Ssthresh)
	acked -= next - w.Cwnd
	w.Cwnd = min(next, w.Clamp)
	return acked
}

// Increase adds one segment to the window per n segments acknowledged.
func (w *Window) Increase(n, acked int) {
	if w.CwndCnt >= n {
		w.CwndCnt = 0
		w.Cwnd++
	}
	w.CwndCnt += acked
	if w.CwndCnt >= n {
		d := w.CwndCnt / n
		w.CwndCnt -= d * n
		w.Cwnd += d
	}
	w.Cwnd = min(w.Cwnd, w.Clamp)
}

// inReduction reports whether PRR governs the window.
func (c *Conn) inReduction() bool { return c.w.State == CWR || c.w.State == Recovery }

// currentSsthresh is the threshold to remember: at least 3/4 of the window
// when it is not being reduced.
func (c *Conn) currentSsthresh() int {
	if c.inReduction() {
		return c.w.Ssthresh
	}
	return max(c.w.Ssthresh, c.w.Cwnd>>1+c.w.Cwnd>>2)
}

// validateCwnd notes whether the window was the limit in this window of data
// (tcp_cwnd_validate): a window that is not used does not grow, and is cut
// after an RTO of disuse (RFC 2861 §3.1).
func (c *Conn) validateCwnd(limited bool) {
	s, w := &c.snd, &c.w
	if s.una >= s.usageSeq || limited || !w.CwndLimited && s.packets > w.MaxPacketsOut {
		w.CwndLimited = limited
		w.MaxPacketsOut = s.packets
		s.usageSeq = s.nxt
	}
	if w.Limited() {
		s.cwndUsed = 0
		s.cwndStamp = c.now
		return
	}
	s.cwndUsed = max(s.cwndUsed, s.packets)
	if !c.cfg.SlowStartAfterIdle || c.rate != nil || int64(c.now.Sub(s.cwndStamp))/1000 < c.est.rto {
		return
	}
	if w.State == Open && !s.wakeAfter {
		used := max(s.cwndUsed, min(c.cfg.InitialWindow, w.Clamp))
		if used < w.Cwnd {
			w.Ssthresh = c.currentSsthresh()
			w.Cwnd = (w.Cwnd + used) >> 1
		}
		s.cwndUsed = 0
	}
	s.cwndStamp = c.now
}

// idleRestart halves the window for each RTO of idleness down to the initial
// one (RFC 2861 §3.1, RFC 5681 §4.1), before new data is queued.
func (c *Conn) idleRestart() {
	s, w := &c.snd, &c.w
	if !c.cfg.SlowStartAfterIdle || s.packets > 0 || c.rate != nil || s.lastSend == 0 {
		return
	}
	idle := int64(c.now.Sub(s.lastSend)) / 1000
	if idle <= c.est.rto {
		return
	}
	c.cc.Event(c.now, c.sync(), CwndRestart)
	w.Ssthresh = c.currentSsthresh()
	floor := min(c.cfg.InitialWindow, w.Cwnd, w.Clamp)
	cwnd := w.Cwnd
	for idle -= c.est.rto; idle > 0 && cwnd > floor; idle -= c.est.rto {
		cwnd >>= 1
	}
	w.Cwnd = max(cwnd, floor)
	s.cwndStamp = c.now
	s.cwndUsed = 0
}

// pacingRate estimates the rate of the flow (tcp_update_pacing_rate): twice
// the current rate in slow start, 1.2 times after. Without pacing it sizes
// TSO bursts (one millisecond's worth).
func (c *Conn) pacingRate() {
	w := &c.w
	ratio := uint64(120)
	if w.Cwnd < w.Ssthresh/2 {
		ratio = 200
	}
	r := uint64(c.snd.mss) * (10000 << 3) * ratio * uint64(max(w.Cwnd, c.snd.packets))
	if c.est.srtt8 > 0 {
		r /= uint64(c.est.srtt8)
	}
	w.PacingRate = r
}
