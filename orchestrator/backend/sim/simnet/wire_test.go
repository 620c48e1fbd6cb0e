package simnet

import (
	"math"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

const (
	mbit = vtime.MbitPerSecond
	msec = vtime.Millisecond
)

// line is 10 Mb/s, 20 ms one way, with a queue of 100 packets.
func line() pipe.Config {
	return pipe.Config{Rate: 10 * mbit, Delay: 20 * msec, Queue: pipe.Queue{Packets: 100}}
}

// near fails the test unless got is want within the tolerance.
func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.Abs(got/want-1) > tol {
		t.Errorf("%s: %g, want %g within %g %%", what, got, want, 100*tol)
	}
}

// TestPipeArithmetic: over a wired link alone, TCP reaches the rate less the
// headers (52 of 1500 B), UDP and Hop theirs, and the least round-trip time is
// that of a SYN and a SYN-ACK (60 B each: 48 µs at 10 Mb/s) and twice the delay.
func TestPipeArithmetic(t *testing.T) {
	only := func(f proto.Flow) *lab {
		l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, line())}), f)
		l.finish()
		return l
	}
	for _, cc := range []string{"cubic", "reno"} {
		f := tcpFlow(0, 1)
		f.Transport = "tcp/" + cc
		l := only(f)
		near(t, cc, l.goodput(0), 10*1448.0/1500, 0.002)
		if rtt := l.src(0).Last.MinRTT; rtt != 2*(20*msec+48*vtime.Microsecond) {
			t.Errorf("%s: least round-trip time %v", cc, rtt)
		}
	}
	l := only(udp(0, 1, 1472))
	near(t, "udp", l.goodput(0), 10*1472.0/1500, 0.0005)
	s := l.net.PipeStats()[0][0]
	near(t, "udp: time that the link was busy", s.BusyTime.Seconds(), 10, 1e-9)
	near(t, "udp: packets in the queue", s.QueueIntegral/10, 100, 0.01)
	if s.Overflows != 0 || s.MaxQueued != 100 || l.net.PipeStats()[0][1].Entered != 0 {
		t.Errorf("udp: %+v", l.net.PipeStats())
	}
	h := only(proto.Flow{Transport: "hop", Src: 0, Dst: 1, Options: proto.FlowOptions{BlockSize: vtime.MiB}})
	p := float64(h.cfg.Hop.Payload)
	// Two of ten blocks' BSYN–BACK round trips are not overlapped at most.
	if got, most := h.goodput(0), 10*p/(p+28+40); got > most || got < 0.9*most {
		t.Errorf("hop: %.3f Mb/s, want 90 to 100 %% of %.3f", got, most)
	}
	if r := h.dst(0); r.Corrupt != 0 || h.net.hop.Refused() != 0 {
		t.Errorf("hop: %+v, %d refused", r, h.net.hop.Refused())
	}
}

// TestWindowsLimitTheRate: a receive window of W segments and a congestion window
// capped at N carry one of them per round trip; not_sent_low_water bounds what
// waits at the sender.
func TestWindowsLimitTheRate(t *testing.T) {
	run := func(o proto.FlowOptions) (*lab, float64) {
		f := tcpFlow(0, 1)
		f.Options = o
		l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, pipe.Config{Delay: 20 * msec})}), f)
		l.finish()
		return l, l.goodput(0)
	}
	_, got := run(proto.FlowOptions{CwndCap: 10})
	near(t, "cwnd-cap 10", got, 10*1448*8/0.040/1e6, 0.01)
	_, got = run(proto.FlowOptions{ReceiveWindow: 20})
	// The part of a segment at the window's edge, which leaves as well, costs some.
	near(t, "receive-window 20", got, 20*1460*8/0.040/1e6, 0.06)
	f := tcpFlow(0, 1)
	f.Options.NotSentLow = 20 * vtime.KB
	l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, line())}), f)
	var most vtime.Bytes
	for now := sec; now < l.cfg.End; now += sec / 10 {
		l.runTo(now)
		l.net.Observe(now, func(_ int, s *proto.Sample) { most = max(most, s.NotSent) })
	}
	l.finish()
	near(t, "not-sent low water", l.goodput(0), 10*1448.0/1500, 0.002)
	if most == 0 || most > f.Options.NotSentLow+64*vtime.KiB {
		t.Errorf("%v wait unsent, the mark is %v", most, f.Options.NotSentLow)
	}
}

