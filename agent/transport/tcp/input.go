package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// timeWait is how long TIME-WAIT and an orphaned FIN-WAIT-2 last (Linux: 60 s,
// tcp_fin_timeout; RFC 9293 §3.4.2 asks for 2 MSL).
const timeWait = 60 * vtime.Second

// Receive processes a segment from the peer. The segment stays the caller's.
func (c *Conn) Receive(now vtime.Time, s *Segment) {
	c.clock(now)
	c.info.SegsIn++
	if s.Len > 0 {
		c.info.DataSegsIn++
	}
	switch c.state {
	case Closed:
		if s.Flags&RST == 0 && c.snd.nxt > 0 {
			c.resetFor(s) // it was a connection once: RFC 9293 §3.10.7.1
		}
		return
	case Listen:
		c.receiveListen(s)
		return
	case SynSent:
		c.receiveSynSent(s)
		return
	case TimeWait:
		c.receiveTimeWait(s)
		return
	}
	if !c.acceptable(s) {
		return
	}
	opening := c.state == SynReceived
	if opening && !c.receiveSynReceived(s) {
		return
	}
	if s.Flags&ACK == 0 {
		return
	}
	c.replaceTS(s)
	if !c.ack(s) {
		return
	}
	c.rcv.lastSeg = c.now
	c.finAcked()
	if c.state == Closed || c.state == TimeWait {
		return
	}
	// Not for the handshake's last ACK (tcp_rcv_state_process): the first data,
	// which echoes the same timestamp, is the first sample.
	if c.rcv.sawTS && !opening && c.state == Established {
		c.rcvRTTByTS(s)
	}
	c.queueData(s)
	c.pushAll()
	c.sendSpace()
	if c.state != TimeWait {
		c.checkACK()
	}
}

// acceptable checks the segment against the window (RFC 9293 §3.10.7.4) and
// the timestamps against wrapping (RFC 7323 §5), and handles RST and SYN.
func (c *Conn) acceptable(s *Segment) bool {
	r := &c.rcv
	r.sawTS = c.syn.ts && s.HasTS
	if r.sawTS {
		r.tsVal, r.tsEcr = s.TSVal, s.TSEcr
		if int32(r.tsRecent-s.TSVal) > 0 && s.Flags&RST == 0 && !c.disorderedACK(s) {
			if !c.oowLimited(s) {
				c.dupACK(s)
			}
			return false
		}
	}
	if !c.inSequence(s) {
		if s.Flags&RST == 0 && !c.oowLimited(s) {
			c.dupACK(s)
		}
		return false
	}
	if s.Flags&RST != 0 {
		// RFC 5961 §3.2: exactly the next sequence number, else a challenge.
		if s.Seq == r.nxt || c.state == SynReceived {
			c.fail(ErrReset)
		} else {
			c.challengeACK()
		}
		return false
	}
	if s.Flags&SYN != 0 && c.state != SynReceived {
		c.challengeACK() // RFC 5961 §4.2; a lost handshake ACK is repaired so
		return false
	}
	return true
}

// inSequence: some of the segment lies in the window. Linux measures the left
// edge at the last acknowledgement sent.
func (c *Conn) inSequence(s *Segment) bool {
	r := &c.rcv
	end := s.End()
	if end < r.wup {
		return false
	}
	if right := r.nxt + r.window(); end > right {
		if s.Seq > right {
			return false
		}
		return r.nxt == r.copied || s.Len == 0 // beyond the window only if nothing waits unread
	}
	return true
}

// disorderedACK lets a duplicate ACK with an older timestamp pass.
func (c *Conn) disorderedACK(s *Segment) bool {
	win := uint64(s.Window) << c.snd.scale
	newer := s.Ack > c.snd.una || s.Seq > c.snd.wl1 || s.Seq == c.snd.wl1 && (win > c.snd.wnd || win == 0)
	return s.Flags&ACK != 0 && s.Seq == s.End() && s.Seq == c.rcv.nxt && s.Ack == c.snd.una && !newer &&
		int64(int32(c.rcv.tsRecent-s.TSVal)) <= c.est.rto*1200/1_000_000
}

