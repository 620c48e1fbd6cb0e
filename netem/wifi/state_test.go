package wifi

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// meshLab is a busy mesh with everything switched on: shadowed log-distance
// channel, RTS/CTS, bursts, a no-ACK queue, all categories, broadcasts, losses,
// nodes that go down. Its traffic comes from a stream of its own.
func meshLab(t testing.TB, seed uint64, std Standard, change func(m *MAC)) *lab {
	t.Helper()
	mac := DefaultMAC(std)
	mac.RTSThreshold = 900
	mac.Queues[BK].TXOP, mac.Queues[BK].Ack = 8160*us, AckNone
	if change != nil {
		change(&mac)
	}
	r := DefaultRadio()
	r.Shadowing = 6
	side := 250.0
	if std != StandardB {
		side = 100
	}
	ch := mustChannel(t, seed, r, mac, scatter(20, side))
	l := newLab(t, seed, ch, mac)
	if err := l.m.SetLoss(0, 1, 0.2); err != nil {
		t.Fatal(err)
	}
	s := des.NewStream(seed, "traffic")
	var arrive func()
	arrive = func() {
		l.bound = 0 // arrivals and switched nodes end what NextVisible promised
		for k := 1 + s.IntN(20); k > 0; k-- {
			from, to := s.IntN(20), s.IntN(21)-1
			if from != to {
				l.send(from, to, AC(s.IntN(NumAC)), vtime.Bytes(40+s.IntN(1460)))
			}
		}
		if node := s.IntN(400); node < 20 {
			l.m.SetNodeUp(node, false)
		} else if node < 60 {
			l.m.SetNodeUp(node%20, true)
		}
		l.eng.Schedule(l.eng.Now().Add(vtime.Duration(s.Exp()*2e7)), at(func(vtime.Time) { arrive() }), 1)
	}
	arrive()
	return l
}

func TestTraceIsReproducible(t *testing.T) {
	trace := func(seed uint64, std Standard) uint64 {
		l := meshLab(t, seed, std, nil)
		l.run(3 * sec)
		return l.eng.TraceHash()
	}
	// Pinned: equal on every architecture and with every compiler.
	want := map[Standard]uint64{StandardB: 0x7b5afb169b7c2228, StandardG: 0xebaeae0865a5361c, StandardA: 0x5eae5f9f9aa5250c}
	for std, w := range want {
		h := trace(1, std)
		for i := 0; i < 3; i++ {
			if again := trace(1, std); again != h {
				t.Errorf("%v: trace hashes %#x and %#x with one seed", std, h, again)
			}
		}
		if trace(2, std) == h {
			t.Errorf("%v: two seeds, one trace", std)
		}
		if h != w {
			t.Errorf("%v: trace hash %#x, want %#x", std, h, w)
		}
	}
}

// TestAddingANodeChangesNoDraws: a node out of everyone's reach, and one more
// that is silent in reach of nobody, leave the trace of the others as it was.
func TestAddingANodeChangesNoDraws(t *testing.T) {
	run := func(extra int) string {
		mac := DefaultMAC(StandardB)
		r := DefaultRadio()
		r.Shadowing = 6
		pos := scatter(12, 150)
		for i := 0; i < extra; i++ {
			pos = append(pos, Position{X: vtime.Metres(1e6 * (i + 1))})
		}
		l := newLab(t, 5, mustChannel(t, 5, r, mac, pos), mac)
		rec := &recorder{}
		l.m.SetMonitor(rec)
		for i := 0; i < 12; i++ {
			l.saturate(i, (i+1)%12, AC(i%NumAC), 1000, 3)
		}
		if extra > 0 {
			l.saturate(12, Broadcast, VO, 100, 3)
		}
		l.run(2 * sec)
		rec.air = slices.DeleteFunc(rec.air, func(x Transmission) bool { return x.Src >= 12 })
		return rec.String()
	}
	alone := run(0)
	if n := strings.Count(alone, "\n"); n < 500 {
		t.Fatalf("only %d transmissions", n)
	}
	if run(2) != alone {
		t.Error("two more nodes changed what the others do")
	}
}

