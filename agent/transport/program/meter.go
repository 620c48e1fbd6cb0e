package program

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// meter attributes a growing total, known at some moments only, to the measured
// interval [from, to). Between two moments the total is taken to have grown
// evenly: a step that lies across an end of the interval counts by the share of
// its time inside.
type meter struct {
	from, to vtime.Time
	size     vtime.Bytes // of a sized flow, 0 = continual

	at       vtime.Time // of the last moment
	total    vtime.Bytes
	measured float64
	finished vtime.Time
}

// newMeter begins at the moment begin with nothing.
func newMeter(from, to, begin vtime.Time, size vtime.Bytes) *meter {
	return &meter{from: from, to: to, size: size, at: begin, finished: vtime.Never}
}

// advance says that the total was n at the moment now. Neither goes back.
func (m *meter) advance(now vtime.Time, total vtime.Bytes) {
	grown := float64(total - m.total)
	switch inside := vtime.Min(now, m.to).Sub(vtime.Max(m.at, m.from)); {
	case now > m.at && inside > 0:
		m.measured += grown * float64(inside) / float64(now.Sub(m.at))
	case now == m.at && now >= m.from && now < m.to:
		m.measured += grown
	}
	m.at, m.total = now, total
	if m.size > 0 && total >= m.size && m.finished == vtime.Never {
		m.finished = now
	}
}

// bytes is what was delivered in the measured interval.
func (m *meter) bytes() vtime.Bytes { return vtime.Bytes(math.Round(m.measured)) }
