package workload

import "github.com/hopbed/hopbed/netem/vtime"

// Meter counts the bytes that one flow delivers to its application and
// attributes each to the measured interval by the moment of its delivery, so
// that no interpolation is needed.
type Meter struct {
	warmup, end vtime.Time
	size        vtime.Bytes

	total, measured vtime.Bytes
	first, finished vtime.Time
	begun           bool
}

// NewMeter measures [warmup, end). size is what the source will send, 0 for a
// continual source.
func NewMeter(warmup, end vtime.Time, size vtime.Bytes) *Meter {
	return &Meter{warmup: warmup, end: end, size: size, finished: vtime.Never}
}

// Add counts n bytes delivered at now.
func (m *Meter) Add(now vtime.Time, n vtime.Bytes) {
	if n <= 0 {
		return
	}
	if !m.begun {
		m.begun, m.first = true, now
	}
	m.total += n
	if now >= m.warmup && now < m.end {
		m.measured += n
	}
	if m.size > 0 && m.total >= m.size && m.finished == vtime.Never {
		m.finished = now
	}
}

// Total returns the bytes delivered since the flow began.
func (m *Meter) Total() vtime.Bytes { return m.total }

// Measured returns the bytes delivered in [warmup, end).
func (m *Meter) Measured() vtime.Bytes { return m.measured }

// First returns when the first byte was delivered; ok is false before that.
func (m *Meter) First() (at vtime.Time, ok bool) { return m.first, m.begun }

// Finished returns when the last byte of a sized flow was delivered,
// vtime.Never before that and for a continual flow.
func (m *Meter) Finished() vtime.Time { return m.finished }
