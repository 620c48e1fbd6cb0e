package tcp

// Loss recovery without SACK: NewReno (RFC 6582). Duplicate ACKs are counted
// as if they were SACKs of unknown segments (sacked_out), as in Linux.

// newrenoMark marks the head of the queue lost after DupThresh duplicate ACKs
// (RFC 5681 §3.2 step 2) or at a partial ACK in recovery (RFC 6582 §3.2 step 3).
func (c *Conn) newrenoMark(advanced bool) {
	if c.w.State < Recovery && c.snd.sacked >= c.rec.reordering || c.w.State == Recovery && advanced {
		if c.snd.at(c.snd.head).tag&tagLost == 0 {
			c.markLost(c.snd.head)
		}
	}
}

// limitRenoSacked keeps sacked + holes within what is in flight; true if it
// had to.
func (c *Conn) limitRenoSacked() bool {
	s := &c.snd
	holes := min(max(s.lost, 1), s.packets)
	if s.sacked+holes > s.packets {
		s.sacked = s.packets - holes
		return true
	}
	return false
}

// checkRenoReordering: more duplicate ACKs than segments in flight mean
// reordering (or duplication).
func (c *Conn) checkRenoReordering(extra int) {
	if c.limitRenoSacked() {
		c.rec.reordering = min(c.snd.packets+extra, maxReordering)
		c.rec.reordSeen++
	}
}

// addRenoSack counts a duplicate ACK.
func (c *Conn) addRenoSack(dup int) {
	if dup == 0 {
		return
	}
	prior := c.snd.sacked
	c.snd.sacked += dup
	c.checkRenoReordering(0)
	if d := c.snd.sacked - prior; d > 0 {
		c.countDelivered(d)
	}
}

// removeRenoSacks: a cumulative ACK of n segments filled one hole; the rest
// of it accounts for duplicate ACKs.
func (c *Conn) removeRenoSacks(n int) {
	if n > 0 {
		c.countDelivered(max(n-c.snd.sacked, 1))
		c.snd.sacked = max(0, c.snd.sacked-(n-1))
	}
	c.checkRenoReordering(n)
}

// holdsReopen: without SACK the state is left only when something above the
// recovery point is acknowledged, lest old duplicate ACKs start a new fast
// retransmit (RFC 6582 §3.2 step 1, the "careful" variant).
func (c *Conn) holdsReopen() bool {
	if c.syn.sack || c.snd.una != c.rec.high {
		return false
	}
	if !c.anyRetransDone() {
		c.rec.stamp = 0
	}
	return true
}
