package tcp

// recovery is the state of loss recovery: when the window is reduced, and
// when the reduction is undone.
type recovery struct {
	high        uint64 // recovery ends when this is acknowledged
	reordering  int    // DupThresh, raised by reordering
	reordSeen   int
	retransmits int // RTOs since the last progress
	probes      int // zero-window probes without an answer
	reneg       bool

	// Undo (RFC 3522, RFC 3708, RFC 5682 in Linux's form).
	undo          uint64 // snd_una when recovery began; 0 = cannot undo
	undoRetrans   int    // retransmissions not yet reported as duplicates; −1 = none made
	priorSsthresh int
	stamp         uint32 // timestamp of the first retransmission; 0 = none

	frto       bool
	tlpEnd     uint64 // snd_nxt when the probe was sent; 0 = none
	tlpRetrans bool   // the probe was a retransmission

	prrDelivered, prrOut int
}

func (c *Conn) setCA(s CAState) {
	if s == c.w.State {
		return
	}
	c.cc.State(c.now, c.sync(), s)
	c.w.State = s
}

// alert is the state machine of loss recovery (tcp_fastretrans_alert): it
// moves between Open, Disorder, CWR, Recovery and Loss and decides what may
// be retransmitted. It does not set the window.
func (c *Conn) alert(prior uint64, dup int, f *ackFlags, rx *rexmit) {
	snd, rec := &c.snd, &c.rec
	if snd.packets == 0 && snd.sacked > 0 {
		snd.sacked = 0
	}
	if *f&flagReneging != 0 && *f&flagUnaAdvanced != 0 {
		// The receiver seems to have dropped SACKed data: give it half a
		// round trip to say otherwise, then the RTO clears the scoreboard.
		c.setXmit(timerRTO, max(c.est.srtt8>>4, 10000))
		*f &^= flagSetTimer
		return
	}
	if c.w.State == Open {
		rec.stamp = 0
	} else if snd.una >= rec.high {
		switch c.w.State {
		case CWR:
			if snd.una != rec.high {
				c.endReduction()
				c.setCA(Open)
			}
		case Recovery:
			if !c.syn.sack {
				snd.sacked = 0
			}
			if c.tryUndoRecovery() {
				return
			}
			c.endReduction()
		}
	}
	switch c.w.State {
	case Recovery:
		if *f&flagUnaAdvanced == 0 {
			if !c.syn.sack {
				c.addRenoSack(dup)
			}
		} else if c.tryUndoPartial(prior) {
			return
		}
		if c.tryUndoDSACK() {
			c.tryOpen()
		}
		c.identifyLoss(f)
		if c.w.State != Recovery {
			if snd.lost == 0 {
				return
			}
			c.enterRecovery()
		}
	case Loss:
		c.processLoss(*f, dup, rx)
		c.identifyLoss(f)
		if c.w.State != Open && *f&flagLostRetrans == 0 {
			return
		}
		c.open(*f, dup, f, rx)
		return
	default:
		c.open(*f, dup, f, rx)
		return
	}
	*rx = rexmitLost
}

// open handles an ACK in Open, Disorder and CWR: enough evidence of loss
// starts Recovery.
func (c *Conn) open(flag ackFlags, dup int, f *ackFlags, rx *rexmit) {
	if !c.syn.sack {
		if flag&flagUnaAdvanced != 0 {
			c.snd.sacked = 0
		}
		c.addRenoSack(dup)
	}
	if c.w.State <= Disorder {
		c.tryUndoDSACK()
	}
	c.identifyLoss(f)
	if c.snd.lost == 0 {
		c.tryOpen()
		return
	}
	c.enterRecovery()
	*rx = rexmitLost
}

// identifyLoss lets RACK (with SACK) or NewReno mark losses.
func (c *Conn) identifyLoss(f *ackFlags) {
	if c.snd.empty() {
		return
	}
	if !c.syn.sack {
		c.newrenoMark(*f&flagUnaAdvanced != 0)
		return
	}
	prior := c.snd.retrans
	if c.rackMark() {
		*f &^= flagSetTimer
	}
	if prior > c.snd.retrans {
		*f |= flagLostRetrans
	}
}

