package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// handshake holds what the SYNs negotiated.
type handshake struct {
	ts, sack bool
	wscale   bool
	timeouts int // RTOs of the whole connection (total_rto)
	firstTS  uint32
	spurious bool // the SYN was retransmitted for nothing

	// Passive side: Linux keeps the SYN-ACK outside the socket, with a timer
	// of its own that doubles from one second.
	sentAt  int64 // µs of the first SYN-ACK
	retrans int
	timeout int64 // µs
}

// Connect starts an active open: a SYN is ready for Poll.
func (c *Conn) Connect(now vtime.Time) {
	if c.state != Closed || c.err != nil {
		return
	}
	c.clock(now)
	c.setState(SynSent)
	c.rcv.init(c)
	c.syn.ts = c.cfg.Timestamps
	c.syn.sack = c.cfg.SACK
	o, r := c.snd.append()
	r.flags, r.at = SYN, c.us
	c.snd.nxt = 1
	c.snd.pacedUntil = c.now
	c.syn.firstTS = c.tsNow()
	c.rateSent(r)
	c.snd.list(o)
	c.snd.packets = 1
	c.sendSYN(r, false)
	c.setXmit(timerRTO, c.est.rto)
}

// Listen makes the end wait for one SYN.
func (c *Conn) Listen() {
	if c.state != Closed || c.err != nil {
		return
	}
	c.setState(Listen)
}

func (c *Conn) sendSYN(r *sent, again bool) {
	s := c.segment(r.seq, SYN)
	s.Retransmission = again
	c.synOptions(s, c.cfg.WindowScale, c.cfg.SACK)
	s.TSEcr = 0
	c.out.push(s)
}

// synOptions fills in the options and the window of a SYN; the window is not
// scaled there (RFC 7323 §2.2).
func (c *Conn) synOptions(s *Segment, scale, sack bool) {
	s.MSS = c.cfg.MSS
	s.SACKPermitted = sack
	if scale {
		s.WScale = int(c.rcv.scale)
	}
	s.Window = uint16(min(c.rcv.wnd, 65535))
}

// sendSynAck answers the SYN (RFC 9293 §3.10.7.2).
func (c *Conn) sendSynAck() {
	s := c.pool.Get()
	s.Flags, s.Ack = SYN|ACK, c.rcv.nxt
	c.addOptions(s)
	c.synOptions(s, c.syn.wscale, c.syn.sack)
	s.Retransmission = c.syn.retrans > 0
	c.info.SegsOut++
	c.out.push(s)
}

// synAckRetries is tcp_synack_retries.
const synAckRetries = 5

func (c *Conn) synAckTimeout() {
	c.info.Timeouts++
	if c.syn.retrans >= synAckRetries {
		c.fail(ErrTimeout)
		return
	}
	c.syn.retrans++
	c.info.TotalRetrans++
	c.sendSynAck()
	c.syn.timeout <<= 1
	c.setXmit(timerRTO, c.syn.timeout)
}

// negotiate takes the peer's SYN.
func (c *Conn) negotiate(s *Segment) {
	c.syn.ts = c.cfg.Timestamps && s.HasTS
	c.syn.sack = c.cfg.SACK && s.SACKPermitted
	c.syn.wscale = c.cfg.WindowScale && s.WScale >= 0
	c.snd.scale = 0
	if c.syn.wscale {
		c.snd.scale = uint8(min(s.WScale, 14)) // RFC 7323 §2.3
	} else {
		c.rcv.scale = 0
		c.rcv.clamp = min(c.rcv.clamp, 65535)
	}
	mss := 536 // RFC 9293 §3.7.1
	if s.MSS > 0 {
		mss = s.MSS
	}
	c.snd.fullMSS = min(mss, c.cfg.MSS)
	c.rcv.advMSS = c.cfg.MSS
	if c.syn.ts {
		c.snd.fullMSS -= 12
		c.rcv.advMSS -= 12
		c.rcv.tsRecent, c.rcv.tsEcr, c.rcv.sawTS = s.TSVal, s.TSEcr, true
	}
	c.rcv.nxt = s.Seq + 1
	c.rcv.wup = c.rcv.nxt
	c.rcv.copied = c.rcv.nxt
	c.snd.wl1 = s.Seq
	c.snd.wnd = uint64(s.Window)
	c.snd.maxWnd = 0
	c.sawWindow(c.snd.wnd)
}

