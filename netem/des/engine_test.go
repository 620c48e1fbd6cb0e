package des

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// recorder notes what fires; script, if set, runs inside the event.
type recorder struct {
	eng    *Engine
	log    []string
	script func(now vtime.Time, arg uint64)
}

func (r *recorder) Fire(now vtime.Time, arg uint64) {
	r.log = append(r.log, fmt.Sprintf("%d@%d", arg, now))
	if r.script != nil {
		r.script(now, arg)
	}
}

func TestTiesFireInInsertionOrder(t *testing.T) {
	e := New()
	r := &recorder{eng: e}
	for i := uint64(0); i < 50; i++ {
		e.Schedule(vtime.Time(100-i%3), r, i)
	}
	e.RunUntil(1000)
	last := map[string]int{}
	order := 0
	for _, l := range r.log {
		var arg, at int
		if _, err := fmt.Sscanf(l, "%d@%d", &arg, &at); err != nil {
			t.Fatal(err)
		}
		if at < order {
			t.Fatalf("%s fired after time %d", l, order)
		}
		order = at
		key := fmt.Sprint(at)
		if prev, ok := last[key]; ok && prev > arg {
			t.Fatalf("event %d fired before event %d at %d", prev, arg, at)
		}
		last[key] = arg
	}
	if len(r.log) != 50 || e.Now() != 1000 || e.Fired() != 50 {
		t.Fatalf("fired %d events, now %v, Fired %d", len(r.log), e.Now(), e.Fired())
	}
}

func TestEventsMayScheduleAtTheirOwnTime(t *testing.T) {
	e := New()
	r := &recorder{eng: e}
	r.script = func(now vtime.Time, arg uint64) {
		if arg < 3 {
			e.Schedule(now, r, arg+1)
		}
	}
	e.Schedule(10, r, 0)
	e.Schedule(10, r, 100)
	e.RunUntil(10)
	if got, want := fmt.Sprint(r.log), "[0@10 100@10 1@10 2@10 3@10]"; got != want {
		t.Errorf("fired %s, want %s", got, want)
	}
}

func TestCancelAndStaleIDs(t *testing.T) {
	e := New()
	r := &recorder{eng: e}
	a := e.Schedule(10, r, 1)
	b := e.Schedule(20, r, 2)
	if e.Cancel(0) || !e.Cancel(a) || e.Cancel(a) {
		t.Error("Cancel must be true exactly once, and never for the zero id")
	}
	c := e.Schedule(15, r, 3) // takes the slot of a
	if e.Cancel(a) {
		t.Error("a stale id cancelled the slot's next event")
	}
	if e.Next() != 15 {
		t.Errorf("Next = %v, want 15", e.Next())
	}
	e.RunUntil(15)
	if e.Cancel(c) {
		t.Error("a fired event was cancelled")
	}
	if !e.Cancel(b) || e.Next() != vtime.Never || e.Step() {
		t.Error("the engine should be empty")
	}
	if got := fmt.Sprint(r.log); got != "[3@15]" {
		t.Errorf("fired %s, want [3@15]", got)
	}
}

func TestCancelOwnEventWhileFiring(t *testing.T) {
	e := New()
	r := &recorder{eng: e}
	var id EventID
	r.script = func(now vtime.Time, arg uint64) {
		if e.Cancel(id) {
			t.Error("an event is no longer pending while it fires")
		}
	}
	id = e.Schedule(1, r, 0)
	e.RunUntil(2)
}

func TestMisusePanics(t *testing.T) {
	r := &recorder{}
	for name, f := range map[string]func(e *Engine){
		"schedule in the past":  func(e *Engine) { e.Schedule(99, r, 0) },
		"schedule at never":     func(e *Engine) { e.Schedule(vtime.Never, r, 0) },
		"advance over an event": func(e *Engine) { e.Schedule(150, r, 0); e.AdvanceTo(151) },
		"advance backwards":     func(e *Engine) { e.AdvanceTo(99) },
	} {
		e := New()
		e.AdvanceTo(100)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(e)
		}()
	}
	e := New()
	e.Schedule(150, r, 0)
	e.AdvanceTo(150) // an event at the very moment may wait
	if e.Now() != 150 || e.Next() != 150 {
		t.Errorf("now %v, next %v, want both 150", e.Now(), e.Next())
	}
}

// TestAgainstSortedList runs random schedules and cancellations against a list
// that is searched for its minimum: with few events and with more than near
// holds, with many ties, with times far apart, and with most events cancelled.
func TestAgainstSortedList(t *testing.T) {
	for _, c := range []struct {
		name             string
		spread           int // of the times, ns
		pending          int // about so many events
		schedule, cancel int // in tenths of the steps; the rest fires
	}{
		{"few, ties", 40, 40, 5, 2},
		{"many, ties", 40, 600, 5, 2},
		{"few, apart", 1_000_000, 40, 5, 2},
		{"many, apart", 1_000_000, 600, 5, 2},
		{"many, cancelled", 1_000_000, 600, 5, 4},
	} {
		t.Run(c.name, func(t *testing.T) { againstSortedList(t, c.spread, c.pending, c.schedule, c.cancel) })
	}
}

