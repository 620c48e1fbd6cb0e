package tcp

// The sender's scoreboard (RFC 2018, RFC 6675 §4; tcp_sacktag_write_queue).

// highestSack returns the end of the highest SACKed segment; snd_una if
// nothing is SACKed.
func (c *Conn) highestSack() uint64 {
	if c.snd.sacked == 0 {
		return c.snd.una
	}
	return c.snd.fack
}

// processSACK tags the segments that the blocks of an ACK cover.
func (c *Conn) processSACK(s *Segment, prior uint64, st *sackState) ackFlags {
	snd := &c.snd
	var f ackFlags
	st.reord = snd.nxt
	if snd.sacked == 0 {
		snd.fack = snd.una
		snd.ncache = 0
	}
	dup := c.checkDSACK(s, prior, &f, st)
	if s.Ack+snd.maxWnd < prior || snd.packets == 0 {
		return f
	}
	var blocks [MaxSACK]Block
	n := 0
	for i := range s.NSACK {
		b := s.SACK[i]
		isDup := i == 0 && dup
		if !c.blockValid(b, isDup) || b.End <= prior {
			continue
		}
		if isDup {
			c.tagRange(b, true, &f, st)
			continue
		}
		blocks[n] = b
		n++
	}
	for i := 1; i < n; i++ { // at most four: insertion sort
		for j := i; j > 0 && blocks[j].Start < blocks[j-1].Start; j-- {
			blocks[j], blocks[j-1] = blocks[j-1], blocks[j]
		}
	}
	// What the last ACK's blocks covered needs no second visit.
	for _, b := range blocks[:n] {
		cur := b.Start
		for _, old := range snd.cache[:snd.ncache] {
			if old.End <= cur {
				continue
			}
			if old.Start >= b.End {
				break
			}
			if cur < old.Start {
				c.tagRange(Block{cur, old.Start}, false, &f, st)
			}
			cur = max(cur, old.End)
		}
		if cur < b.End {
			c.tagRange(Block{cur, b.End}, false, &f, st)
		}
	}
	snd.cache, snd.ncache = blocks, n
	if c.w.State != Loss || c.rec.undo != 0 {
		c.checkReordering(st.reord)
	}
	return f
}

// blockValid checks a block against what was sent (RFC 2018 §4; a DSACK may
// lie below snd_una down to the last point of interest for undoing).
func (c *Conn) blockValid(b Block, dsack bool) bool {
	snd := &c.snd
	if b.End > snd.nxt || b.Start >= b.End {
		return false
	}
	if b.Start > snd.una {
		return true
	}
	if !dsack || c.rec.undo == 0 || b.End > snd.una {
		return false
	}
	if b.Start >= c.rec.undo {
		return true
	}
	return b.End > c.rec.undo && b.Start+snd.maxWnd >= b.End
}

// checkDSACK reports whether the first block is a DSACK (RFC 2883 §4) and
// counts the duplicate for undoing.
func (c *Conn) checkDSACK(s *Segment, prior uint64, f *ackFlags, st *sackState) bool {
	b := s.SACK[0]
	switch {
	case b.Start < s.Ack:
	case s.NSACK > 1 && b.End <= s.SACK[1].End && b.Start >= s.SACK[1].Start:
	default:
		return false
	}
	n := c.dsackSeen(b, f, st)
	if n == 0 {
		return false
	}
	r := &c.rec
	if r.undo != 0 && r.undoRetrans > 0 && b.End <= prior && b.End > r.undo {
		r.undoRetrans = max(0, r.undoRetrans-n)
	}
	return true
}

// dsackSeen counts the segments of a DSACK; 0 if it cannot be due to this
// sender (more duplicates than retransmissions, or a range beyond the window).
func (c *Conn) dsackSeen(b Block, f *ackFlags, st *sackState) int {
	if b.Start >= b.End || b.End-b.Start > c.snd.maxWnd {
		return 0
	}
	n := 1
	if l := int(b.End - b.Start); l > c.snd.mss {
		n = (l + c.snd.mss - 1) / c.snd.mss
	} else if c.rec.tlpEnd != 0 && c.rec.tlpEnd == b.End {
		*f |= flagDsackTLP
	}
	c.info.DSACKDups += uint64(n)
	if c.info.DSACKDups > c.info.TotalRetrans {
		return 0
	}
	// RFC 8985 §6.2.2 step 4: only after reordering was seen, and not for a
	// probe, which a timer sent.
	if c.rec.reordSeen > 0 && *f&flagDsackTLP == 0 {
		c.rk.dsackSeen = true
	}
	*f |= flagDsack
	st.delivered += n
	return n
}

// tagRange tags the segments that lie wholly within b.
func (c *Conn) tagRange(b Block, dup bool, f *ackFlags, st *sackState) {
	snd := &c.snd
	o, _ := snd.find(b.Start)
	for ; o < snd.tail; o++ {
		r := snd.at(o)
		if r.seq >= b.End {
			return
		}
		if r.seq < b.Start || r.end() > b.End {
			continue
		}
		c.tagOne(r, dup, f, st)
		c.rateDelivered(r)
		if r.tag&tagSacked != 0 {
			snd.unlist(o)
		}
		snd.fack = max(snd.fack, r.end())
	}
}

func (c *Conn) tagOne(r *sent, dup bool, f *ackFlags, st *sackState) {
	snd, rec := &c.snd, &c.rec
	if dup && r.tag&tagEver != 0 {
		if rec.undo != 0 && rec.undoRetrans > 0 && r.end() > rec.undo {
			rec.undoRetrans--
		}
		if r.tag&tagSacked != 0 && r.seq < st.reord {
			st.reord = r.seq
		}
	}
	if r.end() <= snd.una {
		return
	}
	if r.tag&tagSacked == 0 {
		c.rackAdvance(r)
		if r.tag&tagRetrans != 0 {
			// Not marked lost: the retransmission is believed to be in
			// flight still.
			if r.tag&tagLost != 0 {
				r.tag &^= tagLost | tagRetrans
				snd.lost--
				snd.retrans--
			}
		} else {
			if r.tag&tagEver == 0 {
				if r.seq < c.highestSack() && r.seq < st.reord {
					st.reord = r.seq // a hole filled late: reordering
				}
				if r.end() <= rec.high {
					*f |= flagOrigAcked
				}
				if st.first == 0 {
					st.first = r.at
				}
				st.last = r.at
			}
			if r.tag&tagLost != 0 {
				r.tag &^= tagLost
				snd.lost--
			}
		}
		r.tag |= tagSacked
		*f |= flagDataSacked
		snd.sacked++
		st.delivered++
	}
	if dup && r.tag&tagRetrans != 0 {
		r.tag &^= tagRetrans
		snd.retrans--
	}
}

// checkReordering raises the reordering degree if a segment below the highest
// SACK arrived late without having been retransmitted
// (tcp_check_sack_reordering; RFC 8985 §6.2 step 3).
func (c *Conn) checkReordering(low uint64) {
	fack := c.highestSack()
	if low >= fack {
		return
	}
	mss := uint64(c.snd.mss)
	if d := fack - low; d > uint64(c.rec.reordering)*mss {
		c.rec.reordering = min(int((d+mss-1)/mss), maxReordering)
	}
	c.rec.reordSeen++
}

// maxReordering is tcp_max_reordering.
const maxReordering = 300
