package wifi

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

func (l *lab) link(a, b int, up bool) {
	l.t.Helper()
	if err := l.m.SetLinkUp(a, b, up); err != nil {
		l.t.Fatal(err)
	}
}

// TestADownLinkIsNone: with a link down from the beginning every transmission, every
// fate and every delivery is that of a channel on which the two do not notice each
// other.
func TestADownLinkIsNone(t *testing.T) {
	shadowed := DefaultRadio()
	shadowed.Shadowing = 6
	matrix := make([][]float64, 12)
	s := des.NewStream(3, "matrix")
	for i := range matrix {
		matrix[i] = make([]float64, len(matrix))
		for j := range matrix {
			matrix[i][j] = float64(s.IntN(3)) / 2
		}
	}
	listed, err := NewMatrixChannel(matrix, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mac := DefaultMAC(StandardB)
	mac.RTSThreshold = 900
	mac.Queues[BK].TXOP, mac.Queues[BK].Ack = 8160*us, AckNone
	disk := DiskRadio(60, 120)
	for name, ch := range map[string]*Channel{
		"log-distance": mustChannel(t, 5, shadowed, mac, scatter(12, 150)),
		"disk":         mustChannel(t, 5, disk, mac, scatter(12, 150)),
		"matrix":       listed,
	} {
		pairs := [][2]int{{0, 1}, {4, 7}, {2, 11}, {5, 6}, {3, 8}}
		without := *ch
		without.links = slices.Clone(ch.links)
		removed := 0
		for _, p := range pairs {
			for _, end := range [][2]int{p, {p[1], p[0]}} {
				without.links[end[0]] = slices.DeleteFunc(slices.Clone(without.links[end[0]]), func(l link) bool { return int(l.to) == end[1] })
			}
		}
		for i := range ch.links {
			removed += len(ch.links[i]) - len(without.links[i])
		}
		if removed < 4 {
			t.Fatalf("%s: only %d links to remove", name, removed)
		}
		run := func(ch *Channel, cut bool) (string, [][]uint64) {
			l := newLab(t, 5, ch, mac)
			rec := &landings{}
			l.m.SetMonitor(rec)
			for _, p := range pairs {
				if cut {
					l.link(p[0], p[1], false)
					l.link(p[1], p[0], false) // is down already
				}
			}
			for i := range 12 {
				l.saturate(i, (i+1+i%3)%12, AC(i%NumAC), 1000, 3)
			}
			l.saturate(0, Broadcast, VO, 100, 1)
			l.run(2 * sec)
			return rec.String(), l.delivered
		}
		want, delivered := run(&without, false)
		got, with := run(ch, true)
		if n := strings.Count(want, "\n"); n < 500 {
			t.Fatalf("%s: only %d transmissions", name, n)
		}
		if got != want {
			t.Errorf("%s: a channel without the links gives another trace than links that are down", name)
		}
		for i := range with {
			if !slices.Equal(with[i], delivered[i]) {
				t.Errorf("%s: node %d delivered %v, without the links %v", name, i, with[i], delivered[i])
			}
		}
		if whole, _ := run(ch, false); whole == want {
			t.Errorf("%s: the links are of no matter", name)
		}
	}
}

// landings records every transmission with its fate.
type landings struct{ recorder }

func (r *landings) Landed(_ vtime.Time, t *Transmission) { r.air = append(r.air, *t) }
func (r *landings) Dropped(vtime.Time, *Frame, Outcome)  {}

// TestALinkThatGoesDownInMidFrame: whoever the link leads to loses the frame, in
// whatever part of it, and takes it for a wrong FCS; others receive it.
func TestALinkThatGoesDownInMidFrame(t *testing.T) {
	for when := 401 * us; when < 1700*us; when += 50 * us {
		l := newLab(t, 3, cell(t, 3), fixedCW(nil))
		rec := &landings{}
		l.m.SetMonitor(rec)
		l.send(0, Broadcast, BE, 1000) // on the air from 0 on for 4.3 ms at the basic rate
		l.at(when, func() { l.link(0, 1, false) })
		l.run(2 * ms)
		s := l.m.Stats(1)
		if s.RxErrors != 1 {
			t.Fatalf("down at %v: node 1 has %d receptions in error, want 1", when, s.RxErrors)
		}
		if r := &l.m.receivers[1]; r.energy != 0 || r.sensed != 0 || r.busy || r.locked() {
			t.Fatalf("down at %v: node 1 still hears: energy %d, sensed %d, busy %v", when, r.energy, r.sensed, r.busy)
		}
		l.run(10 * ms)
		if l.delivered[0][1] != 0 || l.delivered[0][2] != 1 {
			t.Fatalf("down at %v: delivered %v", when, l.delivered[0])
		}
	}
	// A unicast frame has the fate of one that is lost to noise, and is sent again
	// up to the retry limit.
	l := newLab(t, 3, cell(t, 3), fixedCW(nil))
	rec := &landings{}
	l.m.SetMonitor(rec)
	l.send(0, 1, BE, 1000)
	l.at(500*us, func() { l.link(1, 0, false) })
	l.run(200 * ms)
	if l.outcomes[0][RetryLimit] != 1 || l.m.Stats(0).AC[BE].Collisions != 0 || l.m.Stats(0).AC[BE].NoiseLoss != uint64(l.m.stations[0].mac.Retries)+1 {
		t.Errorf("outcomes %v, %+v", l.outcomes[0], l.m.Stats(0).AC[BE])
	}
	for _, x := range rec.air {
		if x.Src == 1 {
			t.Errorf("node 1 transmitted: %+v", x)
		}
	}
	// The other way round: the receiver answers, and the answer is lost.
	l = newLab(t, 3, cell(t, 3), fixedCW(nil))
	l.send(0, 1, BE, 1000)
	l.onDeliver = func(vtime.Time, int, *Frame) { l.link(0, 1, false) }
	l.run(200 * ms)
	if l.delivered[0][1] != 1 || l.outcomes[0][RetryLimit] != 1 || l.m.Stats(0).AC[BE].AckLost != 1 {
		t.Errorf("delivered %d, outcomes %v, %d acknowledgements lost", l.delivered[0][1], l.outcomes[0], l.m.Stats(0).AC[BE].AckLost)
	}
}

// TestALinkThatComesUpInMidFrame: the frame is not received, but it is sensed and it
// interferes until its end; the next one is received.
func TestALinkThatComesUpInMidFrame(t *testing.T) {
	l := newLab(t, 3, cell(t, 4), fixedCW(nil))
	rec := &recorder{}
	l.m.SetMonitor(rec)
	l.link(0, 1, false)
	l.link(0, 3, false) // node 3 sends to node 1 meanwhile
	l.send(0, 2, BE, 1400)
	l.at(300*us, func() { l.send(3, 1, BE, 100) })
	l.at(350*us, func() {
		l.link(0, 1, true)
		l.link(3, 0, true)
		l.send(1, 2, VO, 100) // has to wait for the end of the frame that it now senses
	})
	l.run(30 * ms)
	if l.delivered[3][1] != 1 || l.m.Stats(3).AC[BE].Collisions == 0 {
		t.Errorf("the frame of node 3: delivered %d, collisions %d", l.delivered[3][1], l.m.Stats(3).AC[BE].Collisions)
	}
	end := rec.air[0].End
	for _, x := range rec.air[1:] {
		if x.Src == 1 && x.Start < end {
			t.Errorf("node 1 transmits at %v beside a frame that lasts until %v", x.Start, end)
		}
	}
	if l.delivered[0][1] != 0 {
		t.Error("a frame whose preamble was missed was received")
	}
	l.send(0, 1, BE, 1000)
	l.run(30 * ms)
	if l.delivered[0][1] != 1 {
		t.Errorf("after the link came up: %v", l.delivered[0])
	}
	for i := range l.m.receivers {
		if r := &l.m.receivers[i]; r.energy != 0 || r.sensed != 0 || r.busy {
			t.Errorf("node %d: energy %d, sensed %d, busy %v on an idle channel", i, r.energy, r.sensed, r.busy)
		}
	}
}

// TestLinksAtAnyMoment switches a link at many moments of exchanges, and expects a
// working medium afterwards.
func TestLinksAtAnyMoment(t *testing.T) {
	for when := vtime.Duration(0); when < 2500*us; when += 29 * us {
		for _, pair := range [][2]int{{0, 1}, {1, 2}, {2, 0}} {
			mac := fixedCW(func(m *MAC) { m.RTSThreshold = 900; m.Queues[BE].TXOP = 4 * ms })
			l := newLab(t, 1, cell(t, 3), mac)
			for range 3 {
				l.send(0, 1, BE, 1000)
				l.send(2, 1, VO, 300)
			}
			l.at(when, func() { l.link(pair[0], pair[1], false) })
			l.at(when+90*us, func() { l.link(pair[0], pair[1], true) })
			l.run(300 * ms)
			l.m.NextVisible()
			for i := range l.m.stations {
				if s := &l.m.stations[i]; s.exch != exchangeNone || s.energy != 0 || s.sensed != 0 || s.busy || s.locked() || len(l.m.active) != 0 {
					t.Fatalf("link %v at %v: station %d in state %d, energy %d, busy %v, %d active", pair, when, i, s.exch, s.energy, s.busy, len(l.m.active))
				}
			}
			before := [2]uint64{l.delivered[0][1], l.delivered[2][0]}
			l.send(0, 1, BE, 1000)
			l.run(100 * ms)
			l.send(2, 0, BE, 1000)
			l.run(100 * ms)
			if l.delivered[0][1] != before[0]+1 || l.delivered[2][0] != before[1]+1 {
				t.Fatalf("link %v at %v: afterwards %v", pair, when, l.delivered)
			}
		}
	}
}

// TestFlappingIsReproducible: a busy mesh whose links come and go has one trace, no
// Deliver or Done before what NextVisible said, and all power sums are 0 in the end.
func TestFlappingIsReproducible(t *testing.T) {
	run := func(std Standard) uint64 {
		l := meshLab(t, 1, std, nil)
		s := des.NewStream(1, "flaps")
		down := map[[2]int]bool{}
		var flap func()
		flap = func() {
			l.bound = 0
			pair := [2]int{s.IntN(20), s.IntN(19)}
			if pair[0] == pair[1] {
				pair[1] = 19
			}
			slices.Sort(pair[:])
			down[pair] = !down[pair]
			l.link(pair[0], pair[1], !down[pair])
			l.eng.Schedule(l.eng.Now().Add(vtime.Duration(s.Exp()*2e6)), at(func(vtime.Time) { flap() }), 2)
		}
		flap()
		check := func(now vtime.Time, what string) {
			if now < l.bound {
				t.Fatalf("%v: %s at %v, bound %v", std, what, now, l.bound)
			}
		}
		l.onDeliver = func(now vtime.Time, _ int, _ *Frame) { check(now, "Deliver") }
		l.onDone = func(now vtime.Time, _ *Frame, _ Outcome) { check(now, "Done") }
		for l.eng.Now() < vtime.Time(3*sec) {
			l.bound = l.m.NextVisible()
			l.eng.RunUntil(vtime.Min(l.bound, l.eng.Now().Add(ms)))
		}
		hash := l.eng.TraceHash()
		for i := range 20 {
			l.m.SetNodeUp(i, false)
		}
		for i := range l.m.receivers {
			if r := &l.m.receivers[i]; r.energy != 0 || r.sensed != 0 || r.busy || r.locked() {
				t.Fatalf("%v: node %d with everybody off: energy %d, sensed %d, busy %v", std, i, r.energy, r.sensed, r.busy)
			}
		}
		return hash
	}
	for std, want := range map[Standard]uint64{StandardB: 0xf01ce89e5db83c9, StandardG: 0x1f45d206f4a6d4bc} {
		if got, again := run(std), run(std); got != again || got != want {
			t.Errorf("%v: trace hashes %#x and %#x, want %#x", std, got, again, want)
		}
	}
}

func TestSetLinkUpErrors(t *testing.T) {
	l := newLab(t, 1, mustChannel(t, 1, DiskRadio(10, 10), DefaultMAC(StandardB), []Position{{}, {X: 5}, {X: 100}}), DefaultMAC(StandardB))
	for _, p := range [][2]int{{0, 0}, {-1, 0}, {0, 3}} {
		if err := l.m.SetLinkUp(p[0], p[1], false); err == nil || !strings.Contains(err.Error(), "two of the nodes 0…2") {
			t.Errorf("%v: %v", p, err)
		}
	}
	l.link(0, 2, false) // they do not notice each other
	l.link(0, 1, true)  // it is up
	l.send(0, 1, BE, 100)
	l.run(10 * ms)
	if l.delivered[0][1] != 1 {
		t.Errorf("delivered %v", l.delivered)
	}
}
