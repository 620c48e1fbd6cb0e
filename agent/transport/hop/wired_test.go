package hop

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestWireFull: a wire of any bandwidth-delay product carries data but for the
// round trip that a block's grant takes, and no queue builds up in front of it.
func TestWireFull(t *testing.T) {
	for _, c := range []struct {
		rate  vtime.BitRate
		delay vtime.Duration
		limit int
	}{
		{1, 10, 100}, {10, 20, 100}, {100, 5, 100}, {100, 100, 1000}, {1000, 50, 1000},
		{10, 20, 1}, {10, 20, 3}, {10, 20, 5}, {100, 20, 0},
	} {
		o := wireOptions{rate: c.rate * vtime.MbitPerSecond, delay: c.delay * vtime.Millisecond, limit: c.limit}
		w := wired(t, 2, DefaultConfig(), o)
		k := w.open(0, 1, 1, -1, FlowOptions{})
		w.run(vtime.Time(20*vtime.Second), nil)
		before := w.nodes[1].n.Delivered(k)
		w.run(vtime.Time(60*vtime.Second), nil)
		got := float64(w.nodes[1].n.Delivered(k) - before)
		packets := float64(packets(int(MaxBlockSize), 1400))
		block := o.rate.TxTime(MaxBlockSize+vtime.Bytes(packets)*(HeaderLen+28)) + 2*o.delay
		best := float64(MaxBlockSize) * 40 / block.Seconds()
		x := w.wires[0][0]
		t.Logf("%v, %v, queue of %d: %.2f Mb/s, %.1f %% of the bound, at most %d packets queued", o.rate, o.delay, c.limit, got*8/40e6, 100*got/best, x.most)
		// A partial block at either end of the interval counts one way or the other.
		if slack := float64(MaxBlockSize); got < 0.97*best-slack || got > best+slack {
			t.Errorf("%v, %v, queue of %d: %.0f B in 40 s, want %.0f", o.rate, o.delay, c.limit, got, best)
		}
		if most := 6 + mostSpared; x.most > most {
			t.Errorf("%v, %v, queue of %d: %d packets queued, want no more than %d", o.rate, o.delay, c.limit, x.most, most)
		}
	}
}

// TestTenMegabits is the bound in numbers: a tenth of the rate is the most that
// headers and the grants' round trips take on a usual line.
func TestTenMegabits(t *testing.T) {
	w := wired(t, 2, DefaultConfig(), wireOptions{rate: 10 * vtime.MbitPerSecond, delay: 20 * vtime.Millisecond, limit: 100})
	k := w.open(0, 1, 1, -1, FlowOptions{})
	w.run(vtime.Time(100*vtime.Second), nil)
	if got := float64(w.nodes[1].n.Delivered(k)) * 8 / 100e6; got < 9 {
		t.Errorf("%.2f Mb/s of a line of 10 Mb/s and 20 ms, want 9", got)
	}
}

// lateDriver is a wire whose driver learns of departures only every so often: as
// a process does that has to be woken.
type lateDriver struct {
	queued, departed int
	limit            int
}

func (*lateDriver) Port(NodeID) Port       { return 1 }
func (d *lateDriver) Free(Port, Class) int { return d.limit - d.queued }

