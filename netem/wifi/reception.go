package wifi

import (
	"github.com/hopbed/hopbed/netem/des/fmath"
	"github.com/hopbed/hopbed/netem/vtime"
)

// rxResult is how a reception ended.
type rxResult uint8

const (
	rxSilent rxResult = iota // the PLCP header was lost: the MAC hears of nothing
	rxError                  // PHY-RXSTART, then a wrong FCS
	rxOK
)

// rxStart lets a signal begin at a receiver.
func (m *Medium) rxStart(s *station, sig *signal, l *link, now vtime.Time) {
	if r := &s.rx; r.sig != nil {
		m.closeSegment(s, now)
		if m.ch.threshold && !m.ch.captures(r.power, s.energy+l.power-r.power) {
			r.bad = true
		}
	}
	s.energy += l.power
	s.sensed += l.sense
	if !s.up || s.transmitting {
		sig.missed(s, fateCollision)
	} else if l.power >= m.ch.lockAt || m.ch.threshold {
		m.tryLock(s, sig, l, now)
	}
	m.sense(s, now)
}

// missed records why the intended receiver cannot receive the frame.
func (sig *signal) missed(s *station, why fate) {
	if sig.dst == s.id && s.up {
		sig.fate = why
	}
}

// tryLock decides whether a receiver synchronises to the signal that has just
// begun. An idle receiver locks when the PLCP header has a chance. While the
// receiver is still acquiring the preamble of another frame the stronger one wins;
// later only a signal above the capture threshold takes it over.
func (m *Medium) tryLock(s *station, sig *signal, l *link, now vtime.Time) {
	ch := m.ch
	other := s.energy - l.power
	if !ch.audible(sig, l, other) {
		if ch.audible(sig, l, 0) {
			sig.missed(s, fateCollision)
		}
		return
	}
	if s.rx.sig != nil {
		stronger := l.power > s.rx.power
		acquiring := stronger && now < s.lockedAt.Add(s.phy.detect)
		if !acquiring && !(stronger && ch.captures(l.power, other)) {
			sig.missed(s, fateCollision)
			return
		}
		if !acquiring {
			s.stats.Captured++
		}
		m.dropReception(s, now)
	}
	s.lockedAt, s.rxSince = now, now
	s.rx = reception{sig: sig, link: l, power: l.power, since: now, interfered: other > 0, bad: ch.threshold && !ch.captures(l.power, other)}
}

// captures reports whether a signal is above the capture threshold against
// everything else.
func (c *Channel) captures(power, other int64) bool {
	return other == 0 || float64(power) >= float64(c.capture*float64(c.noise+other))
}

// audible reports whether a receiver can synchronise to the signal against the
// given interference. In the disk and matrix models it can whenever it senses the
// signal: the power comparison decides about the frame as a whole.
func (c *Channel) audible(sig *signal, l *link, other int64) bool {
	if c.threshold {
		return l.decodes || l.sense > 0
	}
	return float64(l.power) >= float64(sig.shape.lockRatio*float64(c.noise+other))
}

// dropReception abandons the frame that the receiver is locked on: it begins to
// transmit, goes down, or is taken over.
func (m *Medium) dropReception(s *station, now vtime.Time) {
	if s.rx.sig == nil {
		return
	}
	s.rx.sig.missed(s, fateCollision)
	s.rx = reception{}
	s.rxTime += now.Sub(s.rxSince)
}

// closeSegment adds the bits since the last change of interference to the
// reception's success probability.
func (m *Medium) closeSegment(s *station, now vtime.Time) {
	r := &s.rx
	if m.ch.threshold {
		return
	}
	other := s.energy - r.power
	r.interfered = r.interfered || other > 0
	sh := r.sig.shape
	from, to := r.since.Sub(r.sig.start), now.Sub(r.sig.start)
	r.since = now
	signal, rest := float64(r.power), float64(m.ch.noise+other)
	if signal >= float64(sh.perfect*rest) {
		return
	}
	g := signal / rest
	if d := min(to, sh.headerEnd) - max(from, sh.headerStart); d > 0 {
		r.lnHeader += float64(float64(float64(d)*sh.headerPerNano) * sh.header.lnBit(g))
	}
	if d := min(to, r.sig.end.Sub(r.sig.start)-sh.extension) - max(from, sh.headerEnd); d > 0 {
		r.lnPayload += float64(float64(float64(d)*sh.payloadPerNano) * sh.payload.lnBit(g))
	}
}

