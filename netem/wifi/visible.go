package wifi

import "github.com/hopbed/hopbed/netem/vtime"

// NextVisible returns a lower bound of the time of the next Deliver or Done,
// provided nothing is enqueued and no node is switched before it: a live driver
// may sleep until then, although events lie before it, if it fires those late
// (events keep their own time). vtime.Never: nothing can become visible.
//
// Its cost grows with the stations that wait for something, or did so since the
// last call, not with all.
func (m *Medium) NextVisible() vtime.Time {
	at := vtime.Never
	waiting := m.active[:0]
	for _, s := range m.active {
		if s.timerFor == timerNone && s.navTimer == 0 {
			s.active = false
			continue
		}
		at = min(at, m.visible(s))
		waiting = append(waiting, s)
	}
	clear(m.active[len(waiting):])
	m.active = waiting
	return at
}

// visible bounds what the station's own timers can make visible. Stations that
// are frozen have none: they wait for the end of signals, which their senders
// bound.
func (m *Medium) visible(s *station) vtime.Time {
	at := vtime.Never
	if s.navTimer != 0 {
		at = s.navTimerAt // it may free the medium earlier
	}
	switch s.timerFor {
	case timerTxEnd:
		// Data: Deliver or Done. ACK: Done. Others: what follows is later.
		at = min(at, s.timerAt)
	case timerRespond:
		d := s.phy.ack
		if s.respKind == KindCts {
			d = s.phy.cts
		}
		at = min(at, s.timerAt.Add(d))
	case timerGap:
		at = min(at, s.timerAt.Add(s.queues[s.cur].head.air))
	case timerAck, timerCts:
		at = min(at, m.afterTimeout(s))
	case timerAccess:
		at = min(at, m.afterAccess(s))
	}
	return at
}

// afterTimeout: the timeout itself drops a frame on its last attempt; otherwise
// another access must follow, at which an internal collision may drop one.
func (m *Medium) afterTimeout(s *station) vtime.Time {
	if s.queues[s.cur].head.failures >= s.mac.Retries {
		return s.timerAt
	}
	access, end := vtime.Never, vtime.Never
	waiting := 0
	for ac := range s.queues {
		if q := &s.queues[ac]; q.packets > 0 {
			waiting++
			access = min(access, s.timerAt.Add(q.aifs))
			end = min(end, s.timerAt.Add(q.aifs+s.soonest(q.head)))
		}
	}
	if waiting > 1 {
		return access
	}
	return end
}

// afterAccess: the transmission of a head frame must end; but an internal
// collision drops a frame on its last attempt at once.
func (m *Medium) afterAccess(s *station) vtime.Time {
	at := vtime.Never
	waiting := 0
	last := false
	for ac := range s.queues {
		q := &s.queues[ac]
		if q.packets == 0 {
			continue
		}
		waiting++
		last = last || q.head.failures >= s.mac.Retries
		start := s.timerAt
		if s.counting {
			start = max(start, s.accessTime(s.base(), q))
		}
		at = min(at, start.Add(s.soonest(q.head)))
	}
	if waiting > 1 && last {
		return s.timerAt
	}
	return at
}

// soonest is the least time from the begin of an exchange to something visible:
// the end of the data, or the end of the wait for a CTS on the last attempt.
func (s *station) soonest(f *Frame) vtime.Duration {
	d := f.air
	if s.usesRts(f) {
		d = min(d, s.phy.rts+s.phy.ctsTimeout)
	}
	return d
}
