package wifi

import (
	"math"

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

// takes decides whether a receiver that is locked on another frame turns to a
// signal that it could synchronise to. While it is still acquiring the preamble of
// the other one the stronger one wins; later only a signal above the capture
// threshold takes it over.
func (m *Medium) takes(h *hearer, other int64, now vtime.Time) bool {
	if h.power <= h.receiver.power {
		return false
	}
	s := &m.stations[h.receiver.id]
	if now >= s.lockedAt.Add(s.phy.detect) {
		if !m.ch.captures(h.power, other) {
			return false
		}
		s.stats.Captured++
	}
	m.dropReception(s, now)
	return true
}

// lock begins the reception of the signal at its k-th hearer.
func (m *Medium) lock(sig *signal, h *hearer, k int32, other int64, now vtime.Time) {
	r := h.receiver
	r.power, r.since, r.from, r.link = h.power, now, sig.src, k
	r.lnHeader, r.lnPayload, r.lockedAt, r.rxSince = 0, 0, now, now
	r.interfered, r.bad = other > 0, false
	r.limit, r.low, r.least = h.limit, never, h.power+1
	if m.ch.threshold {
		r.early, r.bad = other > 0, !m.ch.captures(h.power, other)
	}
}

// unlock ends the reception.
func (m *Medium) unlock(r *receiver, now vtime.Time) {
	r.from, r.power = -1, 0
	r.limit, r.low, r.least = math.MaxInt64, m.ch.senseAt, 0
	r.rxTime += now.Sub(r.rxSince)
}

// captures reports whether a signal is above the capture threshold against
// everything else.
func (c *Channel) captures(power, other int64) bool {
	return other == 0 || float64(power) >= float64(c.capture*float64(c.noise+other))
}

// dropReception abandons the frame that the receiver is locked on: it begins to
// transmit, goes down, or is taken over.
func (m *Medium) dropReception(s *station, now vtime.Time) {
	if !s.locked() {
		return
	}
	if sig := &m.stations[s.from].sig; sig.dst == s.id && s.up {
		sig.fate = fateCollision
	}
	m.unlock(s.receiver, now)
}

// hopeless is the ln of a success probability below the resolution of the draw
// that decides.
const hopeless = -45

// addSegment adds the bits of the segment that ends now to the success
// probability.
func (m *Medium) addSegment(r *receiver, other int64, now vtime.Time) {
	if m.ch.threshold {
		return // the comparison of powers decides
	}
	sig := &m.stations[r.from].sig
	sh := sig.shape
	header := vtime.Time(0)
	if r.since < sig.headerTo {
		header = min(now, sig.headerTo) - max(r.since, sig.headerFrom)
	}
	payload := min(now, sig.payloadTo) - max(r.since, sig.headerTo)
	if other == 0 {
		alone := &m.alone[sig.src][sh.kind][r.link]
		if header > 0 {
			r.lnHeader += float64(float64(float64(header)*sh.headerPerNano) * alone.header)
		}
		if payload > 0 {
			r.lnPayload += float64(float64(float64(payload)*sh.payloadPerNano) * alone.payload)
		}
		return
	}
	g := float64(r.power) / float64(m.ch.noise+other)
	if header > 0 {
		r.lnHeader += float64(float64(float64(header)*sh.headerPerNano) * sh.header.lnBit(g))
	}
	if payload > 0 {
		r.lnPayload += float64(float64(float64(payload)*sh.payloadPerNano) * sh.payload.lnBit(g))
		if r.lnPayload < hopeless {
			r.limit = math.MaxInt64 // the rest of the frame is of no matter
		}
	}
}

// survives draws whether bits with the success probability e^ln, which is below 1, were
// right.
func (s *station) survives(ln float64) bool {
	if ln < hopeless {
		return false
	}
	return fmath.BelowExp(s.errors.Float64(), ln)
}

// judge decides how the reception of a completed frame ended.
func (m *Medium) judge(s *station, sig *signal, k int) rxResult {
	if m.ch.threshold {
		l := &m.ch.links[sig.src][k]
		switch {
		case sig.truncated || s.bad || !l.decodes:
			return rxError
		case sig.kind == KindData && l.prob < 1 && !s.errors.Bool(l.prob):
			return rxError
		}
		return rxOK
	}
	switch {
	case s.lnHeader != 0 && !s.survives(s.lnHeader):
		return rxSilent
	case sig.truncated || s.lnPayload != 0 && !s.survives(s.lnPayload):
		return rxError
	}
	return rxOK
}

// rxEnd ends the reception of the signal at its k-th hearer.
func (m *Medium) rxEnd(s *station, sig *signal, k int, now vtime.Time) {
	res := m.judge(s, sig, k)
	sig.decide(s, res, m.ch.threshold)
	m.unlock(s.receiver, now)
	m.received(s, sig, k, res, now)
}

func (sig *signal) decide(s *station, res rxResult, threshold bool) {
	if sig.dst != s.id {
		return
	}
	switch {
	case res == rxOK:
		sig.fate = fateReceived
	case threshold && (s.early || s.bad) || !threshold && s.interfered:
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
	}
	m.activate(s)
	s.navTimerAt = now.Add(s.navWait())
	s.navTimer = m.eng.Schedule(s.navTimerAt, m, uint64(s.id)<<8|uint64(timerNav))
}
