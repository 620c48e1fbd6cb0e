package wifi

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// What begins and ends on the air, at every node within reach of its sender. A node
// has something to do at either moment only if the node locks on the signal, is
// locked on another one that it now matters to, or finds its carrier sense changed. So
// each receiver keeps the bounds at which that is so, and the signal goes over its
// hearers twice: first the sums of power are brought up to date and compared with the
// bounds, without a branch, then those that are beyond one are looked at.

// never is a bound below every sum of powers.
const never = -1

// spread lets a signal begin at every receiver within reach. First it ends the
// segment of constant interference that the reception there, if any, is in.
func (m *Medium) spread(sig *signal, now vtime.Time) {
	hearers := m.hearers[sig.src][sig.shape.kind]
	for _, k := range m.acts[:add(hearers, m.acts, now)] {
		m.begin(sig, &hearers[k], k, now)
	}
	if sig.dst >= 0 && m.receivers[sig.dst].from != sig.src {
		m.missed(sig)
	}
}

// add adds a signal to the sums of its hearers, writes to acts which of them have
// something to do, and returns their number.
func add(hearers []hearer, acts []int32, now vtime.Time) (n int) {
	for k := range hearers {
		h := &hearers[k]
		r := h.receiver
		other, sensed := r.energy, r.sensed+h.sense
		r.energy, r.sensed, r.interfered = other+h.power, sensed, true
		// The sign is that of: other > limit, or other <= bound and power >= least,
		// or sensed >= high. No difference overflows: what is compared is -1 or more.
		act := (r.limit - other) | ^((h.bound - other) | (h.power - r.least)) | ^(sensed - r.high)
		acts[n] = int32(k)
		n += int(uint64(act) >> 63)
		since := r.since // which begin ends
		if act >= 0 {
			since = now
		}
		r.since = since
	}
	return n
}

// subtract takes a signal out of the sums, as add adds it.
func subtract(hearers []hearer, acts []int32, src int32, now vtime.Time) (n int) {
	for k := range hearers {
		h := &hearers[k]
		r := h.receiver
		other, sensed := r.energy, r.sensed-h.sense
		r.energy, r.sensed = other-h.power, sensed
		// The sign is that of: other > limit, or from = src, or sensed < low.
		act := (r.limit - other) | (int64(uint32(r.from^src)) - 1) | (sensed - r.low)
		acts[n] = int32(k)
		n += int(uint64(act) >> 63)
		since := r.since
		if act >= 0 {
			since = now
		}
		r.since = since
	}
	return n
}

// begin lets a signal, whose power is in the sums already, begin at its k-th hearer.
func (m *Medium) begin(sig *signal, h *hearer, k int32, now vtime.Time) {
	r := h.receiver
	other := r.energy - h.power
	if other > r.limit {
		m.addSegment(r, other-r.power, now)
	}
	r.since = now
	if m.ch.threshold {
		m.disturb(r)
	}
	switch {
	case other <= h.bound && h.power >= r.least && (!r.locked() || m.takes(h, other, now)):
		m.lock(sig, h, k, other, now)
	case r.sensed >= r.high:
		r.low = m.ch.senseAt
	default:
		return
	}
	if !r.busy {
		m.turnBusy(r, now)
	}
}

// missed is called when the node that a signal is for has not locked on it: it was
// busy otherwise, unless it is off or out of reach.
func (m *Medium) missed(sig *signal) {
	r := &m.receivers[sig.dst]
	if k, _ := m.ch.find(int(sig.src), int(sig.dst)); k >= 0 && r.up {
		if h := &m.hearers[sig.src][sig.shape.kind][k]; h.receiver == r && (r.transmitting || h.bound >= 0) {
			sig.fate = fateCollision
		}
	}
}

// fade lets a signal end at every receiver within reach, as spread lets it begin, but
// in the order of the nodes: they set timers, and equal times fire in the order in
// which they were set.
func (m *Medium) fade(sig *signal, now vtime.Time) {
	hearers := m.hearers[sig.src][sig.shape.kind]
	for _, k := range m.acts[:subtract(hearers, m.acts, sig.src, now)] {
		m.end(sig, &hearers[k], k, now)
	}
}

// end lets a signal, whose power is no longer in the sums, end at its k-th hearer.
func (m *Medium) end(sig *signal, h *hearer, k int32, now vtime.Time) {
	r := h.receiver
	if energy := r.energy + h.power; energy > r.limit {
		m.addSegment(r, energy-r.power, now)
	}
	r.since = now
	if r.from == sig.src {
		m.rxEnd(&m.stations[r.id], sig, int(k), now)
	}
	if r.sensed < r.low {
		m.turnIdle(r, now)
	}
}

// endSegment ends the segment of constant interference, in which the sum of powers
// was energy, that a reception is in.
func (m *Medium) endSegment(r *receiver, energy int64, now vtime.Time) {
	if energy > r.limit {
		m.addSegment(r, energy-r.power, now)
	}
	r.since = now
}

// disturb notes, in the threshold models, that a signal began during a reception. Its
// power is in the sum.
func (m *Medium) disturb(r *receiver) {
	if r.locked() && !m.ch.captures(r.power, r.energy-r.power) {
		r.bad = true
	}
}

// setBounds derives the bounds of carrier sense from the receiver's state.
func (m *Medium) setBounds(r *receiver) {
	r.high, r.low, r.least = math.MaxInt64, never, math.MaxInt64
	switch {
	case !r.busy:
		r.high = m.ch.senseAt
	case !r.transmitting && !r.locked():
		r.low = m.ch.senseAt
	}
	if r.up && !r.transmitting {
		r.least = 0
		if r.locked() {
			r.least = r.power + 1
		}
	}
}