// survives draws whether bits with the success probability e^ln were right.
func (s *station) survives(ln float64) bool {
	switch {
	case ln == 0:
		return true
	case ln < -45: // below the resolution of the draw
		return false
	}
	return s.errors.Float64() < fmath.Exp(ln)
}

// judge decides how the reception of a completed frame ended.
func (m *Medium) judge(s *station) rxResult {
	r := &s.rx
	if m.ch.threshold {
		switch {
		case r.sig.truncated || r.bad || !r.link.decodes:
			return rxError
		case r.sig.kind == KindData && r.link.prob < 1 && !s.errors.Bool(r.link.prob):
			return rxError
		}
		return rxOK
	}
	switch {
	case !s.survives(r.lnHeader):
		return rxSilent
	case r.sig.truncated || !s.survives(r.lnPayload):
		return rxError
	}
	return rxOK
}

// rxEnd lets the signal on link l, the k-th of its sender, end at a receiver.
func (m *Medium) rxEnd(s *station, sig *signal, l *link, k int, now vtime.Time) {
	if s.rx.sig != nil {
		m.closeSegment(s, now)
	}
	if s.rx.sig == sig {
		res := m.judge(s)
		sig.decide(s, res)
		s.rx.sig = nil
		s.rxTime += now.Sub(s.rxSince)
		m.received(s, sig, k, res, now)
	}
	s.energy -= l.power
	s.sensed -= l.sense
	m.sense(s, now)
}

func (sig *signal) decide(s *station, res rxResult) {
	if sig.dst != s.id {
		return
	}
	switch {
	case res == rxOK:
		sig.fate = fateReceived
	case s.rx.interfered || s.rx.bad:
		sig.fate = fateCollision
	default:
		sig.fate = fateNoise
	}
}

// received is the MAC's part of the end of a reception.
func (m *Medium) received(s *station, sig *signal, k int, res rxResult, now vtime.Time) {
	if res == rxSilent {
		if s.late {
			m.unanswered(s, now)
		}
		return
	}
	s.eifs = res == rxError
	if res == rxError {
		s.stats.RxErrors++
		if s.waiting() {
			m.unanswered(s, now)
		}
		return
	}
	mine := sig.dst == s.id
	if s.waiting() {
		q := &s.queues[s.cur]
		switch {
		case mine && sig.kind == KindAck && s.exch == exchangeWaitAck && int(sig.src) == q.head.Dst:
			m.finish(s, now, Acked)
			return
		case mine && sig.kind == KindCts && s.exch == exchangeWaitCts && int(sig.src) == q.head.Dst:
			m.clearTimer(s)
			s.exch, s.late, s.cleared = exchangeGap, false, true
			m.setTimer(s, timerGap, now.Add(s.phy.sifs))
			return
		}
		// Any other frame in place of the answer is a failure (9.3.2.8); it is then
		// processed as usual.
		m.unanswered(s, now)
	}
	switch {
	case sig.kind == KindData && (mine || sig.dst == Broadcast):
		m.receivedData(s, sig, k, now)
	case sig.kind == KindRts && mine:
		if s.nav <= now {
			m.scheduleResponse(s, now, KindCts, sig.src, sig.nav-s.phy.sifs-s.phy.cts)
		}
	}
	if !mine && sig.nav > 0 {
		m.setNav(s, now.Add(sig.nav))
		if sig.kind == KindRts && s.nav == now.Add(sig.nav) {
			m.watchRts(s, now)
		}
	}
}

func (m *Medium) receivedData(s *station, sig *signal, k int, now vtime.Time) {
	if sig.wantAck {
		m.scheduleResponse(s, now, KindAck, sig.src, sig.nav-s.phy.sifs-s.phy.ack)
	}
	ls := &m.links[sig.src][k]
	f := sig.frame
	if ls.last[sig.ac] == f.seq {
		s.stats.Duplicates++
		return
	}
	ls.last[sig.ac] = f.seq
	if ls.loss > 0 && ls.draws.Bool(ls.loss) {
		s.stats.LossInjected++
		return
	}
	m.calls = append(m.calls, call{kind: callDeliver, node: s.id, frame: f})
}

// watchRts arranges for the check of navReset.
func (m *Medium) watchRts(s *station, now vtime.Time) {
	s.navFromRts = s.nav
	if s.navTimer != 0 {
		m.eng.Cancel(s.navTimer)
	} else if s.activeIndex < 0 {
		m.activate(s)
	}
	s.navTimerAt = now.Add(s.navWait())
	s.navTimer = m.eng.Schedule(s.navTimerAt, m, uint64(s.id)<<8|uint64(timerNav))
}
