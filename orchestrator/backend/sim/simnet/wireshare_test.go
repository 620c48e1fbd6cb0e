package simnet

import (
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TestEveryDatagramOverAPipeIsAccountedFor, in a link's queue that is too short
// for two flows at a constant rate.
func TestEveryDatagramOverAPipeIsAccountedFor(t *testing.T) {
	short := pipe.Config{Rate: mbit, Delay: 3 * msec, Queue: pipe.Queue{Bytes: 5000}}
	a, b := udp(0, 1, 1000), udp(0, 1, 300)
	a.Options.Rate, b.Options.Rate = 800*vtime.KbitPerSecond, 700*vtime.KbitPerSecond
	l := newLab(t, nil, testMAC(), both(wired(0, 2, []Pipe{wire(0, 1, short)}), func(c *Config) { c.Warmup = 0 }), a, b)
	l.finish()
	p := l.net.PipeStats()[0][0]
	sent, arrived := l.src(0).DatagramsSent+l.src(1).DatagramsSent, l.dst(0).Datagrams+l.dst(1).Datagrams
	flight := int64(p.Entered-p.Overflows-p.Delivered) - int64(p.Queued)
	if sent != int64(p.Entered) || arrived != int64(p.Delivered) || p.Overflows == 0 || flight < 0 || flight > 2 {
		t.Errorf("%d sent, %d arrived, %d in flight, %+v", sent, arrived, flight, p)
	}
}

// TestSaturatingFlowsShareAPipe: they take turns, whatever the lengths of their
// datagrams and whatever limits the queue; beside TCP and Hop nobody starves.
func TestSaturatingFlowsShareAPipe(t *testing.T) {
	for _, q := range []pipe.Queue{{Packets: 20}, {Bytes: 20_000}} {
		c := line()
		c.Queue = q
		l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, c)}), udp(0, 1, 1400), udp(0, 1, 200))
		l.finish()
		if a, b := l.dst(0).Datagrams, l.dst(1).Datagrams; a-b > 100 || b-a > 100 || a < 5000 {
			t.Errorf("%+v: %d and %d datagrams", q, a, b)
		}
	}
	hop := proto.Flow{Transport: "hop", Src: 0, Dst: 1, Options: proto.FlowOptions{BlockSize: 64 * vtime.KiB}}
	l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, line())}), tcpFlow(0, 1), hop)
	l.finish()
	// Hop keeps a few packets in the queue, TCP all of it.
	if a, b := l.goodput(0), l.goodput(1); a < 1 || b < 0.2 || a+b < 9 {
		t.Errorf("TCP %.2f and Hop %.2f Mb/s beside each other", a, b)
	}
}

// TestShortQueuesDrain: a source cannot fill a place in no time. With one place the
// link idles until the source looks again; of ten opportunities at one moment five
// find a packet in a queue of five.
func TestShortQueuesDrain(t *testing.T) {
	run := func(c pipe.Config) float64 {
		l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, c)}), udp(0, 1, 1400))
		l.finish()
		return l.goodput(0)
	}
	one := line()
	one.Queue.Packets = 1
	if got := run(one); got < 4.5 || got > 7.5 {
		t.Errorf("a queue of one packet: %.2f Mb/s of 10", got)
	}
	one.Queue.Packets = 4
	near(t, "a queue of four packets", run(one), 10*1400.0/1428, 0.001)
	bursts, err := pipe.NewTrace([]int64{10, 10, 10, 10, 10, 10, 10, 10, 10, 10})
	if err != nil {
		t.Fatal(err)
	}
	burst := pipe.Config{Trace: bursts, Queue: pipe.Queue{Packets: 5}}
	near(t, "five of each ten opportunities", run(burst), 5*1400*8/0.010/1e6, 0.001)
	// Hop knows of departures a little later, too, and leaves a place to control.
	hop := proto.Flow{Transport: "hop", Src: 0, Dst: 1, Options: proto.FlowOptions{BlockSize: vtime.MiB}}
	l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, burst)}), hop)
	l.finish()
	if got := l.goodput(0); got < 4 || got > 5.6 {
		t.Errorf("Hop over five of each ten opportunities: %.2f Mb/s", got)
	}
}

