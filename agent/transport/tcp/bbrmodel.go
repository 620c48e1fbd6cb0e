package tcp

// BBR's model of the path: bandwidth, minimal RTT, the phases.

// updateBW counts rounds and feeds the bandwidth filter.
func (b *bbr) updateBW(w *Window, rs *RateSample) {
	b.roundStart = false
	if rs.Delivered < 0 || rs.Interval <= 0 {
		return
	}
	if rs.PriorDelivered >= b.nextRound {
		b.nextRound = w.Delivered
		b.rounds++
		b.roundStart = true
		b.conservation = false
	}
	b.lt.sample(b, w, rs)
	bw := int64(rs.Delivered) * bwUnit / max(int64(rs.Interval)/1000, 1)
	if !rs.AppLimited || bw >= b.bw.best() {
		b.bw.update(b.rounds, bw, bbrRounds)
	}
}

// updateCycle moves through the gains of PROBE_BW, a phase a minimal RTT.
func (b *bbr) updateCycle(w *Window, rs *RateSample) {
	if b.mode == bbrProbeBW && b.nextPhase(w, rs) {
		b.cycle = (b.cycle + 1) & 7
		b.cycleStamp = b.us
	}
}

func (b *bbr) nextPhase(w *Window, rs *RateSample) bool {
	full := b.us-b.cycleStamp > b.minRTT
	if b.pacingGain == gainUnit {
		return full
	}
	flight := b.inNetFor(w, rs.PriorInFlight)
	bw := b.bw.best()
	if b.pacingGain > gainUnit {
		return full && (rs.Losses > 0 || flight >= b.inflight(w, bw, b.pacingGain))
	}
	return full || flight <= b.inflight(w, bw, gainUnit)
}

// inNetFor is inNetAtDeparture for a given flight.
func (b *bbr) inNetFor(w *Window, flight int) int {
	now := w.InFlight
	w.InFlight = flight
	n := b.inNetAtDeparture(w)
	w.InFlight = now
	return n
}

// checkFull ends startup when three rounds brought less than 25 % more.
func (b *bbr) checkFull(rs *RateSample) {
	if b.fullReached || !b.roundStart || rs.AppLimited {
		return
	}
	if best := b.bw.best(); best >= b.fullBW*(gainUnit*5/4)>>8 {
		b.fullBW, b.fullCount = best, 0
		return
	}
	b.fullCount++
	b.fullReached = b.fullCount >= 3
}

func (b *bbr) checkDrain(w *Window) {
	if b.mode == bbrStartup && b.fullReached {
		b.mode = bbrDrain
		w.Ssthresh = b.inflight(w, b.bw.best(), gainUnit)
	}
	if b.mode == bbrDrain && b.inNetAtDeparture(w) <= b.inflight(w, b.bw.best(), gainUnit) {
		b.enterProbeBW()
	}
}

// enterProbeBW starts at a random phase, but not with the drained one.
func (b *bbr) enterProbeBW() {
	b.mode = bbrProbeBW
	b.cycle = (7 - int(b.random(7)) + 1) & 7
	b.cycleStamp = b.us
}

// updateMinRTT keeps the ten-second minimum; when it expires the flight is
// cut to four segments for 200 ms and a round trip to measure it anew.
func (b *bbr) updateMinRTT(w *Window, rs *RateSample) {
	expired := b.now.Sub(b.minStamp) > bbrMinRTTWin
	if rtt := int64(rs.RTT) / 1000; rs.RTT >= 0 && (rtt < b.minRTT || expired && !rs.AckDelayed) {
		b.minRTT = rtt
		b.minStamp = b.now
	}
	if expired && !b.idleRestart && b.mode != bbrProbeRTT {
		b.mode = bbrProbeRTT
		b.saveCwnd(w)
		b.probeDone = 0
	}
	if b.mode == bbrProbeRTT {
		w.MarkAppLimited = true // what is measured now is not the path's bandwidth
		if b.probeDone == 0 && w.InFlight <= bbrMinCwnd {
			b.probeDone = b.now.Add(bbrProbeTime)
			b.probeRound = false
			b.nextRound = w.Delivered
		} else if b.probeDone != 0 {
			b.probeRound = b.probeRound || b.roundStart
			if b.probeRound {
				b.checkProbeDone(w)
			}
		}
	}
	if rs.Delivered > 0 {
		b.idleRestart = false
	}
}

func (b *bbr) checkProbeDone(w *Window) {
	if b.probeDone == 0 || b.now <= b.probeDone {
		return
	}
	b.minStamp = b.now
	w.Cwnd = max(w.Cwnd, b.priorCwnd)
	if b.fullReached {
		b.enterProbeBW()
	} else {
		b.mode = bbrStartup
	}
}

