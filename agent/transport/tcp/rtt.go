package tcp

// estimator is the round-trip estimator and the retransmission timeout of RFC
// 6298 in Linux's form (tcp_rtt_estimator). All values are microseconds;
// srtt is kept eightfold and mdev fourfold, as there, so that the shifts lose
// the same bits.
type estimator struct {
	srtt8    int64 // 0 before the first sample
	mdev4    int64
	mdevMax4 int64 // largest of this window of data
	rttvar4  int64
	rttSeq   uint64 // end of this window of data
	rto      int64  // with backoff
	backoff  int

	min minFilter
}

// sample takes one measurement (RFC 6298 §2.2, 2.3).
//
// Linux differs from the RFC in three ways, followed here: the variance is
// the largest mean deviation of a window of data rather than of a sample, it
// falls by a quarter per window and rises at once; a sample below the mean
// moves the deviation by a thirty-second only, so that a falling RTT does not
// raise the timeout; and the minimum RTO is a floor of the variance term
// (rto = srtt + max(4·mdev, 200 ms)), not of the sum.
func (e *estimator) sample(us, rtoMin int64, una, nxt uint64) {
	if e.srtt8 == 0 {
		e.srtt8 = max(us<<3, 1)
		e.mdev4 = us << 1
		e.rttvar4 = max(e.mdev4, rtoMin)
		e.mdevMax4 = e.rttvar4
		e.rttSeq = nxt
		return
	}
	diff := us - e.srtt8>>3
	e.srtt8 = max(e.srtt8+diff, 1)
	if diff < 0 {
		diff = -diff - e.mdev4>>2
		if diff > 0 {
			diff >>= 3
		}
	} else {
		diff -= e.mdev4 >> 2
	}
	e.mdev4 += diff
	if e.mdev4 > e.mdevMax4 {
		e.mdevMax4 = e.mdev4
		e.rttvar4 = max(e.rttvar4, e.mdevMax4)
	}
	if una > e.rttSeq {
		if e.mdevMax4 < e.rttvar4 {
			e.rttvar4 -= (e.rttvar4 - e.mdevMax4) >> 2
		}
		e.rttSeq = nxt
		e.mdevMax4 = rtoMin
	}
}

// setRTO computes the timeout without backoff (RFC 6298 §2.3; the floor is in
// the variance).
func (e *estimator) setRTO(rtoMax int64) { e.rto = min(e.srtt8>>3+e.rttvar4, rtoMax) }

// noSample: the handshake gave no RTT, because the SYN was retransmitted: the
// timeout begins at 3 s (RFC 6298 §5.7).
func (e *estimator) noSample() {
	if e.srtt8 == 0 {
		e.rto = 3_000_000
		e.mdev4, e.mdevMax4, e.rttvar4 = e.rto, e.rto, e.rto
	}
}

// rttUpdate feeds the samples of one ACK to the estimator and reports whether
// there was one. seq is the RTT of the earliest segment cumulatively
// acknowledged, sack of the earliest SACKed, ca of the latest: −1 = none.
// Karn's rule: none of them comes from a retransmission; then the timestamp
// serves if the ACK moves snd_una (RFC 7323 §4.1).
func (c *Conn) rttUpdate(f ackFlags, seq, sack, ca int64) (rtt int64, ok bool) {
	if seq < 0 {
		seq = sack
	}
	if seq < 0 && c.rcv.sawTS && c.rcv.tsEcr != 0 && f&(flagDataAcked|flagSynAcked) != 0 {
		seq = c.tsRTT(1)
		ca = seq
	}
	if seq < 0 {
		return ca, false
	}
	c.minRTTUpdate(ca, f)
	c.est.sample(seq, c.rtoMin(), c.snd.una, c.snd.nxt)
	c.est.setRTO(int64(c.cfg.RTOMax) / 1000)
	c.est.backoff = 0
	return ca, true
}

func (c *Conn) rtoMin() int64 { return int64(c.cfg.RTOMin) / 1000 }

// tsRTT returns the RTT by the echoed timestamp; a difference of 0 counts as
// floor milliseconds.
func (c *Conn) tsRTT(floor int64) int64 {
	d := int64(int32(c.tsNow() - c.rcv.tsEcr))
	if d < 0 {
		return -1
	}
	if d == 0 {
		d = floor
	}
	return d * 1000
}

// minRTT returns the windowed minimum in µs; a very large value before the
// first sample.
func (c *Conn) minRTT() int64 {
	if !c.est.min.set {
		return 1<<32 - 1
	}
	return c.est.min.s[0].v
}

func (c *Conn) minRTTUpdate(us int64, f ackFlags) {
	if f&flagAckMaybeDelayed != 0 && us > c.minRTT() {
		return // a delayed ACK would creep into the minimum when it expires
	}
	if us == 0 {
		us = int64(c.jiffy) / 1000
	}
	c.est.min.update(c.us, us, 300_000_000)
}

// minFilter is a windowed minimum over the best, second and third best
// samples (K. Nichols' algorithm, as lib/win_minmax.c in Linux).
type minFilter struct {
	set bool
	s   [3]struct{ t, v int64 }
}

func (m *minFilter) reset(t, v int64) {
	m.set = true
	for i := range m.s {
		m.s[i].t, m.s[i].v = t, v
	}
}

func (m *minFilter) update(t, v, win int64) {
	if !m.set || v <= m.s[0].v || t-m.s[2].t > win {
		m.reset(t, v)
		return
	}
	if v <= m.s[1].v {
		m.s[1].t, m.s[1].v = t, v
		m.s[2] = m.s[1]
	} else if v <= m.s[2].v {
		m.s[2].t, m.s[2].v = t, v
	}
	age := t - m.s[0].t
	switch {
	case age > win:
		m.s[0], m.s[1] = m.s[1], m.s[2]
		m.s[2].t, m.s[2].v = t, v
		if t-m.s[0].t > win {
			m.s[0], m.s[1] = m.s[1], m.s[2]
			m.s[2].t, m.s[2].v = t, v
		}
	case m.s[1].t == m.s[0].t && age > win/4:
		m.s[1].t, m.s[1].v = t, v
		m.s[2] = m.s[1]
	case m.s[2].t == m.s[1].t && age > win/2:
		m.s[2].t, m.s[2].v = t, v
	}
}