// TestNobodyStarvesHop: beside a source that keeps the queue full, and TCP, Hop has
// the share that its few packets in the queue give it, whoever came first.
func TestNobodyStarvesHop(t *testing.T) {
	c := pipe.Config{Rate: 5 * mbit, Delay: 20 * msec, Queue: pipe.Queue{Packets: 40}}
	hop := proto.Flow{Transport: "hop", Src: 0, Dst: 1, Options: proto.FlowOptions{BlockSize: vtime.MiB}}
	for seed := range uint64(6) {
		l := newLab(t, nil, testMAC(), both(wired(0, 2, []Pipe{wire(0, 1, c)}), func(c *Config) { c.Seed = seed }), udp(0, 1, 1400), tcpFlow(0, 1), hop)
		l.finish()
		if got := l.goodput(2); got < 0.4 || got > 2 {
			t.Errorf("seed %d: Hop %.3f Mb/s beside %.3f of UDP", seed, got, l.goodput(0))
		}
	}
}

// TestForwardedDatagramsFindRoom: a router's own saturating source leaves places
// to what the router forwards; and two constant rates that together are more than
// the link carries share it, instead of one meeting every full queue.
func TestForwardedDatagramsFindRoom(t *testing.T) {
	fast, slow := line(), line()
	fast.Rate, slow.Rate, slow.Queue.Packets = 100*mbit, 5*mbit, 40
	run := func(rate vtime.BitRate) (forwarded, own float64) {
		a, b := udp(0, 2, 1400), udp(1, 2, 1400)
		a.Path = []int{0, 1, 2}
		a.Options.Rate, b.Options.Rate = rate, rate
		l := newLab(t, nil, testMAC(), wired(0, 3, []Pipe{wire(0, 1, fast), wire(1, 2, slow)}), a, b)
		l.finish()
		return l.goodput(0), l.goodput(1)
	}
	// An arrival every 0.11 ms finds the place that was freed before the source does.
	if f, o := run(0); f < 4 || o < 0.02 || f+o < 4.85 {
		t.Errorf("saturating: %.3f Mb/s forwarded, %.3f of the router's own", f, o)
	}
	f, o := run(4 * mbit)
	near(t, "4 Mb/s each over 5: forwarded", f, 2.5*1400/1428, 0.1)
	near(t, "4 Mb/s each over 5: the router's own", o, 2.5*1400/1428, 0.1)
	// The same on the radio, where the router's queue is shared as well.
	relayed := udp(0, 2, 1400)
	relayed.Path = []int{0, 1, 2}
	relayed.Options.Rate = 300 * vtime.KbitPerSecond
	l := newLab(t, positions(0, 200, 400), testMAC(), nil, relayed, udp(1, 2, 1400))
	l.finish()
	if got := l.goodput(0); got < 0.01 {
		t.Errorf("%.3f Mb/s forwarded over the radio beside the router's own source", got)
	}
}

// TestConnectionsDrawApart: each has a seed of its own, and those of a flow do
// not depend on other flows.
func TestConnectionsDrawApart(t *testing.T) {
	relayed := proto.Flow{Transport: "hop-by-hop-tcp/bbr", Src: 0, Dst: 2, Path: []int{0, 1, 2}}
	a := newLab(t, positions(0, 100, 200), testMAC(), nil, relayed, tcpFlow(0, 1))
	b := newLab(t, positions(0, 100, 200), testMAC(), nil, relayed)
	seen := map[uint64]bool{}
	for _, f := range a.net.flows {
		for _, k := range f.(*stream).links {
			seen[k.maker.Seed], seen[k.listener.Seed] = true, true
		}
	}
	if len(seen) != 6 || seen[0] {
		t.Errorf("seeds %v", seen)
	}
	for i, k := range b.net.flows[0].(*stream).links {
		if k.maker.Seed != a.net.flows[0].(*stream).links[i].maker.Seed {
			t.Errorf("connection %d: another flow changed its seed", i)
		}
	}
}
