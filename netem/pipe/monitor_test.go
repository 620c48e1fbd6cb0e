package pipe

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// steps counts what a monitor sees and checks that each packet's way is one
// that a packet can take.
type steps struct {
	t     *testing.T
	n     [Arrived + 1]uint64
	where map[int]Step
}

func (s *steps) Passed(_ vtime.Time, p *Packet, st Step) {
	s.n[st]++
	id := p.Payload.(int)
	was, known := s.where[id]
	first := st == Entered || st == LostAtEntry || st == QueueFull
	if first == known || known && was != Entered && !p.Duplicate && !(was == Arrived && st == Arrived) {
		s.t.Fatalf("packet %d: %v after %v", id, st, was)
	}
	s.where[id] = st
}

// A monitor sees exactly what the counters count, and changes nothing.
func TestMonitorSeesWhatTheCountersCount(t *testing.T) {
	for name, cfg := range map[string]Config{
		"loss at entry":   {Rate: vtime.MbitPerSecond, Queue: Queue{Packets: 5}, Loss: Loss{Good: 0.1}, Duplicate: 0.05, Delay: vtime.Millisecond},
		"loss on wire":    {Rate: vtime.MbitPerSecond, Queue: Queue{Packets: 5}, Loss: Loss{Good: 0.1}, LossAfterQueue: true},
		"no queue at all": {Delay: vtime.Millisecond, Loss: Loss{Good: 0.1}},
	} {
		plain, p, _ := build(t, 7, cfg)
		feed(plain, p, 1000, 6*vtime.Millisecond, 2000)
		eng, p, c := build(t, 7, cfg)
		m := &steps{t: t, where: map[int]Step{}}
		p.SetMonitor(m)
		feed(eng, p, 1000, 6*vtime.Millisecond, 2000)
		if eng.TraceHash() != plain.TraceHash() {
			t.Errorf("%s: the monitor changed what happened", name)
		}
		s := p.Stats()
		if m.n[Entered]+m.n[LostAtEntry]+m.n[QueueFull] != s.Entered || m.n[Arrived] != s.Delivered ||
			m.n[LostAtEntry]+m.n[LostOnWire] != s.LostPackets || m.n[QueueFull] != s.Overflows {
			t.Errorf("%s: seen %v, counted %+v", name, m.n, s)
		}
		if cfg.LossAfterQueue != (m.n[LostOnWire] > 0) || s.LostPackets == 0 || len(c.at) != int(s.Delivered) {
			t.Errorf("%s: seen %v, counted %+v", name, m.n, s)
		}
	}
}
