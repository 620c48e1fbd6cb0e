package pipe

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// call is what a sink was told, on the run's clock.
type call struct {
	at   vtime.Time
	what string
	id   int
}

// watcher is an Expecter that remembers its calls.
type watcher struct {
	eng      *des.Engine
	epoch    vtime.Time
	calls    []call
	expected []vtime.Time
}

func (w *watcher) note(what string, p *Packet) {
	w.calls = append(w.calls, call{w.eng.Now() - w.epoch, what, p.Payload.(int)})
}
func (w *watcher) Deliver(_ vtime.Time, p *Packet)       { w.note("delivered", p) }
func (w *watcher) Drop(_ vtime.Time, p *Packet, _ Cause) { w.note("dropped", p) }
func (w *watcher) Expect(at vtime.Time)                  { w.expected = append(w.expected, at) }

// next is the earliest expected time that has not passed. What happens at this
// moment may still have to: a Send can bring it about.
func (w *watcher) next() vtime.Time {
	if len(w.expected) == 0 {
		return vtime.Never
	}
	return slices.Min(w.expected)
}

// leaving is a watcher that wants to know of departures as well.
type leaving struct{ watcher }

func (w *leaving) Left(_ vtime.Time, p *Packet) { w.note("left", p) }

// varied are pipes of every kind, with schedules that pause, slow down, hasten
// and lift the limit while packets wait.
func varied(t *testing.T) map[string]Config {
	ms := vtime.Millisecond
	tr := mustTrace(t, "0\n3\n4\n4\n30\n41\n")
	slow, fast, none := 500*vtime.KbitPerSecond, 20*vtime.MbitPerSecond, vtime.BitRate(0)
	long, short := 40*ms, vtime.Duration(0)
	changes := []Change{
		{At: vtime.Time(20 * ms), Up: ptr(false)},
		{At: vtime.Time(55*ms + 1), Up: ptr(true), Delay: &long},
		{At: vtime.Time(70 * ms), Delay: &short, Loss: &Loss{Good: 0.3}},
	}
	rates := append(slices.Clone(changes), Change{At: vtime.Time(70 * ms), Rate: &slow},
		Change{At: vtime.Time(120 * ms), Rate: &none}, Change{At: vtime.Time(150 * ms), Rate: &fast})
	return map[string]Config{
		"wire":     {Delay: 3 * ms},
		"rate":     {Rate: 2 * vtime.MbitPerSecond, Delay: 3*ms + 7, Queue: Queue{Packets: 20}},
		"schedule": {Rate: 2 * vtime.MbitPerSecond, Delay: 10 * ms, Queue: Queue{Packets: 20}, Schedule: rates},
		"lossy line": {Rate: 2 * vtime.MbitPerSecond, Delay: 10 * ms, Queue: Queue{Bytes: 30_000}, Schedule: rates,
			Loss: Loss{Good: 0.2}, LossAfterQueue: true, Reorder: Reorder{Share: 0.2, Extra: 9 * ms}, Duplicate: 0.2},
		"jitter": {Rate: 4 * vtime.MbitPerSecond, Delay: 5 * ms, Queue: Queue{Packets: 20}, Schedule: rates,
			Jitter: Jitter{Distribution: Uniform, Spread: 5 * ms, Overtake: true}},
		"trace": {Trace: tr, TraceOffset: 10 * ms, Delay: 2 * ms, Queue: Queue{Packets: 20}, Schedule: changes, Overhead: 38},
	}
}

