package wifi

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

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
		m.setBounds(s.receiver)
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
	m.setBounds(s.receiver)
}

// SetLinkUp takes the link between two nodes down, or up again, in both directions.
// From that instant on neither receives, senses or is interfered with by what the
// other transmits; what they do to everybody else is unchanged. A frame of one of
// them that is on the air then ends at the other as if it had been cut: a wrong FCS,
// or nothing where the PLCP header was lost. One that is on the air when the link
// comes up is energy at the other until its end: it missed the preamble.
//
// Nodes that do not notice each other have no link: nothing happens. The error says
// which node does not exist, or that a and b are one.
func (m *Medium) SetLinkUp(a, b int, up bool) error {
	if n := m.ch.n; a < 0 || a >= n || b < 0 || b >= n || a == b {
		return fmt.Errorf("medium: link between nodes %d and %d: want two of the nodes 0…%d", a, b, n-1)
	}
	pair := [2]int{min(a, b), max(a, b)}
	if m.cut[pair] == !up {
		return nil
	}
	if m.cut == nil {
		m.cut = map[[2]int]bool{}
	}
	m.cut[pair] = !up
	now := m.eng.Now()
	m.setHearing(a, b, up, now)
	m.setHearing(b, a, up, now)
	m.flush(now)
	return nil
}

// setHearing changes whether node to notices what node from transmits. Entries of
// m.hearers say so, and nothing else: a link that is down leads to the void.
func (m *Medium) setHearing(from, to int, up bool, now vtime.Time) {
	k, l := m.ch.find(from, to)
	if l == nil {
		return
	}
	s := &m.stations[from]
	if !up && s.transmitting {
		m.vanish(&s.sig, k, now)
	}
	for f := range s.shapes {
		sh := &s.shapes[f]
		switch {
		case sh.header == nil:
		case up:
			m.hearers[from][f][k] = m.hearer(l, sh)
		default:
			m.hearers[from][f][k] = hearer{receiver: &m.void, bound: never}
		}
	}
	if up && s.transmitting {
		m.appear(&s.sig, k, now)
	}
}

// vanish lets a signal end at its k-th hearer only, as fade does at all of them when
// it is truncated.
func (m *Medium) vanish(sig *signal, k int, now vtime.Time) {
	h := &m.hearers[sig.src][sig.shape.kind][k]
	r := h.receiver
	m.endSegment(r, r.energy, now)
	if r.from == sig.src {
		whole := sig.truncated
		sig.truncated = true
		m.rxEnd(&m.stations[r.id], sig, k, now)
		sig.truncated = whole
	}
	r.energy -= h.power
	r.sensed -= h.sense
	m.sense(&m.stations[r.id], now)
	m.setBounds(r)
}

// appear lets a signal that is on the air begin at its k-th hearer, which missed its
// preamble and so does not receive it.
func (m *Medium) appear(sig *signal, k int, now vtime.Time) {
	h := &m.hearers[sig.src][sig.shape.kind][k]
	r := h.receiver
	m.endSegment(r, r.energy, now)
	r.energy += h.power
	r.sensed += h.sense
	r.interfered = true
	if m.ch.threshold {
		m.disturb(r)
	}
	m.sense(&m.stations[r.id], now)
	m.setBounds(r)
}