// oowLimited limits the answers to out-of-window ACKs (not to data).
func (c *Conn) oowLimited(s *Segment) bool {
	if s.Seq != s.End() && s.Flags&SYN == 0 {
		return false
	}
	r := &c.rcv
	if r.challenged && c.now.Sub(r.challengeAt) < 500*vtime.Millisecond {
		return true
	}
	r.challenged, r.challengeAt = true, c.now
	return false
}

// dupACK answers old data with a DSACK (RFC 2883 §4.1).
func (c *Conn) dupACK(s *Segment) {
	r := &c.rcv
	if s.End() != s.Seq && s.Seq < r.nxt {
		c.enterQuickACK()
		c.setDSACK(s.Seq, min(s.End(), r.nxt))
	}
	c.sendACK()
}

// replaceTS remembers the timestamp to echo: that of the segment that moves,
// or is left of, the last acknowledgement sent (RFC 7323 §4.3).
func (c *Conn) replaceTS(s *Segment) {
	if c.rcv.sawTS && s.Seq <= c.rcv.wup && int32(s.TSVal-c.rcv.tsRecent) >= 0 {
		c.rcv.tsRecent = s.TSVal
	}
}

// finAcked moves the closing states when our FIN is acknowledged.
func (c *Conn) finAcked() {
	snd := &c.snd
	if !snd.finSent || snd.una < snd.nxt {
		return
	}
	switch c.state {
	case FinWait1:
		c.setState(FinWait2)
	case Closing:
		c.enterTimeWait()
	case LastAck:
		c.setState(Closed)
	}
}

func (c *Conn) enterTimeWait() {
	c.setState(TimeWait)
	c.tmr.stopAll()
	c.tmr.wait = c.now.Add(timeWait)
}

// receiveFIN processes the peer's FIN once everything before it has arrived
// (RFC 9293 §3.10.7.4, eighth step).
func (c *Conn) receiveFIN() {
	c.rcv.nxt++
	c.rcv.finSeen = true
	c.scheduleACK()
	switch c.state {
	case Established:
		c.setState(CloseWait)
		c.rcv.pingpong = 1
	case FinWait1:
		c.sendACK()
		c.setState(Closing)
	case FinWait2:
		c.sendACK()
		c.enterTimeWait()
	}
	c.rcv.ofo = c.rcv.ofo[:0]
	c.rcv.ofoMem = 0
	c.rcv.nsack = 0
}

func (c *Conn) receiveTimeWait(s *Segment) {
	if s.Flags&RST != 0 {
		return // RFC 1337: a RST does not end TIME-WAIT early
	}
	if s.Flags&FIN != 0 || s.Len > 0 {
		c.sendACK()
		c.tmr.wait = c.now.Add(timeWait)
	}
}

// Close ends sending: a FIN follows the bytes written. Reading goes on.
func (c *Conn) Close(now vtime.Time) {
	c.clock(now)
	switch c.state {
	case SynSent, Listen:
		c.snd.purge()
		c.setState(Closed)
		return
	case Established:
		c.setState(FinWait1)
	case CloseWait:
		c.setState(LastAck)
	case SynReceived:
		c.snd.fin = true // follows when the handshake is done
		return
	default:
		return
	}
	c.snd.fin = true
	c.push(true)
}

// Abort sends a RST and closes at once.
func (c *Conn) Abort(now vtime.Time) {
	c.clock(now)
	switch c.state {
	case Closed, Listen, SynSent, TimeWait:
	default:
		c.out.push(c.segment(c.snd.nxt, RST|ACK))
	}
	if c.state != Closed {
		c.fail(ErrAborted)
	}
}