// A driver that sleeps until the earliest expected time meets every call at the
// time at which it happens, and all calls are those of an engine that fires
// event after event.
func TestExpectedTimesAreLowerBounds(t *testing.T) {
	for name, cfg := range varied(t) {
		for _, departures := range []bool{false, true} {
			run := func(step func(eng *des.Engine, w *watcher, until vtime.Time)) []call {
				eng := des.New()
				w := &leaving{watcher{eng: eng}}
				var sink Sink = &w.watcher
				if departures {
					sink = w
				}
				p, err := New(eng, 7, name, cfg, sink)
				if err != nil {
					t.Fatal(err)
				}
				s := des.NewStream(1, "arrivals")
				at := vtime.Time(0)
				for id := range 150 {
					at = at.Add(vtime.Duration(s.IntN(3_000_000)))
					step(eng, &w.watcher, at)
					k := p.NewPacket()
					k.Len, k.Payload = vtime.Bytes(100+s.IntN(1400)), id
					p.Send(k)
				}
				step(eng, &w.watcher, at.Add(vtime.Second))
				return w.calls
			}
			sleeps := 0
			driven := run(func(eng *des.Engine, w *watcher, until vtime.Time) {
				for eng.Now() < until {
					wake, before := min(w.next(), until), len(w.calls)
					eng.RunUntil(wake)
					w.expected = slices.DeleteFunc(w.expected, func(at vtime.Time) bool { return at <= wake })
					sleeps++
					for _, c := range w.calls[before:] {
						if c.at < wake && c.what != "dropped" {
							t.Fatalf("%s: packet %d %s at %v, while the driver sleeps until %v", name, c.id, c.what, c.at, wake)
						}
					}
				}
			})
			free := run(func(eng *des.Engine, _ *watcher, until vtime.Time) { eng.RunUntil(until) })
			if !reflect.DeepEqual(driven, free) {
				t.Errorf("%s: the calls differ from those of a free engine", name)
			}
			if len(free) < 100 || sleeps > 6*len(free) {
				t.Errorf("%s: %d sleeps for %d calls", name, sleeps, len(free))
			}
		}
	}
}

// A pipe that is made in the middle of an engine's life with its epoch there
// does what one that was made at time 0 does, so many nanoseconds later.
func TestEpochShiftsScheduleAndTrace(t *testing.T) {
	for name, cfg := range varied(t) {
		run := func(epoch vtime.Time) []call {
			eng := des.New()
			eng.AdvanceTo(epoch)
			cfg.Epoch = epoch
			w := &leaving{watcher{eng: eng, epoch: epoch}}
			p, err := New(eng, 7, name, cfg, w)
			if err != nil {
				t.Fatal(err)
			}
			at := epoch
			for id := range 150 {
				at = at.Add(1_370_001)
				eng.RunUntil(at)
				k := p.NewPacket()
				k.Len, k.Payload = 1000, id
				p.Send(k)
			}
			eng.RunUntil(at.Add(vtime.Second))
			return w.calls
		}
		early, late := run(0), run(1_234_567_891)
		if len(early) < 150 || !reflect.DeepEqual(early, late) {
			t.Errorf("%s: %d calls from time 0, %d from later on, or other ones", name, len(early), len(late))
		}
	}
	eng := des.New()
	if _, err := New(eng, 1, "x", Config{Epoch: 1}, discard{}); err == nil || !strings.Contains(err.Error(), "epoch") {
		t.Errorf("an epoch ahead of the engine: %v", err)
	}
}

// What lies before New in a schedule happens at New.
func TestLateEpochCatchesUp(t *testing.T) {
	eng := des.New()
	eng.AdvanceTo(vtime.Time(vtime.Second))
	rate := vtime.BitRate(8_000_000)
	p, err := New(eng, 1, "x", Config{Schedule: []Change{{At: 5, Up: ptr(false)}, {At: 9, Up: ptr(true), Rate: &rate}}}, discard{})
	if err != nil {
		t.Fatal(err)
	}
	eng.RunUntil(eng.Now())
	k := p.NewPacket()
	k.Len, k.Payload = 1000, 0
	p.Send(k)
	if at := eng.Next(); !p.Up() || at != vtime.Time(vtime.Second+vtime.Millisecond) {
		t.Errorf("up %v, the packet leaves at %v", p.Up(), at)
	}
}
