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

// spread lets a signal begin at every receiver within reach.
func (m *Medium) spread(sig *signal, now vtime.Time) {
	ch := m.ch
	hearers := m.hearers[sig.src]
	for k := range hearers {
		h := &hearers[k]
		r := h.receiver
		if !r.busy {
			other := r.energy
			r.energy += h.power
			r.sensed += h.sense
			if h.power >= ch.lockAt && r.up && m.audible(sig, h, other) {
				m.lock(sig, h, k, other, now)
				m.turnBusy(r, now)
			} else if r.sensed >= ch.senseAt {
				m.turnBusy(r, now)
			}
			continue
		}
		if r.locked() {
			m.endSegment(r, now)
			if ch.threshold && !ch.captures(r.power, r.energy+h.power-r.power) {
				r.bad = true
			}
		}
		other := r.energy
		r.energy += h.power
		r.sensed += h.sense
		switch {
		case r.transmitting:
			sig.missed(h, fateCollision)
		case h.power >= ch.lockAt && r.up && m.audible(sig, h, other) && m.takes(sig, h, other, now):
			m.lock(sig, h, k, other, now)
		}
	}
}

// fade lets a signal end at every receiver within reach.
func (m *Medium) fade(sig *signal, now vtime.Time) {
	hearers := m.hearers[sig.src]
	for k := range hearers {
		h := &hearers[k]
		r := h.receiver
		if r.locked() {
			m.endSegment(r, now)
			if r.from == sig.src {
				m.rxEnd(&m.stations[h.to], sig, k, now)
			}
		}
		r.energy -= h.power
		r.sensed -= h.sense
		if r.busy && !m.hears(r) {
			m.turnIdle(r, now)
		}
	}
}

// missed records why the intended receiver cannot receive the frame.
func (sig *signal) missed(h *hearer, why fate) {
	if sig.dst == h.to && h.up {
		sig.fate = why
	}
}

// audible decides whether a receiver can synchronise to the signal that has just
// begun: the PLCP header has a chance against the given interference. In the disk
// and matrix models it can whenever it senses the signal: the power comparison
// decides about the frame as a whole.
func (m *Medium) audible(sig *signal, h *hearer, other int64) bool {
	if m.ch.threshold {
		return h.decodes || h.sense > 0
	}
	signal, ratio := float64(h.power), sig.shape.lockRatio
	if signal >= float64(ratio*float64(m.ch.noise+other)) {
		return true
	}
	if sig.dst == h.to && signal >= float64(ratio*float64(m.ch.noise)) {
		sig.missed(h, fateCollision)
	}
	return false
}

// takes decides whether a busy receiver turns to the signal. While it is still
// acquiring the preamble of another frame the stronger one wins; later only a
// signal above the capture threshold takes it over.
func (m *Medium) takes(sig *signal, h *hearer, other int64, now vtime.Time) bool {
	if !h.locked() {
		return true
	}
	s := &m.stations[h.to]
	stronger := h.power > s.power
	acquiring := stronger && now < s.lockedAt.Add(s.phy.detect)
	if !acquiring && !(stronger && m.ch.captures(h.power, other)) {
		sig.missed(h, fateCollision)
		return false
	}
	if !acquiring {
		s.stats.Captured++
	}
	m.dropReception(s, now)
	return true
}

// lock begins the reception of the signal at its k-th hearer.
func (m *Medium) lock(sig *signal, h *hearer, k int, other int64, now vtime.Time) {
	r := h.receiver
	r.power, r.since, r.from, r.link = h.power, now, sig.src, int32(k)
	r.lnHeader, r.lnPayload, r.lockedAt, r.rxSince = 0, 0, now, now
	r.interfered, r.bad = positive(other), false
	r.margin = m.links[sig.src][k].alone[sig.shape.kind].margin
	if m.ch.threshold {
		r.bad, r.margin = !m.ch.captures(h.power, other), math.MaxInt64
	}
}

// positive is 1 when n is above 0, without a branch.
func positive(n int64) (one uint8) {
	if n > 0 {
		one = 1
	}
	return one
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
	s.from = -1
	s.rxTime += now.Sub(s.rxSince)
}

// endSegment ends the segment of constant interference that the reception is in.
func (m *Medium) endSegment(r *receiver, now vtime.Time) {
	other := r.energy - r.power
	if other > r.margin {
		m.addSegment(r, other, now)
	}
	r.since = now
	if !m.ch.threshold {
		r.interfered |= positive(other)
	}
}

// hopeless is the ln of a success probability below the resolution of the draw
// that decides.
const hopeless = -45

// addSegment adds the bits of the segment that ends now to the success
// probability.
func (m *Medium) addSegment(r *receiver, other int64, now vtime.Time) {
	sig := &m.stations[r.from].sig
	sh := sig.shape
	header := min(now, sig.headerTo) - max(r.since, sig.headerFrom)
	payload := min(now, sig.payloadTo) - max(r.since, sig.headerTo)
	if other == 0 {
		alone := &m.links[sig.src][r.link].alone[sh.kind]
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
			r.margin = math.MaxInt64 // the rest of the frame is of no matter
		}
	}
}

// survives draws whether bits with the success probability e^ln were right.
func (s *station) survives(ln float64) bool {
	switch {
	case ln == 0:
		return true
	case ln < hopeless:
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
	case !s.survives(s.lnHeader):
		return rxSilent
	case sig.truncated || !s.survives(s.lnPayload):
		return rxError
	}
	return rxOK
}

// rxEnd ends the reception of the signal at its k-th hearer.
func (m *Medium) rxEnd(s *station, sig *signal, k int, now vtime.Time) {
	res := m.judge(s, sig, k)
	sig.decide(s, res)
	s.from = -1
	s.rxTime += now.Sub(s.rxSince)
	m.received(s, sig, k, res, now)
}

func (sig *signal) decide(s *station, res rxResult) {
	if sig.dst != s.id {
		return
	}
	switch {
	case res == rxOK:
		sig.fate = fateReceived
	case s.interfered != 0 || s.bad:
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
