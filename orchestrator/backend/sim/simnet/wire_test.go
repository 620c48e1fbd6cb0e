package simnet

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
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
