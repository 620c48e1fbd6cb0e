package emulator

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/pace"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// marks cuts a run into the time before the measured interval, the interval,
// and the time after it. The cuts are events of the engine, so the medium's
// counters are exact to the nanosecond; the host's are read when the event
// fires.
type marks struct {
	c    *core
	next vtime.Time // the next cut, for the wake-up; Never if none

	epoch    vtime.Time // engine time of the run's time 0
	from, to vtime.Time // engine time
	events   [2]des.EventID
	zero     des.EventID // renews the pipes
	phase    phase
	began    vtime.Time // engine time at which the phase began
	host     hostSample // when the phase began
	first    hostSample // when the emulator began
	base     []FrameCounts
	total    pace.Stats // phases that are over

	measured Span
	stats    []wifi.NodeStats
	pipes    []pipe.Stats
	queues   [][wifi.NumAC]wifi.QueueState
	frames   []FrameCounts

	// observe asks the observer goroutine for what is too slow to be read on the
	// pacing thread.
	observe chan<- phase
}

type phase uint8

const (
	before phase = iota
	measuring
	after
	over // the run has ended
)

func (m *marks) init(c *core) {
	n := len(c.cfg.Nodes)
	m.c, m.next = c, vtime.Never
	m.base = make([]FrameCounts, len(c.counts))
	m.pipes = make([]pipe.Stats, 2*len(c.cfg.Pipes))
	m.stats = make([]wifi.NodeStats, n)
	m.queues = make([][wifi.NumAC]wifi.QueueState, n)
	m.frames = make([]FrameCounts, len(c.counts))
}

// start begins the first phase; on the pacing thread.
func (m *marks) start() {
	m.first = sampleHost()
	m.host = m.first
}

// begin sets the run's clock and schedules the measured interval.
func (m *marks) begin(o *beginOrder) error {
	if m.phase != before || m.next != vtime.Never {
		return fmt.Errorf("emulator: the run has begun already")
	}
	if o.From < 0 || o.To <= o.From {
		return fmt.Errorf("emulator: a measured interval from %v to %v: want 0 ≤ from < to", o.From, o.To)
	}
	epoch := m.c.loop.Virtual(o.EpochNS)
	from := epoch.Add(vtime.Duration(o.From))
	if now := m.c.eng.Now(); from < now {
		return fmt.Errorf("emulator: the measured interval began %v ago: choose a later epoch", now.Sub(from).Std())
	}
	m.epoch, m.from, m.to = epoch, from, epoch.Add(vtime.Duration(o.To))
	m.c.recorder.begin(epoch, epoch.Sub(m.c.loop.Clock()).Std())
	m.next = m.from
	m.zero = m.c.eng.Schedule(max(epoch, m.c.eng.Now()), m, uint64(zero))
	m.c.changes.begin(epoch)
	m.events[0] = m.c.eng.Schedule(m.from, m, uint64(measuring))
	m.events[1] = m.c.eng.Schedule(m.to, m, uint64(after))
	return nil
}

// zero is the event of the run's time 0.
const zero = over + 1

// Fire begins the run of the pipes or makes a cut. It implements des.Handler.
func (m *marks) Fire(now vtime.Time, arg uint64) {
	if phase(arg) == zero {
		m.c.renewPipes(m.epoch)
		return
	}
	m.cut(now, phase(arg))
}

// cut ends a phase and begins the next.
func (m *marks) cut(now vtime.Time, next phase) {
	host := sampleHost()
	if m.phase == measuring {
		m.measured = m.span(host)
		m.measured.From, m.measured.To = m.began.Add(-vtime.Duration(m.epoch)), now.Add(-vtime.Duration(m.epoch))
		for i := range m.frames {
			m.frames[i] = sub(m.c.counts[i], m.base[i])
		}
		if m.c.medium != nil {
			m.mediumStats()
		}
		for d, w := range m.c.wires {
			m.pipes[d] = w.pipe.Stats()
		}
	}
	add(&m.total, m.c.loop.Stats())
	m.c.loop.Reset()
	copy(m.base, m.c.counts)
	m.host, m.began, m.phase = host, now, next
	m.next = vtime.Never
	if next == measuring {
		if m.c.medium != nil {
			m.c.medium.ResetStats()
		}
		for _, w := range m.c.wires {
			w.pipe.ResetStats()
		}
		m.next = m.to
		// A standstill that began before the interval reaches into it by as much
		// as the cut is late.
		m.c.loop.Stats().Stall = max(m.c.loop.Clock().Sub(now), 0)
	}
	if m.observe != nil {
		m.observe <- next // has room for every phase
	}
}

func (m *marks) mediumStats() {
	for i := range m.stats {
		m.stats[i] = *m.c.medium.Stats(i)
		for ac := range wifi.NumAC {
			m.queues[i][ac] = m.c.medium.Queue(i, wifi.AC(ac))
		}
	}
}

// finish ends the run now, wherever it is.
func (m *marks) finish() (whole Span) {
	now := m.c.eng.Now()
	for _, id := range append(m.events[:], m.zero) {
		m.c.eng.Cancel(id)
	}
	if m.next == vtime.Never && m.phase == before { // Begin never came: all of it counts
		m.phase = measuring
	}
	m.cut(now, over)
	whole = Span{From: -m.epoch, To: now - m.epoch, Lateness: summarise(&m.total), Host: m.host.since(m.first)}
	for _, f := range m.c.counts {
		whole.Frames = whole.Frames.Add(f)
	}
	return whole
}

func (m *marks) span(host hostSample) Span {
	s := Span{Lateness: summarise(m.c.loop.Stats()), Host: host.since(m.host)}
	for i := range m.base {
		s.Frames = s.Frames.Add(sub(m.c.counts[i], m.base[i]))
	}
	return s
}

func (m *marks) health() Health {
	s := m.span(m.host)
	return Health{At: m.c.eng.Now() - m.epoch, Measuring: m.phase == measuring, Lateness: s.Lateness, Frames: s.Frames, Events: m.c.eng.Fired()}
}

func add(to, s *pace.Stats) {
	to.Late.Merge(&s.Late)
	to.Stall, to.Turn = max(to.Stall, s.Stall), max(to.Turn, s.Turn)
	to.Wakes, to.Polls = to.Wakes+s.Wakes, to.Polls+s.Polls
}

func sub(a, b FrameCounts) FrameCounts {
	return FrameCounts{a.Read - b.Read, a.ReadErrors - b.ReadErrors, a.Refused - b.Refused, a.Foreign - b.Foreign,
		a.Unknown - b.Unknown, a.Written - b.Written, a.WriteErrors - b.WriteErrors}
}

func summarise(s *pace.Stats) LatenessSummary {
	h := &s.Late
	return LatenessSummary{
		Events: h.Count(), P50: h.Quantile(0.5), P99: h.Quantile(0.99), Max: h.Max(),
		Above1ms: h.Above(vtime.Millisecond), Above2ms: h.Above(LateBound),
		Stall: s.Stall, Turn: s.Turn, Wakes: s.Wakes,
	}
}
