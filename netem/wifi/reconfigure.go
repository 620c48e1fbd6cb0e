package wifi

import (
	"fmt"
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// SetMAC gives a node's interface another configuration while the medium runs:
// rates, preamble, retry limit, RTS threshold and the queues' parameters. The
// standard, QoS and 802.11g's options stay what they were: the channel is shared.
//
// What is on the air ends as it was begun: where the node transmits, the
// configuration takes effect at the end of that transmission. Frames that wait
// are sent by the new one; a queue that is now longer than its limit takes no
// more. A running backoff keeps its slots and goes on after a new AIFS.
//
// The carrier-sense threshold of a log-distance channel stays that of the data
// rate from which the channel was made.
func (m *Medium) SetMAC(node int, mac MAC) error {
	if node < 0 || node >= m.ch.n {
		return fmt.Errorf("medium: node %d does not exist: there are nodes 0…%d", node, m.ch.n-1)
	}
	s := &m.stations[node]
	if err := s.mac.Replaceable(&mac); err != nil {
		return fmt.Errorf("medium: node %d: %w", node, err)
	}
	if m.configs == nil {
		m.configs = map[int32]*MAC{}
	}
	_, waits := m.configs[s.id]
	m.configs[s.id] = &mac
	now := m.eng.Now()
	switch {
	case waits: // for the end of the transmission
	case s.transmitting:
		m.eng.Schedule(s.sig.end, m, uint64(s.id)<<8|uint64(timerConfigure))
	default:
		m.configure(s, now)
	}
	return nil
}

// Replaceable reports why a running interface cannot be given the configuration
// to in place of m; nil if it can.
func (m *MAC) Replaceable(to *MAC) error {
	switch {
	case to.Standard != m.Standard:
		return fmt.Errorf("the standard is %v and cannot become %v: one channel has one standard", m.Standard, to.Standard)
	case to.QoS != m.QoS, to.LongSlot != m.LongSlot, to.Protection != m.Protection, to.ProtectionRate != m.ProtectionRate:
		return fmt.Errorf("QoS, the long slot and protection cannot change while the interface is up")
	}
	return to.Validate()
}

// configure makes the configuration that waits for a station its own.
func (m *Medium) configure(s *station, now vtime.Time) {
	if s.transmitting { // another frame began at the very end of the last one
		m.eng.Schedule(s.sig.end, m, uint64(s.id)<<8|uint64(timerConfigure))
		return
	}
	mac := m.configs[s.id]
	delete(m.configs, s.id)
	p, err := newPHY(mac)
	if err != nil {
		panic(fmt.Sprintf("wifi: configuration of node %d: %v", s.id, err)) // it was validated
	}
	counting := s.counting
	if counting {
		// The slots that have passed count; the rest goes on after an AIFS, as if the
		// medium had been busy for an instant.
		s.counting = false
		m.freeze(s, now)
		s.hold = max(s.hold, now)
	}
	forms := newShapes(&p)
	s.mac, s.phy, s.shapes = mac, &p, &forms
	for ac := range s.queues {
		q := &s.queues[ac]
		first := q.cw == q.cfg.CWmin
		q.cfg = &mac.Queues[ac]
		q.aifs, q.cw = p.aifs(q.cfg.AIFSN), min(max(q.cw, q.cfg.CWmin), q.cfg.CWmax)
		if first { // not doubled by a failure
			q.cw = q.cfg.CWmin
		}
		q.backoff = min(q.backoff, q.cfg.CWmax)
		for f := q.head; f != nil; f = f.next {
			f.air = s.dataTime(f)
		}
		s.updatePending(AC(ac))
	}
	m.evaluate(int(s.id))
	m.keepCut(int(s.id))
	if counting {
		m.resume(s.receiver, now)
	}
}

// keepCut leads the links of a station that are down into the void again, after
// its hearers were evaluated.
func (m *Medium) keepCut(i int) {
	for k := range m.ch.links[i] {
		to := int(m.ch.links[i][k].to)
		if !m.cut[[2]int{min(i, to), max(i, to)}] {
			continue
		}
		for f := range m.hearers[i] {
			if len(m.hearers[i][f]) > 0 {
				m.hearers[i][f][k] = hearer{receiver: &m.void, bound: never}
			}
		}
	}
}

// Delivery returns the delivery probability of the listed link from → to, and
// whether there is one: a channel that was made from matrices and on which to
// decodes from.
func (m *Medium) Delivery(from, to int) (p vtime.Fraction, ok bool) {
	if from < 0 || from >= m.ch.n || to < 0 || to >= m.ch.n || !m.ch.listed() {
		return 0, false
	}
	_, l := m.ch.find(from, to)
	if l == nil || !l.decodes {
		return 0, false
	}
	return vtime.Fraction(l.prob), true
}

// listed reports whether the channel was made from matrices.
func (c *Channel) listed() bool { return c.phy.data == nil }

// SetDelivery changes the probability with which a data frame from → to that is
// alone on the channel is received, from the next end of a frame on. The link must
// be one of a channel that was made from matrices; who senses and disturbs whom
// stays. The medium gets a copy of the channel: others that share it keep theirs.
func (m *Medium) SetDelivery(from, to int, p vtime.Fraction) error {
	if !(p > 0 && p <= 1) {
		return fmt.Errorf("medium: delivery %v on link %d→%d: want above 0, at most 100%% (a link that delivers nothing is down)", p, from, to)
	}
	if _, ok := m.Delivery(from, to); !ok {
		return fmt.Errorf("medium: no listed link %d→%d: its delivery follows from the radio model, or is 0", from, to)
	}
	if !m.owned {
		ch := *m.ch
		ch.links = make([][]link, len(m.ch.links))
		for i := range ch.links {
			ch.links[i] = append([]link(nil), m.ch.links[i]...)
		}
		m.ch, m.owned = &ch, true
	}
	_, l := m.ch.find(from, to)
	l.prob = math.Min(float64(p), 1)
	return nil
}
