package wifi

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// witness counts what a Recorder sees.
type witness struct {
	recorder
	landed  []Transmission
	dropped map[Outcome]int
}

func (w *witness) Landed(now vtime.Time, t *Transmission) {
	if t.Fate != FateCut && t.End != now {
		panic("a frame landed at another time than its end")
	}
	w.landed = append(w.landed, *t)
}

func (w *witness) Dropped(_ vtime.Time, _ *Frame, o Outcome) { w.dropped[o]++ }

// What a Recorder sees end is what the counters count, and it changes nothing.
func TestRecorderSeesWhatTheCountersCount(t *testing.T) {
	run := func(w *witness) *lab {
		mac := DefaultMAC(StandardB)
		mac.Retries, mac.Queues[BE].Limit = 1, 10
		l := newLab(t, 5, cell(t, 4), mac)
		if w != nil {
			l.m.SetMonitor(w)
		}
		for i := range 3 {
			l.saturate(i, 3, BE, 1000, 10)
			l.send(i, 3, BE, 1000) // one too many
		}
		l.send(3, Broadcast, BE, 100)
		l.run(2 * sec)
		l.m.SetNodeUp(0, false) // whatever it does
		return l
	}
	w := &witness{dropped: map[Outcome]int{}}
	l := run(w)
	if plain := run(nil); plain.eng.TraceHash() != l.eng.TraceHash() {
		t.Error("the recorder changed what happened")
	}
	var collisions, noise, received, data uint64
	for i := range w.landed {
		x := &w.landed[i]
		if x.Kind != KindData || x.Dst == Broadcast {
			if x.Dst == Broadcast && x.Fate != FateUnknown {
				t.Errorf("a broadcast has the fate %v", x.Fate)
			}
			continue
		}
		data++
		switch x.Fate {
		case FateCollision:
			collisions++
		case FateNoise:
			noise++
		case FateReceived:
			received++
		}
	}
	var sum ACStats
	for i := range 4 {
		s := &l.m.Stats(i).AC[BE]
		sum.Collisions += s.Collisions
		sum.NoiseLoss += s.NoiseLoss
		for o := range sum.Outcomes {
			sum.Outcomes[o] += s.Outcomes[o]
		}
	}
	if collisions != sum.Collisions || noise != sum.NoiseLoss || collisions == 0 || received == 0 {
		t.Errorf("%d collisions, %d lost to noise, %d received of %d frames; counted %d and %d", collisions, noise, received, data, sum.Collisions, sum.NoiseLoss)
	}
	for _, o := range []Outcome{RetryLimit, NodeDown, Overflow} {
		if w.dropped[o] != int(sum.Outcomes[o]) || w.dropped[o] == 0 {
			t.Errorf("%v: %d seen, %d counted", o, w.dropped[o], sum.Outcomes[o])
		}
	}
	begun := map[FrameKind]int{}
	for i := range w.air {
		begun[w.air[i].Kind]++
	}
	for i := range w.landed {
		begun[w.landed[i].Kind]--
	}
	for k, n := range begun {
		if n < 0 || n > 4 {
			t.Errorf("%v: %d frames more began than ended", k, n)
		}
	}
}