// accessPoint is a station (0) and an access point (1) 100 m apart, and a server
// (2) behind a wired link of the access point.
func accessPoint(t testing.TB, bridge bool, c pipe.Config, edit func(*Config), flows ...proto.Flow) *lab {
	var bridges [][3]int
	for i := range flows {
		flows[i].Path = []int{flows[i].Src, 1, flows[i].Dst}
	}
	if bridge {
		bridges = [][3]int{{0, 2, 1}, {2, 0, 1}}
		for i := range flows {
			flows[i].Path = []int{flows[i].Src, flows[i].Dst}
		}
	}
	e := wired(2, 3, []Pipe{wire(1, 2, c)}, bridges...)
	if edit != nil {
		e = both(e, edit)
	}
	return newLab(t, positions(0, 100), testMAC(), e, flows...)
}

// TestAccessPointRoutesOrBridges: the bottleneck is the radio or the wire, both
// ways, with every transport; a bridge leaves the hop limit alone.
func TestAccessPointRoutesOrBridges(t *testing.T) {
	slow, fast := line(), line()
	slow.Rate, fast.Rate = 2*mbit, 100*mbit
	for _, bridge := range []bool{false, true} {
		for _, name := range []string{"tcp/cubic", "udp", "hop", "hop-by-hop-tcp/cubic"} {
			for _, down := range []bool{false, true} {
				f := proto.Flow{Transport: name, Src: 0, Dst: 2}
				if down {
					f.Src, f.Dst = 2, 0
				}
				if name == "hop" {
					f.Options.BlockSize = 256 * vtime.KiB
				}
				l := accessPoint(t, bridge, slow, nil, f)
				l.finish()
				least, most := 1.8, 2.0
				if name == "hop" {
					least = 1.3 // a block is announced and acknowledged on each hop
				}
				if got := l.goodput(0); got < least || got > most {
					t.Errorf("%s, bridge %v, down %v: %.3f Mb/s over 2 Mb/s", name, bridge, down, got)
				}
				quick := accessPoint(t, bridge, fast, nil, f)
				quick.finish()
				// One station and its access point at 11 Mb/s; Hop bursts without ACKs.
				least, most = 4.0, 6.2
				if name == "hop" {
					least, most = 5, 8.5
				}
				if name == "hop" && bridge && down {
					least = 2.5 // the bridge's queue drops what the wire brings
				}
				if got := quick.goodput(0); got < least || got > most {
					t.Errorf("%s, bridge %v, down %v: %.3f Mb/s over the radio", name, bridge, down, got)
				}
				for _, l := range []*lab{l, quick} {
					if n := l.counter(1, "Ip.ForwDatagrams"); (n > 0) != (!bridge && (name == "tcp/cubic" || name == "udp")) {
						t.Errorf("%s, bridge %v: the access point routed %d packets", name, bridge, n)
					}
					if r := l.dst(0); r.Error != nil || r.Corrupt != 0 {
						t.Errorf("%s, bridge %v, down %v: %+v", name, bridge, down, r)
					}
				}
			}
		}
	}
}

