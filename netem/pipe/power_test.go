package pipe

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestSenderOff: what waits is lost, what has left arrives, what is sent meanwhile is
// lost, and a source that refills on departures finds no room.
func TestSenderOff(t *testing.T) {
	for name, cfg := range map[string]Config{
		"rate":  {Rate: 8 * vtime.MbitPerSecond, Queue: Queue{Packets: 5}, Delay: 10 * vtime.Millisecond},
		"trace": {Trace: mustTrace(t, "1\n2\n3\n"), Queue: Queue{Packets: 5}, Delay: 10 * vtime.Millisecond},
	} {
		eng, _, _ := build(t, 1, cfg)
		r := &refiller{n: 1000}
		var err error
		if r.p, err = New(eng, 1, "link", cfg, r); err != nil {
			t.Fatal(err)
		}
		r.fill()
		at := vtime.Time(3500 * vtime.Microsecond) // 1000 bytes take 1 ms
		eng.RunUntil(at)
		eng.AdvanceTo(at)
		gone := len(r.left)
		if gone == 0 || r.p.Stats().Delivered != 0 {
			t.Fatalf("%s: %d have left, %+v", name, gone, r.p.Stats())
		}
		r.p.SetSender(false)
		r.p.SetSender(false)
		s := r.p.Stats()
		if s.Queued != 0 || s.QueuedBytes != 0 || s.SwitchedOff != 5 || len(r.left) != gone+5 || r.p.Up() || r.p.Room(1000) != 0 {
			t.Errorf("%s: %+v, %d left, up %v, room for %d", name, s, len(r.left), r.p.Up(), r.p.Room(1000))
		}
		k := r.p.NewPacket()
		k.Len, k.Payload = 1000, 99
		if r.p.Send(k) {
			t.Errorf("%s: a sender that is off sends", name)
		}
		eng.RunUntil(vtime.Time(vtime.Second))
		eng.AdvanceTo(vtime.Time(vtime.Second))
		if s := r.p.Stats(); s.Delivered != uint64(gone) || s.SwitchedOff != 6 || s.LostPackets+s.Overflows != 0 || eng.Step() {
			t.Errorf("%s: %+v, want %d delivered", name, s, gone)
		}
		r.p.SetSender(true)
		before := r.sent
		r.fill()
		for eng.Step() {
		}
		if s := r.p.Stats(); s.Delivered != uint64(gone+r.sent-before) || r.sent != 100 {
			t.Errorf("%s: after the return: %+v, sent %d", name, s, r.sent)
		}
	}
}

// TestReceiverOff: the link is down and keeps its queue, what is under way is lost
// unless the receiver is back when it arrives; a schedule that takes the link down
// holds beside it.
func TestReceiverOff(t *testing.T) {
	up, down := true, false
	cfg := Config{Rate: 8 * vtime.MbitPerSecond, Queue: Queue{Packets: 20}, Delay: 10 * vtime.Millisecond,
		Schedule: []Change{{At: vtime.Time(40 * vtime.Millisecond), Up: &down}, {At: vtime.Time(80 * vtime.Millisecond), Up: &up}}}
	eng, p, c := build(t, 1, cfg)
	for i := range 10 {
		k := p.NewPacket()
		k.Len, k.Payload = 1000, i
		p.Send(k)
	}
	to := func(ms int) {
		at := vtime.Time(ms) * vtime.Time(vtime.Millisecond)
		eng.RunUntil(at)
		eng.AdvanceTo(at)
	}
	to(4) // four have left: they arrive at 11, 12, 13 and 14 ms
	p.SetReceiver(false)
	to(12)
	if s := p.Stats(); s.Queued != 6 || s.SwitchedOff != 2 || p.Up() {
		t.Errorf("off: %+v, up %v", s, p.Up())
	}
	p.SetReceiver(true)
	p.SetReceiver(true)
	to(14)
	if len(c.at) != 2 || !p.Up() {
		t.Errorf("back at 12 ms: %d have arrived, up %v", len(c.at), p.Up())
	}
	p.SetReceiver(false)
	to(50)
	p.SetReceiver(true)
	if p.Up() {
		t.Error("up in spite of the schedule")
	}
	to(79)
	n := len(c.at)
	to(200)
	if s := p.Stats(); s.Delivered+s.SwitchedOff != 10 || len(c.at) <= n || s.Queued != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestAPipeWithoutLimitWhoseReceiverIsOff keeps what it is given, as one does that is
// down.
func TestAPipeWithoutLimitWhoseReceiverIsOff(t *testing.T) {
	eng, p, c := build(t, 1, Config{Queue: Queue{Packets: 2}})
	p.SetReceiver(false)
	for i := range 3 {
		k := p.NewPacket()
		k.Len, k.Payload = 1000, i
		p.Send(k)
	}
	if s := p.Stats(); s.Queued != 2 || s.Overflows != 1 {
		t.Errorf("%+v", s)
	}
	p.SetReceiver(true)
	for eng.Step() {
	}
	if len(c.at) != 2 {
		t.Errorf("%d arrived", len(c.at))
	}
}