func (c *Conn) tryOpen() {
	if !c.anyRetransDone() {
		c.rec.stamp = 0
	}
	if c.w.State != CWR {
		c.tryKeepOpen()
	}
}

func (c *Conn) tryKeepOpen() {
	s := Open
	if c.snd.sacked+c.snd.lost > 0 || c.anyRetransDone() {
		s = Disorder
	}
	if c.w.State != s {
		c.setCA(s)
		c.rec.high = c.snd.nxt
	}
}

func (c *Conn) anyRetransDone() bool {
	return c.snd.retrans > 0 || !c.snd.empty() && c.snd.at(c.snd.head).tag&tagEver != 0
}

// enterRecovery begins fast recovery (RFC 5681 §3.2, RFC 6675 §5).
func (c *Conn) enterRecovery() {
	if !c.anyRetransDone() {
		c.rec.stamp = 0
	}
	c.info.FastRecovers++
	c.rec.priorSsthresh = 0
	c.initUndo()
	if !c.inReduction() {
		c.rec.priorSsthresh = c.currentSsthresh()
		c.beginReduction()
	}
	c.setCA(Recovery)
}

func (c *Conn) initUndo() {
	r := &c.rec
	r.undo = c.snd.una
	r.undoRetrans = c.snd.retrans
	if r.tlpEnd != 0 && r.tlpRetrans {
		r.undoRetrans++
	}
	if r.undoRetrans == 0 {
		r.undoRetrans = -1
	}
}

// The undo of a reduction that proved wrong.

// packetDelayed: nothing was retransmitted, or the echo is older than the
// first retransmission: the original arrived (RFC 3522).
func (c *Conn) packetDelayed() bool {
	if c.rec.stamp != 0 {
		return c.echoBefore(c.rec.stamp)
	}
	if !c.syn.sack && c.snd.una >= c.rec.high {
		return false
	}
	return c.state != SynSent
}

func (c *Conn) mayUndo() bool {
	return c.rec.undo != 0 && (c.rec.undoRetrans == 0 || c.packetDelayed())
}

func (c *Conn) undoReduction(unmark bool) {
	snd := &c.snd
	if unmark {
		for o := snd.head; o < snd.tail; o++ {
			snd.at(o).tag &^= tagLost
		}
		snd.lost = 0
		snd.hintOK = false
	}
	if c.rec.priorSsthresh != 0 {
		c.w.Cwnd = min(max(c.cc.Undo(c.sync()), 1), c.w.Clamp)
		c.w.Ssthresh = max(c.w.Ssthresh, c.rec.priorSsthresh)
	}
	snd.cwndStamp = c.now
	c.rec.undo = 0
	c.rk.advanced = true // look at the losses again
	c.info.Undos++
}

func (c *Conn) tryUndoRecovery() bool {
	if c.mayUndo() {
		c.undoReduction(false)
	} else if c.rk.persist > 0 {
		c.rk.persist--
	}
	if c.holdsReopen() {
		return true
	}
	c.setCA(Open)
	c.rec.reneg = false
	return false
}

// tryUndoDSACK: every retransmission was reported as a duplicate (RFC 3708).
func (c *Conn) tryUndoDSACK() bool {
	if c.rec.undo == 0 || c.rec.undoRetrans != 0 {
		return false
	}
	c.rk.persist = min(rackPersist, c.rk.persist+1)
	c.undoReduction(false)
	return true
}

// tryUndoPartial: a partial ACK whose echo is older than the retransmission.
// True if nothing more should be marked lost.
func (c *Conn) tryUndoPartial(prior uint64) bool {
	if c.rec.undo == 0 || !c.packetDelayed() {
		return false
	}
	c.checkReordering(prior)
	if c.snd.retrans > 0 {
		return true
	}
	if !c.anyRetransDone() {
		c.rec.stamp = 0
	}
	c.undoReduction(true)
	c.tryKeepOpen()
	return false
}