// TestAheadFollowsTheDriver: the later the driver learns of departures, the
// further the queue is filled; what is not needed any more is taken back.
func TestAheadFollowsTheDriver(t *testing.T) {
	d := &lateDriver{limit: 100}
	cfg := DefaultConfig()
	n, err := NewNode(cfg, d, direct{}, Sink{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.OpenFlow(0, 1, 1, Continual(1), FlowOptions{}); err != nil {
		t.Fatal(err)
	}
	now := vtime.Time(0)
	answer := func() { // grants the block that is announced, every time anew
		f := n.flows[0]
		for _, b := range f.blocks {
			if b.tx == txRequest || b.tx == txPolling {
				pkt := make([]byte, HeaderLen+(b.count+7)/8)
				seal(pkt, &header{typ: typeBACK, ttl: 1, key: f.key, block: b.id, attempt: b.attempt, count: uint16(b.count)})
				n.Receive(now, 1, pkt)
			}
		}
	}
	// One packet leaves every tick; the driver looks every late ticks.
	run := func(late, looks int) (idle int) {
		for range looks {
			for p, ok := n.Poll(now); ok; p, ok = n.Poll(now) {
				d.queued++
				if p.Port != 1 {
					t.Fatalf("port %d", p.Port)
				}
			}
			for range late {
				now = now.Add(vtime.Millisecond)
				if d.queued == 0 {
					idle++
					continue
				}
				d.queued--
				d.departed++
			}
			n.TxDone(now, 1, Data, d.departed)
			d.departed = 0
			n.Expire(now)
			answer()
		}
		return idle
	}
	ahead := &n.ports[1].ahead
	for _, late := range []int{1, 5, 20, 40} {
		run(late, 200) // finds its number
		if idle := run(late, 500); idle > late*500/50 {
			t.Errorf("told every %d ticks: the line was idle for %d of %d, %d packets ahead", late, idle, late*500, ahead.n)
		}
		t.Logf("told every %d ticks: %d packets ahead", late, ahead.n)
		if ahead.n > max(4*late, 2*cfg.TxopPackets) || ahead.n > mostAhead {
			t.Errorf("told every %d ticks: %d packets ahead", late, ahead.n)
		}
	}
	run(1, 10_000)
	if ahead.n > 2*cfg.TxopPackets {
		t.Errorf("told at once again: still %d packets ahead", ahead.n)
	}
}

// TestCrowdedWire: beside a transport that leaves but one place of the queue free
// a flow goes on; what it would leave to control, the other takes.
func TestCrowdedWire(t *testing.T) {
	w := wired(t, 2, testConfig(), wireOptions{rate: 10 * vtime.MbitPerSecond, delay: 5 * vtime.Millisecond, limit: 40})
	k := w.open(0, 1, 1, -1, FlowOptions{})
	w.run(vtime.Time(vtime.Second), nil)
	x := w.wires[0][0]
	x.spared = 1
	before := w.nodes[1].n.Delivered(k)
	w.run(vtime.Time(21*vtime.Second), nil)
	got := float64(w.nodes[1].n.Delivered(k)-before) * 8 / 20e6
	t.Logf("%.2f of 10 Mb/s beside a transport that fills the queue", got)
	if got < 0.5 {
		t.Errorf("%.2f of 10 Mb/s beside a transport that fills the queue", got)
	}
}

// TestRouteAwayFromAWireThatIsDown: blocks, announcements and answers that wait
// for a wire that has gone down take the radio as soon as the routes do.
func TestRouteAwayFromAWireThatIsDown(t *testing.T) {
	for i := range vtime.Bytes(60) {
		size, limit, at := []vtime.Bytes{12_000, 1_000_000}[i%2], 1+int(i)%13, vtime.Duration(1+i)*vtime.Millisecond
		t.Run(fmt.Sprintf("%v, queue of %d, %v", size, limit, at), func(t *testing.T) {
			w := newWorld(t, 1, 3, DefaultConfig(), worldOptions{})
			o := wireOptions{rate: 10 * vtime.MbitPerSecond, delay: 5 * vtime.Millisecond, limit: limit}
			w.join(0, 1, o)
			w.join(1, 2, o)
			w.link(0, 1, 0)
			w.route()
			k, back := w.open(0, 2, 1, size, FlowOptions{}), w.open(2, 0, 2, size, FlowOptions{})
			w.run(vtime.Time(at), nil)
			w.eachWire(func(x *wire) {
				if x.from+x.to == 1 {
					x.setUp(false)
				}
			})
			w.run(vtime.Time(5*vtime.Second), nil)
			w.eachWire(func(x *wire) { x.avoid = x.from+x.to == 1 })
			w.run(vtime.Time(12*vtime.Second), nil)
			if !w.nodes[2].app.finished[k] || !w.nodes[0].app.finished[back] {
				t.Errorf("not delivered 7 s after the routes moved\n%s", w.summary())
			}
		})
	}
}

// TestOneAheadOnly: however long the wire, one block is announced beside the one
// under way, and one is granted (paper §3.4).
func TestOneAheadOnly(t *testing.T) {
	w := wired(t, 2, testConfig(), wireOptions{rate: 100 * vtime.MbitPerSecond, delay: 200 * vtime.Millisecond, limit: 100})
	k := w.open(0, 1, 1, -1, FlowOptions{})
	most := 0
	w.run(vtime.Time(20*vtime.Second), func() bool {
		s, _ := w.nodes[0].n.FlowStats(k)
		most = max(most, s.InFlight)
		return false
	})
	if most != 2 {
		t.Errorf("%d blocks under way, want the one that is sent and the one that is announced", most)
	}
}