// TestBadLinesLoseNothing: over a link that loses, reorders, duplicates and
// jitters, what promises to arrive whole does, once; and datagrams count once.
func TestBadLinesLoseNothing(t *testing.T) {
	bad := line()
	bad.Jitter = pipe.Jitter{Distribution: pipe.Normal, Spread: 2 * msec, Overtake: true}
	bad.Loss = pipe.Loss{Good: 0.001, Bad: 0.3, ToBad: 0.01, ToGood: 0.2}
	bad.Reorder = pipe.Reorder{Share: 0.02, Extra: 5 * msec}
	bad.Duplicate = 0.03
	sized := func(name string) proto.Flow {
		return proto.Flow{Transport: name, Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: 400_001}}
	}
	for _, bridge := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			bad.LossAfterQueue = after
			cbr := udp(0, 2, 1000)
			cbr.Options.Rate = 400 * vtime.KbitPerSecond
			hop := sized("hop")
			hop.Options.BlockSize = 100 * vtime.KB
			l := accessPoint(t, bridge, bad, func(c *Config) { c.Warmup, c.End = 0, 60*sec }, sized("tcp/cubic"), hop, cbr)
			l.finish()
			for f := range 2 {
				if d := l.dst(f); !d.Finished || d.Bytes != 400_001 || d.Corrupt != 0 || d.Error != nil {
					t.Errorf("bridge %v, after %v: flow %d: %+v", bridge, after, f, d)
				}
			}
			s, d := l.src(2), l.dst(2)
			if d.Datagrams >= s.DatagramsSent || d.Duplicates == 0 || d.Reordered == 0 || d.Bytes != 1000*vtime.Bytes(d.Datagrams) {
				t.Errorf("bridge %v, after %v: %d datagrams sent, %+v", bridge, after, s.DatagramsSent, d)
			}
			for e, p := range l.net.PipeStats()[0] {
				in, out := p.Entered+p.Duplicates, p.Delivered+p.LostPackets+p.Overflows
				if p.LostPackets == 0 || p.Duplicates == 0 || in < out || in-out > 20 {
					t.Errorf("bridge %v, after %v, end %d: %+v", bridge, after, e, p)
				}
			}
		}
	}
}

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

// TestLossOfEverything: a source that keeps the queue full meets a link that
// takes nothing for a while; the run goes on, and so does the flow.
func TestLossOfEverything(t *testing.T) {
	c := line()
	all, none := pipe.Loss{Good: 1}, pipe.Loss{}
	c.Schedule = []pipe.Change{{At: 3 * sec, Loss: &all}, {At: 5 * sec, Loss: &none}}
	l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, c)}), udp(0, 1, 1472))
	l.finish()
	near(t, "goodput with 8 of 10 s", l.goodput(0), 8*1472.0/1500, 0.02)
}

// TestLinkGoesDownAndUp: nothing passes while it is down, and every transport
// goes on afterwards.
func TestLinkGoesDownAndUp(t *testing.T) {
	down, up := false, true
	c := line()
	c.Schedule = []pipe.Change{{At: 3 * sec, Up: &down}, {At: 5 * sec, Up: &up}}
	for _, name := range []string{"tcp/cubic", "udp", "hop"} {
		f := proto.Flow{Transport: name, Src: 0, Dst: 2}
		f.Options.BlockSize = 64 * vtime.KiB
		if name != "hop" {
			f.Options.BlockSize = 0
		}
		l := accessPoint(t, false, c, nil, f)
		at := map[vtime.Time]vtime.Bytes{}
		for _, s := range []vtime.Time{2, 3, 4, 5, 7, 9, 11} {
			l.runTo(s * sec)
			l.net.Observe(s*sec, func(_ int, p *proto.Sample) {
				if p.Side == proto.Destination {
					at[s] = p.Delivered
				}
			})
		}
		if at[3] == at[2] || at[5] != at[4] || at[9] == at[7] || at[11] == at[9] {
			t.Errorf("%s delivered %v", name, at)
		}
	}
}