func againstSortedList(t *testing.T, spread, pending, schedule, cancel int) {
	type item struct {
		at  vtime.Time
		arg uint64
		id  EventID
	}
	s := NewStream(3, "engine test")
	e := New()
	r := &recorder{eng: e}
	var list []item
	var fired, most, dead int
	arg := uint64(0)
	for step := 0; step < 20000; step++ {
		k := s.IntN(10)
		if len(list) < pending/2 {
			k = 0
		} else if len(list) > 3*pending/2 {
			k = max(k, schedule)
		}
		switch {
		case k < schedule || len(list) == 0:
			arg++
			at := e.Now().Add(vtime.Duration(s.IntN(spread)))
			if s.IntN(4) == 0 {
				at = e.Now().Add(vtime.Duration(s.IntN(spread / 40)))
			}
			list = append(list, item{at, arg, e.Schedule(at, r, arg)})
		case k < schedule+cancel:
			i := s.IntN(len(list))
			if !e.Cancel(list[i].id) || e.Cancel(list[i].id) {
				t.Fatalf("step %d: event %d must be cancelled once", step, list[i].arg)
			}
			list = append(list[:i], list[i+1:]...)
		default:
			least := 0
			for i := range list { // arg grows with insertion
				if list[i].at < list[least].at || list[i].at == list[least].at && list[i].arg < list[least].arg {
					least = i
				}
			}
			if e.Next() != list[least].at || e.Pending() != len(list) {
				t.Fatalf("step %d: Next %v, Pending %d, want %v, %d", step, e.Next(), e.Pending(), list[least].at, len(list))
			}
			want := fmt.Sprintf("%d@%d", list[least].arg, list[least].at)
			list = append(list[:least], list[least+1:]...)
			e.Step()
			fired++
			if got := r.log[len(r.log)-1]; got != want {
				t.Fatalf("step %d: fired %s, want %s", step, got, want)
			}
		}
		most, dead = max(most, len(e.far)), max(dead, e.dead)
	}
	t.Logf("%d events fired; at most %d in far, %d tombstones", fired, most, dead)
	if fired < 1000 || (pending > nearMost) != (most > nearMost) || cancel > 2 && dead < nearMost {
		t.Errorf("%d events fired, at most %d in far, %d tombstones: the case does not test what it should", fired, most, dead)
	}
	if dead > most/2+nearMost+1 {
		t.Errorf("%d tombstones, %d entries in far: they must not outnumber the living", dead, most)
	}
}

func TestTraceHash(t *testing.T) {
	run := func(shift vtime.Time, arg, mixed uint64) uint64 {
		e := New()
		r := &recorder{}
		for i := uint64(0); i < 10; i++ {
			e.Schedule(vtime.Time(i*7)+shift, r, arg+i)
		}
		e.RunUntil(30)
		e.Mix(mixed, 5)
		e.RunUntil(1000)
		return e.TraceHash()
	}
	base := run(0, 0, 0)
	if run(0, 0, 0) != base {
		t.Error("equal traces have different hashes")
	}
	if run(1, 0, 0) == base || run(0, 1, 0) == base || run(0, 0, 1) == base {
		t.Error("the hash ignores times, arguments or mixed words")
	}
	a, b := New(), New()
	a.Mix(1, 2)
	b.Mix(2, 1)
	if a.TraceHash() == b.TraceHash() {
		t.Error("the hash ignores the order")
	}
	// Pinned: the hash is stored with results and compared over machines.
	if want := uint64(0xfb214c8c46dd197b); base != want {
		t.Errorf("trace hash %#x, want %#x", base, want)
	}
}

// ticker reschedules itself: the load of benchmarks and of the allocation test.
type ticker struct {
	eng    *Engine
	period vtime.Duration
	other  EventID
}

func (k *ticker) Fire(now vtime.Time, arg uint64) {
	k.eng.Cancel(k.other)
	k.other = k.eng.Schedule(now.Add(3*k.period), k, 1)
	k.eng.Schedule(now.Add(k.period), k, 0)
}

func TestNoAllocationInSteadyState(t *testing.T) {
	e := New()
	for i := 0; i < 100; i++ {
		e.Schedule(vtime.Time(i), &ticker{eng: e, period: vtime.Duration(50 + i)}, 0)
	}
	e.RunUntil(10000)
	if n := testing.AllocsPerRun(1000, func() { e.Step(); e.Mix(1, 2, 3) }); n != 0 {
		t.Errorf("%v allocations per event, want 0", n)
	}
}

// spinner is the cheapest handler: the benchmark measures the engine.
type spinner struct{ eng *Engine }

func (s *spinner) Fire(now vtime.Time, arg uint64) {
	s.eng.Schedule(now.Add(vtime.Duration(100+arg*7919%9973)), s, arg)
}

func BenchmarkEngine(b *testing.B) {
	for _, n := range []int{1, 16, 256, 4096} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			e := New()
			s := &spinner{e}
			for i := 0; i < n; i++ {
				e.Schedule(vtime.Time(i), s, uint64(i))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				e.Step()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

func BenchmarkScheduleCancel(b *testing.B) {
	e := New()
	s := &spinner{e}
	for i := 0; i < 256; i++ {
		e.Schedule(vtime.Time(i), s, uint64(i))
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		e.Cancel(e.Schedule(vtime.Time(i%1000), s, 0))
	}
}
