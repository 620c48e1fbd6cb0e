package wifi

import "github.com/hopbed/hopbed/netem/vtime"

// SetNodeUp switches a node's interface. Going down empties its queues
// (NodeDown, reported before it returns unless it is called inside a Sink call)
// and truncates what it transmits; its neighbours receive a wrong FCS.
func (m *Medium) SetNodeUp(node int, up bool) {
	s := &m.stations[node]
	if s.up == up {
		return
	}
	now := m.eng.Now()
	if up {
		s.up = true
		m.resume(s.receiver, now)
		return
	}
	m.goDown(s, now)
	m.flush(now)
}

func (m *Medium) goDown(s *station, now vtime.Time) {
	if s.transmitting {
		s.sig.truncated = true
		m.fade(&s.sig, now)
		if m.recorder != nil {
			m.landed(s, now)
		}
		s.transmitting = false
		s.txTime += now.Sub(s.txSince)
	}
	m.dropReception(s, now)
	m.clearTimer(s)
	if s.navTimer != 0 {
		m.eng.Cancel(s.navTimer)
		s.navTimer = 0
	}
	s.up = false
	s.exch, s.responding, s.late, s.counting, s.commit = exchangeNone, false, false, false, 0
	s.eifs, s.nav, s.hold = false, now, now
	for ac := range s.queues {
		q := &s.queues[ac]
		for q.head != nil {
			m.pop(s, AC(ac), now, NodeDown)
		}
		q.cw, q.backoff = q.cfg.CWmin, 0
	}
	s.pending = 0
	m.sense(s, now)
}
