package wifi

import (
	"math"
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Carrier sense and backoff. While the medium is idle (physically and by NAV)
// and the station is in no exchange, it is "counting": the backoffs of its queues
// run from base, and nothing happens until the earliest one ends. When the medium
// turns busy the slots that have passed are subtracted at once. Cost does not
// depend on the number of slots.

// sense brings the physical carrier sense up to date after the receiver or
// transmitter changed.
func (m *Medium) sense(s *station, now vtime.Time) {
	switch busy := m.hears(s.receiver); {
	case busy && !s.busy:
		m.turnBusy(s.receiver, now)
	case !busy && s.busy:
		m.turnIdle(s.receiver, now)
	}
}

// hears is what physical carrier sense says.
func (m *Medium) hears(r *receiver) bool {
	return r.transmitting || r.locked() || r.sensed >= m.ch.senseAt
}

func (m *Medium) turnBusy(r *receiver, now vtime.Time) {
	r.busy, r.busySince, r.high = true, now, math.MaxInt64
	if r.counting {
		r.counting = false
		if r.pending != 0 {
			s := &m.stations[r.id]
			m.freeze(s, now.Add(s.phy.detect))
		}
	}
	r.eifs = false // not before: the countdown ran after EIFS
}

func (m *Medium) turnIdle(r *receiver, now vtime.Time) {
	r.busy, r.idleFrom, r.high, r.low = false, now, m.ch.senseAt, never
	r.busyTime += now.Sub(r.busySince)
	m.resume(r, now)
}

// freeze stops the countdown of the waiting queues. Slot boundaries before limit count as passed: a
// station that hears the medium turn busy at t still acts at the boundaries up to
// t+detect, for it decided before it could hear.
//
// The countdown rule is the standard's. EDCA (802.11-2012 9.19.2.3): at each slot
// boundary from the end of AIFS on, the station either transmits or decrements, so
// the boundary at which another one begins counts. DCF (9.3.4.3): a slot counts
// when it was idle to its end, so the first boundary, the end of DIFS, does not.
func (m *Medium) freeze(s *station, limit vtime.Time) {
	keep := s.timerFor == timerAccess && s.timerAt < limit
	base := s.base()
	for p := s.pending; p != 0; p &= p - 1 {
		ac := bits.TrailingZeros8(p)
		q := &s.queues[ac]
		if keep && q.packets > 0 && s.accessTime(base, q) <= s.timerAt {
			s.commit |= 1 << ac
		}
		first := base.Add(q.aifs)
		if q.backoff > 0 && first < limit {
			passed := int64(limit-1-first)/int64(s.phy.slot) + 1
			if !s.mac.QoS {
				passed--
			}
			q.backoff = int(max(int64(q.backoff)-passed, 0))
			s.updatePending(AC(ac))
		}
	}
	if !keep && s.timerFor == timerAccess {
		m.clearTimer(s)
	}
}

// base is where the backoffs run from while the station counts, AIFS first.
func (s *station) base() vtime.Time {
	base := s.idleFrom
	if s.eifs {
		base = base.Add(s.phy.eifsExtra)
	}
	return max(base, s.nav, s.hold)
}

// accessTime is when the queue's backoff ends if the medium stays idle.
func (s *station) accessTime(base vtime.Time, q *access) vtime.Time {
	return base.Add(q.aifs + vtime.Duration(q.backoff)*s.phy.slot)
}

func (s *station) updatePending(ac AC) {
	q := &s.queues[ac]
	if q.packets > 0 || q.backoff > 0 {
		s.pending |= 1 << ac
	} else {
		s.pending &^= 1 << ac
	}
}

// resume starts the countdown if nothing holds the station.
func (m *Medium) resume(r *receiver, now vtime.Time) {
	if r.busy || uint8(r.exch)|r.commit != 0 || r.responding || !r.up {
		return
	}
	r.counting = true
	if r.pending != 0 {
		m.arm(&m.stations[r.id], now)
	}
}

// arm sets the access timer to the earliest access of the waiting queues.
func (m *Medium) arm(s *station, now vtime.Time) {
	at, base := vtime.Never, s.base()
	for p := s.pending; p != 0; p &= p - 1 {
		if q := &s.queues[bits.TrailingZeros8(p)]; q.packets > 0 {
			at = min(at, max(now, s.accessTime(base, q)))
		}
	}
	switch {
	case at == vtime.Never:
		if s.timerFor == timerAccess {
			m.clearTimer(s)
		}
	case s.timerFor != timerAccess || s.timerAt != at:
		m.setTimer(s, timerAccess, at)
	}
}

// setNav raises the NAV.
func (m *Medium) setNav(s *station, until vtime.Time) {
	if until > s.nav {
		s.nav = until
	}
}

// navReset runs when a CTS and the begin of data should have been heard after an
// RTS. If the receiver has not locked since, the exchange did not take place and
// the NAV that the RTS set is void (802.11-2012 9.3.2.4).
func (m *Medium) navReset(s *station, now vtime.Time) {
	if s.nav != s.navFromRts || s.nav <= now || s.locked() || s.lockedAt > s.navTimerAt.Add(-s.navWait()) {
		return
	}
	s.nav = now
	if s.counting {
		m.resume(s.receiver, now)
	}
}

// navWait is the time from the end of an RTS to the check of navReset.
func (s *station) navWait() vtime.Duration {
	return 2*s.phy.sifs + s.phy.cts + s.phy.rxStartDelay(s.phy.control) + 2*s.phy.slot
}

// access runs when the backoff of at least one queue has ended.
func (m *Medium) access(s *station, now vtime.Time) {
	if s.counting {
		// Own transmission: the boundaries up to now count for the other queues,
		// later ones do not; all that end now contend inside the station.
		base := s.base()
		for p := s.pending; p != 0; p &= p - 1 {
			ac := bits.TrailingZeros8(p)
			if q := &s.queues[ac]; q.packets > 0 && s.accessTime(base, q) <= now {
				s.commit |= 1 << ac
			}
		}
		s.counting = false
		m.freeze(s, now+1)
	}
	contend := s.commit
	s.commit = 0
	winner := AC(NumAC)
	for ac := NumAC - 1; ac >= 0; ac-- {
		if contend&(1<<ac) == 0 {
			continue
		}
		if winner == NumAC {
			winner = AC(ac)
			s.queues[ac].backoff = 0
			continue
		}
		m.internalCollision(s, AC(ac), now)
	}
	s.begin(winner, now)
	m.sendNext(s, now)
}

// internalCollision treats the loser of an internal collision as if it had
// collided on the air (802.11-2012 9.19.2.5): its window doubles and it tries
// again. A queue without acknowledgement has no retry counter: it only draws
// again.
func (m *Medium) internalCollision(s *station, ac AC, now vtime.Time) {
	s.stats.AC[ac].Internal++
	if s.queues[ac].cfg.Ack == AckNone || s.queues[ac].head.Dst == Broadcast {
		m.draw(s, ac)
		return
	}
	m.failed(s, ac, now)
}

// draw starts a backoff with the queue's current window.
func (m *Medium) draw(s *station, ac AC) {
	q := &s.queues[ac]
	q.backoff = s.draws.IntN(q.cw + 1)
	s.updatePending(ac)
}

// failed counts a failed attempt of the head frame: double the window, or drop
// the frame at the retry limit and start over with CWmin; then draw.
func (m *Medium) failed(s *station, ac AC, now vtime.Time) {
	q := &s.queues[ac]
	f := q.head
	f.failures++
	if f.failures > s.mac.Retries {
		q.cw = q.cfg.CWmin
		m.pop(s, ac, now, RetryLimit)
	} else {
		q.cw = min(2*q.cw+1, q.cfg.CWmax)
	}
	m.draw(s, ac)
}
