package emulator

import (
	"testing"

	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/des/pace"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A packet's way from the device to the wire does not allocate, nor does what
// the board and the look-ahead make of it. (Behind the queue it is lost: there is
// no device.)
func TestWiresDoNotAllocate(t *testing.T) {
	b, err := board.Create(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	eng := des.New()
	c := &core{cfg: &Config{Seed: 1}, eng: eng, board: b, counts: make([]FrameCounts, 2)}
	if c.loop, err = pace.New(eng, c.nextVisible); err != nil {
		t.Fatal(err)
	}
	defer c.loop.Close()
	c.marks.next, c.changes.next = vtime.Never, vtime.Never
	cfg := pipe.Config{Rate: vtime.GbitPerSecond, Queue: pipe.Queue{Packets: 10}, Loss: pipe.Loss{Good: 1}, LossAfterQueue: true}
	w := &wire{c: c, name: "pipe/0/0", peer: 1, cfg: &cfg}
	if err := w.renew(cfg); err != nil {
		t.Fatal(err)
	}
	wakes := 0
	step := func() {
		for range 3 {
			k := w.pipe.NewPacket()
			k.Len = 1000
			w.send(k)
		}
		for at := c.nextVisible(); at != vtime.Never; at = c.nextVisible() {
			eng.RunUntil(at)
			c.ahead.next(at + 1)
			wakes++
		}
	}
	for range 100 {
		step()
	}
	if wakes != 300 {
		t.Errorf("%d wakes for 300 departures", wakes)
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations per three packets", n)
	}
	if s := b.PipeState(0); s.Arrived != s.Left || s.Queued != 0 || s.Limit != 10 {
		t.Errorf("the board says %+v", s)
	}
}