// receiveListen handles a segment in LISTEN.
func (c *Conn) receiveListen(s *Segment) {
	if s.Flags&(SYN|ACK|RST) != SYN {
		if s.Flags&(ACK|RST) == ACK {
			c.resetFor(s)
		}
		return
	}
	c.setState(SynReceived)
	c.rcv.init(c)
	c.negotiate(s)
	c.rcv.wholeSegments(c)
	c.snd.nxt = 1
	c.syn.sentAt = c.us
	c.syn.timeout = 1000000
	c.sendSynAck()
	c.setXmit(timerRTO, c.syn.timeout)
}

// receiveSynSent handles a segment in SYN-SENT (RFC 9293 §3.10.7.3).
// Simultaneous open is not modelled: a bare SYN is ignored.
func (c *Conn) receiveSynSent(s *Segment) {
	if s.Flags&ACK != 0 && (s.Ack < 1 || s.Ack > c.snd.nxt) {
		if s.Flags&RST == 0 {
			c.resetFor(s)
		}
		return
	}
	if s.Flags&RST != 0 {
		if s.Flags&ACK != 0 {
			c.fail(ErrRefused)
		}
		return
	}
	if s.Flags&(SYN|ACK) != SYN|ACK {
		return
	}
	c.rcv.sawTS, c.rcv.tsEcr = s.HasTS, s.TSEcr
	c.negotiate(s)
	// The echo of the first SYN's timestamp: its answer was only late.
	c.syn.spurious = c.syn.ts && s.TSEcr == c.syn.firstTS
	c.ack(s)
	c.rec.stamp = 0
	c.established()
	c.sendACK()
	c.pushAll()
}

// receiveSynReceived completes the passive open. The first data may come
// with, or instead of, the ACK.
func (c *Conn) receiveSynReceived(s *Segment) bool {
	if s.Flags&SYN != 0 && s.Flags&ACK == 0 {
		c.sendSynAck() // our SYN-ACK was lost: the peer repeats its SYN
		return false
	}
	if s.Flags&ACK == 0 {
		return false
	}
	if s.Ack != 1 {
		c.resetFor(s)
		return false
	}
	c.stopXmit()
	c.snd.una = 1
	c.snd.wl1 = s.Seq
	c.snd.wnd = uint64(s.Window) << c.snd.scale
	c.sawWindow(c.snd.wnd)
	c.rs.delivered++ // the SYN-ACK is not in the queue
	rtt := int64(-1)
	if c.syn.retrans == 0 {
		rtt = c.us - c.syn.sentAt
	}
	c.rcv.sawTS, c.rcv.tsEcr = s.HasTS, s.TSEcr
	c.rttUpdate(flagSynAcked, rtt, -1, rtt)
	c.established()
	return true
}

// established starts the transfer (tcp_init_transfer). After more than one
// retransmitted SYN the window begins at one segment (RFC 6298 §5.7 asks for
// it after the first; Linux gives one away because its first RTO is short).
func (c *Conn) established() {
	c.setState(Established)
	if c.info.TotalRetrans > 1 && !c.syn.spurious {
		c.w.Cwnd = 1
	} else {
		c.w.Cwnd = min(c.cfg.InitialWindow, c.w.Clamp)
	}
	c.w.Ssthresh = infinite // what a lost SYN took is given back (tcp_init_metrics)
	c.snd.cwndStamp = c.now
	c.est.noSample()
	c.rs.appLimited = 1
	c.cc.Init(c.now, c.sync())
	c.w.State = Open
	c.expandSendBuffer()
	c.rcv.begin(c)
	if c.rate == nil {
		c.pacingRate()
	}
}

// resetFor answers a segment that belongs to no connection (RFC 9293 §3.10.7.1).
func (c *Conn) resetFor(s *Segment) {
	r := c.pool.Get()
	if s.Flags&ACK != 0 {
		r.Flags, r.Seq = RST, s.Ack
	} else {
		r.Flags, r.Ack = RST|ACK, s.End()
	}
	c.info.SegsOut++
	c.out.push(r)
}