// TestNextVisibleIsALowerBound: no Deliver or Done before the last bound.
func TestNextVisibleIsALowerBound(t *testing.T) {
	for _, std := range []Standard{StandardB, StandardG} {
		for seed := uint64(1); seed <= 6; seed++ {
			l := meshLab(t, seed, std, func(m *MAC) {
				m.Retries = int(seed) % 3 // many last attempts
				m.Protection = std == StandardG && seed%2 == 0
				if seed == 3 {
					m.RTSThreshold = 0
				}
			})
			seen := 0
			check := func(now vtime.Time, what string) {
				seen++
				if now < l.bound {
					t.Fatalf("%v, seed %d: %s at %v, bound %v", std, seed, what, now, l.bound)
				}
			}
			l.onDeliver = func(now vtime.Time, node int, f *Frame) { check(now, "Deliver") }
			l.onDone = func(now vtime.Time, f *Frame, o Outcome) { check(now, "Done "+o.String()) }
			bounds := uint64(0)
			for l.eng.Now() < vtime.Time(5*sec) {
				l.bound = l.m.NextVisible()
				bounds++
				if l.bound < l.eng.Now() {
					t.Fatalf("%v, seed %d: bound %v in the past at %v", std, seed, l.bound, l.eng.Now())
				}
				// The bound must hold over all events before it, not only the next, as a
				// driver that sleeps relies on it.
				for promised := l.bound; l.bound == promised && l.eng.Next() < promised; {
					l.eng.Step()
				}
				if l.bound != 0 {
					l.eng.Step()
				}
			}
			if fired := l.eng.Fired(); seen < 200 || fired < bounds*5/4 {
				t.Errorf("%v, seed %d: %d visible events, %d bounds for %d events: too few to mean anything", std, seed, seen, bounds, fired)
			}
		}
	}
}

func TestNoAllocationInSteadyState(t *testing.T) {
	mac := DefaultMAC(StandardB)
	mac.RTSThreshold = 900
	mac.Queues[BK].TXOP, mac.Queues[BK].Ack = 8160*us, AckNone
	r := DefaultRadio()
	r.Shadowing = 6
	l := newLab(t, 1, mustChannel(t, 1, r, mac, scatter(30, 250)), mac)
	l.outcomes = nil
	sink := &refill{m: l.m}
	l.m.sink = sink
	for i := 0; i < 30; i++ {
		for ac := AC(0); ac < NumAC; ac++ {
			f := l.m.NewFrame()
			f.Src, f.Dst, f.AC, f.Len = i, (i+1)%30, ac, 1000
			f.Data = append(f.Data, make([]byte, 1000)...)
			l.m.Enqueue(f)
		}
	}
	l.run(5 * sec)
	before := sink.done
	if n := testing.AllocsPerRun(20000, func() { l.eng.Step(); l.m.NextVisible() }); n != 0 {
		t.Errorf("%v allocations per event, want 0", n)
	}
	if sink.done-before < 200 {
		t.Errorf("only %d frames during the measurement", sink.done-before)
	}
}

// refill replaces every frame that leaves, as a live driver would: with data.
type refill struct {
	m    *Medium
	done int
}

func (r *refill) Deliver(now vtime.Time, node int, f *Frame) {}

func (r *refill) Done(now vtime.Time, f *Frame, o Outcome) {
	r.done++
	g := r.m.NewFrame()
	g.Src, g.Dst, g.AC, g.Len = f.Src, f.Dst, f.AC, f.Len
	g.Data = append(g.Data, f.Data...)
	r.m.Enqueue(g)
}

