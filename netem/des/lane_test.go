package des

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// laneLoad schedules at random from within its events: into lanes or, as the
// reference, by Schedule.
type laneLoad struct {
	eng   *Engine
	s     *Stream
	lanes []*Lane // nil: the reference
	last  []vtime.Time
	ids   []EventID
	log   []string
	tie   int // times are multiples of it
	most  int // least number of pending events to keep
}

func (l *laneLoad) Fire(now vtime.Time, arg uint64) {
	l.log = append(l.log, fmt.Sprintf("%d@%d/%d", arg, now, l.eng.Pending()))
	for range l.s.IntN(4) + l.most/(1+l.eng.Pending()) {
		l.schedule(now)
	}
	if l.s.IntN(5) == 0 && len(l.ids) > 0 {
		k := l.s.IntN(len(l.ids))
		l.eng.Cancel(l.ids[k])
		l.ids = slices.Delete(l.ids, k, k+1)
	}
}

func (l *laneLoad) schedule(now vtime.Time) {
	arg := l.s.Uint64() % 1000
	step := vtime.Duration(l.s.IntN(40) * l.tie)
	if l.eng.Pending() > 3*l.most {
		return
	}
	k := l.s.IntN(2 * len(l.last))
	if k >= len(l.last) {
		l.ids = append(l.ids, l.eng.Schedule(now.Add(step*vtime.Duration(1+l.s.IntN(20))), l, arg))
		return
	}
	at := max(l.last[k], now).Add(step / 8)
	l.last[k] = at
	if l.lanes != nil {
		l.lanes[k].Schedule(at, arg)
	} else {
		l.eng.Schedule(at, l, arg)
	}
}

// TestLanesFireAsIfScheduled: the same events in the same order and the same hash,
// with ties within a lane, between lanes and with others, with few and with many
// pending.
func TestLanesFireAsIfScheduled(t *testing.T) {
	for _, c := range []struct{ lanes, tie, most int }{{1, 1, 1}, {2, 8, 20}, {3, 100, 100}, {5, 8, 300}, {2, 100, 1000}} {
		run := func(lanes bool) *laneLoad {
			l := &laneLoad{eng: New(), s: NewStream(7, fmt.Sprint(c)), last: make([]vtime.Time, c.lanes), tie: c.tie, most: c.most}
			if lanes {
				for range c.lanes {
					l.lanes = append(l.lanes, l.eng.NewLane(l))
				}
			}
			for range 3 + c.most {
				l.schedule(0)
			}
			for range 20_000 {
				if !l.eng.Step() {
					l.schedule(l.eng.Now())
				}
			}
			return l
		}
		a, b := run(false), run(true)
		if len(a.log) < 10_000 {
			t.Fatalf("%+v: only %d events", c, len(a.log))
		}
		for i := range a.log {
			if i >= len(b.log) || a.log[i] != b.log[i] {
				t.Fatalf("%+v: event %d of %d is %s by lanes, %s without", c, i, len(a.log), b.log[min(i, len(b.log)-1)], a.log[i])
			}
		}
		if a.eng.TraceHash() != b.eng.TraceHash() || len(a.log) != len(b.log) {
			t.Errorf("%+v: the hashes differ", c)
		}
		for k, lane := range b.lanes {
			if lane.Last() != b.last[k] {
				t.Errorf("%+v: lane %d ends at %v, want %v", c, k, lane.Last(), b.last[k])
			}
		}
	}
}

func TestLaneMisusePanics(t *testing.T) {
	for name, f := range map[string]func(e *Engine, l *Lane){
		"in the past":           func(e *Engine, l *Lane) { l.Schedule(99, 0) },
		"at never":              func(e *Engine, l *Lane) { l.Schedule(vtime.Never, 0) },
		"before the lane's end": func(e *Engine, l *Lane) { l.Schedule(200, 0); l.Schedule(199, 0) },
	} {
		e := New()
		e.AdvanceTo(100)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(e, e.NewLane(&recorder{}))
		}()
	}
}

// laneSpinner keeps a lane as full as it was.
type laneSpinner struct{ lane *Lane }

func (s *laneSpinner) Fire(now vtime.Time, arg uint64) { s.lane.Schedule(now.Add(10_000), arg) }

func TestLanesDoNotAllocateInSteadyState(t *testing.T) {
	e := New()
	s := &laneSpinner{}
	s.lane = e.NewLane(s)
	for i := range 100 {
		s.lane.Schedule(vtime.Time(i), 0)
	}
	e.RunUntil(10_000)
	if n := testing.AllocsPerRun(1000, func() { e.Step() }); n != 0 {
		t.Errorf("%v allocations per event, want 0", n)
	}
}

// BenchmarkLane: an event costs the same however many are on their way.
func BenchmarkLane(b *testing.B) {
	for _, n := range []int{1, 16, 256, 4096} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			e := New()
			s := &laneSpinner{}
			s.lane = e.NewLane(s)
			for i := range n {
				s.lane.Schedule(vtime.Time(i), 0)
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Step()
			}
		})
	}
}