// TestFlowsAreMeasuredWhileTheyRun: the bytes of a flow that starts or stops
// within the measured interval are those of its own time.
func TestFlowsAreMeasuredWhileTheyRun(t *testing.T) {
	for _, name := range []string{"tcp/cubic", "udp", "hop", "hop-by-hop-tcp/cubic"} {
		f := proto.Flow{Transport: name, Src: 0, Dst: 1, Start: 3 * sec, Stop: 7 * sec}
		if name == "hop" {
			f.Options.BlockSize = 64 * vtime.KiB
		}
		early := f
		early.Start, early.Stop = 0, sec/2
		for i, f := range []proto.Flow{f, early} {
			l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, line())}), f)
			l.finish()
			d := l.dst(0)
			if i == 1 {
				if d.Bytes != 0 || d.Total == 0 || d.MeasuredFrom != d.MeasuredTo {
					t.Errorf("%s before the measured interval: %+v", name, d)
				}
				continue
			}
			if d.MeasuredFrom != 3*sec || d.MeasuredTo != 7*sec || d.Bytes == 0 || d.Bytes > d.Total {
				t.Errorf("%s: %+v", name, d)
			}
			// What the queue and the wire hold at the stop still arrives with UDP.
			if late := d.Total - d.Bytes; (late > 0) != (name == "udp") || late > 130*1500 {
				t.Errorf("%s: %v after the stop", name, late)
			}
			if got := 8 * float64(d.Bytes) / 4e6; got > 9.9 || got < 9 && name != "hop" || got < 5 {
				t.Errorf("%s: %.2f Mb/s of 10 while it ran", name, got)
			}
		}
	}
}

// TestWhatWouldNeverEnd is refused with a word on what to do.
func TestWhatWouldNeverEnd(t *testing.T) {
	idle := pipe.Config{}
	zero := vtime.BitRate(0)
	lifted := line()
	lifted.Schedule = []pipe.Change{{At: sec, Rate: &zero}}
	noQueue := line()
	noQueue.Queue = pipe.Queue{}
	open := line()
	open.Schedule = []pipe.Change{{At: sec, Queue: &pipe.Queue{}}}
	for want, c := range map[string]struct {
		pipe pipe.Config
		flow proto.Flow
	}{
		"neither rate nor delay":               {idle, tcpFlow(0, 1)},
		"has no rate:":                         {pipe.Config{Delay: 20 * msec}, udp(0, 1, 1000)},
		"has no rate from 1s on":               {lifted, udp(0, 1, 1000)},
		"has no limit of its queue:":           {noQueue, udp(0, 1, 1000)},
		"has no limit of its queue from 1s on": {open, udp(0, 1, 1000)},
	} {
		l := &lab{t: t, next: map[[2]int]int{}}
		l.row(0, 1)
		c.flow.Workload.Kind, c.flow.Path = workload.Continual, []int{0, 1}
		cfg := Config{Seed: 1, Routes: l, Flows: []proto.Flow{c.flow}, End: sec, TCP: tcp.DefaultConfig()}
		wired(0, 2, []Pipe{wire(0, 1, c.pipe)})(&cfg)
		if _, err := New(des.New(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	l := &lab{t: t, next: map[[2]int]int{}}
	cfg := Config{Routes: l, End: sec}
	wired(0, 2, []Pipe{wire(0, 1, line())})(&cfg)
	cfg.Pipes[0].Ends[1] = 2
	if _, err := New(des.New(), cfg); err == nil || !strings.Contains(err.Error(), "node 0 and node 2") {
		t.Errorf("%v", err)
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

// TestBridgeBesideRadioTraffic: what a bridge passes on waits in its radio's
// queue like its own packets.
func TestBridgeBesideRadioTraffic(t *testing.T) {
	f := proto.Flow{Transport: "udp", Src: 2, Dst: 0, Options: proto.FlowOptions{PacketSize: 1472}}
	l := accessPoint(t, true, line(), nil, f)
	l.finish()
	q := l.med.Stats(1).AC[wifi.BE]
	if q.Enqueued == 0 || q.Outcomes[wifi.Overflow] == 0 || l.counter(1, "queue_refused") == 0 || l.med.Stats(2).TxTime != 0 {
		t.Errorf("%+v", q)
	}
	near(t, "UDP down", l.goodput(0), saturated(3, 1, true, 1472), 0.005)
}
