package pipe

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// refiller keeps the queue full: it sends whenever a packet has left.
type refiller struct {
	collector
	p    *Pipe
	n    vtime.Bytes
	sent int
	left []int
}

func (r *refiller) fill() {
	for r.p.Room(r.n) > 0 {
		k := r.p.NewPacket()
		k.Len, k.Payload = r.n, r.sent
		r.sent++
		r.p.Send(k)
	}
}

func (r *refiller) Left(_ vtime.Time, k *Packet) {
	r.left = append(r.left, k.Payload.(int))
	if r.sent < 100 {
		r.fill()
	}
}

// TestLeftAndRoom: a source that refills on departures keeps a limited queue
// full, by packets or by bytes, at a rate or by a trace; each packet leaves
// once, lost or not.
func TestLeftAndRoom(t *testing.T) {
	tr := mustTrace(t, "1\n1\n2\n")
	for name, cfg := range map[string]Config{
		"packets": {Rate: 8 * vtime.MbitPerSecond, Queue: Queue{Packets: 5}},
		"bytes":   {Rate: 8 * vtime.MbitPerSecond, Queue: Queue{Bytes: 5900}},
		"trace":   {Trace: tr, Queue: Queue{Packets: 5}},
		"lossy":   {Rate: 8 * vtime.MbitPerSecond, Queue: Queue{Packets: 5}, Loss: Loss{Good: 0.3}, LossAfterQueue: true},
	} {
		eng, _, _ := build(t, 1, cfg)
		r := &refiller{n: 1000}
		var err error
		if r.p, err = New(eng, 1, "link", cfg, r); err != nil {
			t.Fatal(err)
		}
		r.fill()
		if r.sent != 5 || r.p.Room(1000) != 0 {
			t.Errorf("%s: %d sent, room for %d; want 5 and 0", name, r.sent, r.p.Room(1000))
		}
		for eng.Step() {
			if r.sent < 100 && r.p.Stats().Queued < 5 {
				t.Fatalf("%s: %d waiting, want a full queue", name, r.p.Stats().Queued)
			}
		}
		s := r.p.Stats()
		if len(r.left) != r.sent || int(s.Delivered+s.LostPackets) != r.sent || s.Overflows != 0 || (s.LostPackets > 0) != (name == "lossy") {
			t.Errorf("%s: %d left of %d, %+v", name, len(r.left), r.sent, s)
		}
		for i, seq := range r.left {
			if seq != i {
				t.Fatalf("%s: packet %d left as number %d", name, seq, i)
			}
		}
	}
}

// TestRoomWithoutLimit: nothing waits on a link without a rate, and what is sent
// has left before Send returns; while it is down the queue counts.
func TestRoomWithoutLimit(t *testing.T) {
	eng, _, _ := build(t, 1, Config{})
	r := &refiller{n: 1000, sent: 100}
	var err error
	if r.p, err = New(eng, 1, "link", Config{Queue: Queue{Packets: 2}}, r); err != nil {
		t.Fatal(err)
	}
	send := func() { k := r.p.NewPacket(); k.Len, k.Payload = 1000, len(r.left); r.p.Send(k) }
	send()
	if len(r.left) != 1 || r.p.Room(1000) != Unlimited {
		t.Errorf("%d left, room for %d", len(r.left), r.p.Room(1000))
	}
	r.p.Apply(Change{Up: ptr(false)})
	send()
	if len(r.left) != 1 || r.p.Room(1000) != 1 {
		t.Errorf("down: %d left, room for %d", len(r.left), r.p.Room(1000))
	}
	r.p.Apply(Change{Up: ptr(true)})
	if len(r.left) != 2 || r.p.Room(1000) != Unlimited {
		t.Errorf("up again: %d left, room for %d", len(r.left), r.p.Room(1000))
	}
}

// TestResetStats: two halves add up to the whole, a transmission across the
// edge included.
func TestResetStats(t *testing.T) {
	run := func(reset bool) (a, b Stats) {
		eng, p, _ := build(t, 1, Config{Rate: 8 * vtime.MbitPerSecond, Queue: Queue{Packets: 50}})
		eng.Schedule(0, &source{p: p, eng: eng, n: 1000, gap: vtime.Millisecond / 2, count: 30}, 0)
		eng.RunUntil(vtime.Time(10*vtime.Millisecond + 300*vtime.Microsecond))
		a = p.Stats()
		if reset {
			p.ResetStats()
			if s := p.Stats(); s.BusyTime != 0 || s.Delivered != 0 || s.MaxQueued != s.Queued {
				t.Errorf("after the reset: %+v", s)
			}
		}
		eng.RunUntil(vtime.Time(100 * vtime.Millisecond))
		return a, p.Stats()
	}
	_, whole := run(false)
	a, b := run(true)
	if whole.BusyTime != 30*vtime.Millisecond || a.BusyTime+b.BusyTime != whole.BusyTime || a.BusyTime != 10*vtime.Millisecond+300*vtime.Microsecond {
		t.Errorf("busy %v and %v, together %v", a.BusyTime, b.BusyTime, whole.BusyTime)
	}
	if d := a.QueueIntegral + b.QueueIntegral - whole.QueueIntegral; a.Delivered+b.Delivered != whole.Delivered || d > 1e-12 || d < -1e-12 {
		t.Errorf("%+v and %+v, together %+v", a, b, whole)
	}
}