func TestSetLoss(t *testing.T) {
	l := newLab(t, 3, cell(t, 3), DefaultMAC(StandardB))
	if err := l.m.SetLoss(1, 0, 0.3); err != nil {
		t.Fatal(err)
	}
	l.saturate(1, 0, BE, 500, 3)
	l.saturate(2, 0, BE, 500, 3)
	l.run(30 * sec)
	sent := float64(l.outcomes[1][Acked])
	got := float64(l.delivered[1][0]) / sent
	if math.Abs(got-0.7) > 5*math.Sqrt(0.21/sent) {
		t.Errorf("%.4f of %.0f acknowledged frames arrive, want 0.7", got, sent)
	}
	if d := l.outcomes[2][Acked] - int(l.delivered[2][0]); d < 0 || d > 1 {
		t.Errorf("the other link lost %d frames", d)
	}
	st := l.m.Stats(0)
	if st.LossInjected+l.delivered[1][0] < uint64(sent) {
		t.Errorf("%d injected losses, %d delivered of %.0f", st.LossInjected, l.delivered[1][0], sent)
	}
	for want, err := range map[string]error{
		"loss 120%": l.m.SetLoss(0, 1, 1.2),
		"loss NaN%": l.m.SetLoss(0, 1, vtime.Fraction(math.NaN())),
		"nodes 0…2": l.m.SetLoss(0, 3, 0.1),
		"link -1→0": l.m.SetLoss(-1, 0, 0.1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if err := l.m.SetLoss(1, 0, 1); err != nil {
		t.Fatal(err)
	}
	before := l.delivered[1][0]
	l.run(sec)
	if l.delivered[1][0] != before {
		t.Error("frames arrive at a loss of 100 %")
	}
}

func TestNodeDown(t *testing.T) {
	l := newLab(t, 3, cell(t, 3), fixedCW(nil))
	for i := 0; i < 3; i++ {
		l.send(0, 1, BE, 1000)
	}
	l.run(500 * us) // the first frame is on the air
	l.m.SetNodeUp(0, false)
	if n := l.outcomes[0][NodeDown]; n != 3 || l.m.Queue(0, BE).Packets != 0 {
		t.Errorf("%d frames reported, %d left in the queue; want 3, 0", n, l.m.Queue(0, BE).Packets)
	}
	if l.send(0, 1, BE, 1000) {
		t.Error("a node that is down took a frame")
	}
	// Its neighbours received a frame in error: EIFS for who decodes.
	l.send(2, Broadcast, BE, 1000)
	rec := &recorder{}
	l.m.SetMonitor(rec)
	l.run(10 * ms)
	if len(rec.air) != 1 || rec.air[0].Start != vtime.Time(500*us+364*us) {
		t.Errorf("after the truncated frame:\n%vwant a start at 864", rec)
	}
	if l.delivered[0][1] != 0 || l.delivered[2][0] != 0 || l.delivered[2][1] != 1 {
		t.Errorf("delivered %v", l.delivered)
	}
	l.m.SetNodeUp(0, true)
	l.m.SetNodeUp(0, true)
	l.send(0, 1, BE, 1000)
	l.run(10 * ms)
	if l.outcomes[0][Acked] != 1 {
		t.Errorf("after coming back: %v", l.outcomes[0])
	}
	// A destination that is down: the retry limit.
	l.m.SetNodeUp(1, false)
	l.send(0, 1, BE, 1000)
	l.run(100 * ms)
	if l.outcomes[0][RetryLimit] != 1 {
		t.Errorf("to a node that is down: %v", l.outcomes[0])
	}
}

// TestDownAtAnyMoment switches nodes at many moments of an exchange, also from
// within the sink, and expects a working medium afterwards.
func TestDownAtAnyMoment(t *testing.T) {
	for when := vtime.Duration(0); when < 2000*us; when += 37 * us {
		for _, node := range []int{0, 1, 2} {
			mac := fixedCW(func(m *MAC) { m.RTSThreshold = 900; m.Queues[BE].TXOP = 4 * ms })
			l := newLab(t, 1, cell(t, 3), mac)
			for i := 0; i < 3; i++ {
				l.send(0, 1, BE, 1000)
				l.send(2, 1, VO, 300)
			}
			l.at(when, func() { l.m.SetNodeUp(node, false) })
			l.at(when+30*us, func() { l.m.SetNodeUp(node, true) })
			l.run(300 * ms)
			l.m.NextVisible() // forgets the stations that no longer wait
			if s := &l.m.stations[0]; s.exch != exchangeNone || s.energy != 0 || s.sensed != 0 || s.busy || len(l.m.active) != 0 {
				t.Fatalf("node %d down at %v: station 0 in state %d, energy %d, busy %v, %d active", node, when, s.exch, s.energy, s.busy, len(l.m.active))
			}
			before := [2]uint64{l.delivered[0][1], l.delivered[2][0]}
			l.send(0, 1, BE, 1000)
			l.run(100 * ms)
			l.send(2, 0, BE, 1000)
			l.run(100 * ms)
			if l.delivered[0][1] != before[0]+1 || l.delivered[2][0] != before[1]+1 {
				t.Fatalf("node %d down at %v: afterwards %v", node, when, l.delivered)
			}
		}
	}
	l := newLab(t, 1, cell(t, 3), fixedCW(nil))
	l.onDone = func(now vtime.Time, f *Frame, o Outcome) {
		if o == Acked {
			l.m.SetNodeUp(0, false)
		}
	}
	l.send(0, 1, BE, 1000)
	l.send(0, 1, BE, 1000)
	l.run(100 * ms)
	if l.outcomes[0][Acked] != 1 || l.outcomes[0][NodeDown] != 1 {
		t.Errorf("down from within Done: %v", l.outcomes[0])
	}
}

func TestAirtimeCounters(t *testing.T) {
	l := newLab(t, 1, cell(t, 3), fixedCW(nil))
	l.send(0, 1, BE, 1000) // data 50..997, ACK 1007..1255
	for _, stop := range []vtime.Duration{300, 700, 1100, 2000} {
		l.run(vtime.Time(stop * us).Sub(l.eng.Now()))
		l.m.Stats(0)
		l.m.Stats(2)
	}
	for i, want := range []NodeStats{
		{TxTime: 947 * us, RxTime: 248 * us, BusyTime: 1195 * us},
		{TxTime: 248 * us, RxTime: 947 * us, BusyTime: 1195 * us, Delivered: 1, BytesUp: 1000},
		{TxTime: 0, RxTime: 1195 * us, BusyTime: 1195 * us},
	} {
		st := l.m.Stats(i)
		if st.TxTime != want.TxTime || st.RxTime != want.RxTime || st.BusyTime != want.BusyTime || st.Delivered != want.Delivered || st.BytesUp != want.BytesUp {
			t.Errorf("node %d: tx %v, rx %v, busy %v, delivered %d; want %v, %v, %v, %d", i, st.TxTime, st.RxTime, st.BusyTime, st.Delivered, want.TxTime, want.RxTime, want.BusyTime, want.Delivered)
		}
		if st.Until != vtime.Time(2000*us) {
			t.Errorf("node %d: counters until %v", i, st.Until)
		}
	}
	if at := l.m.Stats(0).AC[BE].AirTime; at != 947*us {
		t.Errorf("airtime of the queue %v", at)
	}
	l.m.ResetStats()
	l.run(ms)
	if st := l.m.Stats(0); st.TxTime+st.RxTime+st.BusyTime != 0 || st.Since != vtime.Time(2000*us) || st.AC[BE].Enqueued != 0 {
		t.Errorf("after ResetStats: %+v", st)
	}
}

func TestFramePool(t *testing.T) {
	l := newLab(t, 1, cell(t, 2), DefaultMAC(StandardB))
	f := l.m.NewFrame()
	f.Data = append(f.Data, make([]byte, 1400)...)
	f.Payload = f
	l.m.FreeFrame(f)
	g := l.m.NewFrame()
	if g != f || len(g.Data) != 0 || cap(g.Data) < 1400 || g.Payload != nil {
		t.Errorf("reused frame: %d of %d bytes, payload %v", len(g.Data), cap(g.Data), g.Payload)
	}
	l.m.FreeFrame(g)
	for _, c := range []struct {
		name string
		bad  func()
	}{
		{"freed twice", func() { l.m.FreeFrame(g) }},
		{"enqueued after being freed", func() { l.m.Enqueue(g) }},
		{"to itself", func() { l.send(0, 0, BE, 100) }},
		{"no such node", func() { l.send(0, 2, BE, 100) }},
		{"no such queue", func() { l.send(0, 1, NumAC, 100) }},
		{"longer than an MSDU", func() { l.send(0, 1, BE, MaxLen+1) }},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "wifi: ") {
					t.Errorf("%s: panic %v", c.name, r)
				}
			}()
			c.bad()
		}()
	}
	if !l.send(0, 1, BE, MaxLen) {
		t.Error("the longest MSDU was refused")
	}
}