func (b *bbr) updateGains() {
	switch b.mode {
	case bbrStartup:
		b.pacingGain, b.cwndGain = highGain, highGain
	case bbrDrain:
		b.pacingGain, b.cwndGain = drainGain, highGain
	case bbrProbeBW:
		b.pacingGain, b.cwndGain = bbrCycle[b.cycle], 2*gainUnit
		if b.lt.use {
			b.pacingGain = gainUnit
		}
	case bbrProbeRTT:
		b.pacingGain, b.cwndGain = gainUnit, gainUnit
	}
}

// ackAggregation estimates how much more than the bandwidth's share is
// acknowledged at once, to keep the pipe full meanwhile.
type ackAggregation struct {
	stamp      int64 // begin of the epoch, µs
	acked      int64
	extra      [2]int64 // maxima of the last two windows of five rounds
	idx, round int
}

func (a *ackAggregation) update(b *bbr, w *Window, rs *RateSample) {
	if rs.AckedSacked <= 0 || rs.Delivered < 0 || rs.Interval <= 0 {
		return
	}
	if b.roundStart {
		a.round = min(a.round+1, 31)
		if a.round >= 5 {
			a.round = 0
			a.idx ^= 1
			a.extra[a.idx] = 0
		}
	}
	expected := b.estimate() * (b.us - a.stamp) >> 24
	if a.acked <= expected || a.acked+int64(rs.AckedSacked) >= 1<<20 {
		a.acked, a.stamp = 0, b.us
		expected = 0
	}
	a.acked = min(a.acked+int64(rs.AckedSacked), 1<<20-1)
	extra := min(a.acked-expected, int64(w.Cwnd))
	a.extra[a.idx] = max(a.extra[a.idx], extra)
}

// room is what the window adds, at most 100 ms worth.
func (a *ackAggregation) room(b *bbr, bw int64) int {
	if !b.fullReached {
		return 0
	}
	return int(min(max(a.extra[0], a.extra[1]), bw*100_000>>24))
}

// longTerm detects a token-bucket policer: two consecutive intervals of high
// loss at about the same rate (within an eighth, or 4 kb/s) make that rate the
// bandwidth for 48 rounds.
type longTerm struct {
	sampling  bool
	use       bool
	bw        int64
	rounds    int
	stamp     int64 // ms
	delivered uint64
	lost      uint64
	total     uint64 // segments marked lost so far
}

func (l *longTerm) interval(b *bbr, w *Window) {
	l.stamp = b.us / 1000
	l.delivered, l.lost = w.Delivered, l.total
	l.rounds = 0
}

func (l *longTerm) reset(b *bbr, w *Window) {
	l.bw, l.use, l.sampling = 0, false, false
	l.interval(b, w)
}

func (l *longTerm) sample(b *bbr, w *Window, rs *RateSample) {
	l.total += uint64(rs.Losses)
	if l.use {
		if b.mode == bbrProbeBW && b.roundStart {
			if l.rounds++; l.rounds >= 48 {
				l.reset(b, w)
				b.enterProbeBW()
			}
		}
		return
	}
	if !l.sampling {
		if rs.Losses == 0 {
			return
		}
		l.interval(b, w)
		l.sampling = true
	}
	if rs.AppLimited {
		l.reset(b, w)
		return
	}
	if b.roundStart {
		l.rounds++
	}
	if l.rounds < 4 {
		return
	}
	if l.rounds > 16 {
		l.reset(b, w)
		return
	}
	if rs.Losses == 0 {
		return
	}
	lost, delivered := l.total-l.lost, w.Delivered-l.delivered
	if delivered == 0 || lost<<8 < 50*delivered {
		return
	}
	t := b.us/1000 - l.stamp
	if t < 1 {
		return
	}
	bw := int64(delivered) * bwUnit / (t * 1000)
	if l.bw > 0 {
		diff := max(bw-l.bw, l.bw-bw)
		if diff*gainUnit <= 32*l.bw || int64(b.toRate(w, diff, gainUnit)) <= 500 {
			l.bw = (bw + l.bw) >> 1
			l.use = true
			b.pacingGain = gainUnit
			l.rounds = 0
			return
		}
	}
	l.bw = bw
	l.interval(b, w)
}

// maxFilter is a windowed maximum, the mirror of minFilter.
type maxFilter struct{ f minFilter }

func (m *maxFilter) update(t, v, win int64) { m.f.update(t, -v, win) }

func (m *maxFilter) best() int64 {
	if !m.f.set {
		return 0
	}
	return -m.f.s[0].v
}
