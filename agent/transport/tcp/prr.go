package tcp

// Proportional rate reduction (RFC 6937, with the revisions of RFC 9937 that
// Linux has: the slow-start bound only while snd_una advances without new
// losses, and at least one segment on entering recovery).

// beginReduction starts a reduction of the window to the control's threshold.
func (c *Conn) beginReduction() {
	c.rec.high = c.snd.nxt
	c.rec.tlpEnd = 0
	c.w.CwndCnt = 0
	c.w.PriorCwnd = c.w.Cwnd
	c.rec.prrDelivered, c.rec.prrOut = 0, 0
	c.w.Ssthresh = c.cc.Ssthresh(c.sync())
}

// reduceCwnd sets the window so that over the recovery sent/delivered goes to
// ssthresh/prior.
func (c *Conn) reduceCwnd(delivered, lost int, f ackFlags) {
	if delivered <= 0 || c.w.PriorCwnd == 0 {
		return
	}
	r := &c.rec
	flight := c.snd.inFlight()
	room := c.w.Ssthresh - flight
	r.prrDelivered += delivered
	var n int
	if room < 0 {
		n = (c.w.Ssthresh*r.prrDelivered+c.w.PriorCwnd-1)/c.w.PriorCwnd - r.prrOut
	} else {
		n = max(r.prrDelivered-r.prrOut, delivered)
		if f&flagUnaAdvanced != 0 && lost == 0 {
			n++
		}
		n = min(room, n)
	}
	if r.prrOut == 0 {
		n = max(n, 1)
	} else {
		n = max(n, 0)
	}
	c.w.Cwnd = flight + n
}

// endReduction leaves the window at the threshold, unless it was undone.
func (c *Conn) endReduction() {
	if c.rate != nil {
		return
	}
	if c.w.Ssthresh < infinite && (c.w.State == CWR || c.rec.undo != 0) {
		c.w.Cwnd = c.w.Ssthresh
		c.snd.cwndStamp = c.now
	}
	c.cc.Event(c.now, c.sync(), CompleteCWR)
}
