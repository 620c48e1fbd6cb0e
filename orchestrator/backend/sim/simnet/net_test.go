package simnet

import (
	"math"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// saturated computes the goodput of one saturated sender from the standard's
// times (802.11-2012 clause 17: long preamble 192 µs, slot 20 µs, SIFS 10 µs):
// per access AIFS, a mean backoff of 15.5 slots, and a burst of frames.
func saturated(aifsn, frames int, ack bool, payload float64) float64 {
	us := float64(10+20*aifsn) + 15.5*20
	frame := 192 + (payload+28+8+26+4)*8/11
	if ack {
		frame += 10 + 192 + 14*8/2.0
	}
	us += float64(frames)*frame + float64(frames-1)*10
	return float64(frames) * payload * 8 / us
}

// TestOneHopKnownAnswers: what one sender has for itself on 802.11b.
func TestOneHopKnownAnswers(t *testing.T) {
	be2 := testMAC()
	be2.Queues[wifi.BE].AIFSN = 2 // DIFS: the textbook's station
	background := udp(0, 1, 1472)
	background.Options.DSCP = 8 // CS1
	for _, c := range []struct {
		name string
		mac  wifi.MAC
		flow proto.Flow
		want float64
		tol  float64
	}{
		{"UDP, acknowledged, DIFS", be2, udp(0, 1, 1472), saturated(2, 1, true, 1472), 0.005},
		{"UDP, best effort", testMAC(), udp(0, 1, 1472), saturated(3, 1, true, 1472), 0.005},
		{"UDP, background: burst of 6 without ACK", testMAC(), background, saturated(7, 6, false, 1472), 0.005},
		{"TCP cubic", testMAC(), tcpFlow(0, 1), 5.0, 0.04},
	} {
		l := newLab(t, positions(0, 100), c.mac, nil, c.flow)
		l.finish()
		if got := l.goodput(0); math.Abs(got/c.want-1) > c.tol {
			t.Errorf("%s: %.3f Mb/s, want %.3f", c.name, got, c.want)
		}
	}
	if got := saturated(2, 1, true, 1472); math.Abs(got-6.106) > 0.01 {
		t.Errorf("the computation itself gives %.3f Mb/s, the textbook 6.11", got)
	}
}

// TestEveryDatagramIsAccountedFor: sent = arrived + refused by a queue + given up
// by the MAC + still in a queue, over three hops with hidden senders.
func TestEveryDatagramIsAccountedFor(t *testing.T) {
	l := newLab(t, positions(0, 200, 400, 600), testMAC(), func(c *Config) { c.Warmup = 0 }, udp(0, 3, 1000), udp(3, 0, 500))
	l.finish()
	sent := l.src(0).DatagramsSent + l.src(1).DatagramsSent
	arrived := l.dst(0).Datagrams + l.dst(1).Datagrams
	var refused, forwarded, dropped, doubtful, waiting int64
	for i := range 4 {
		refused += l.counter(i, "queue_refused")
		forwarded += l.counter(i, "Ip.ForwDatagrams")
		s := l.med.Stats(i)
		dropped += int64(s.AC[wifi.BE].Outcomes[wifi.RetryLimit])
		waiting += int64(l.med.Queue(i, wifi.BE).Packets)
	}
	// A frame that was given up may have arrived all the same: its ACKs were
	// lost. So may the one that is in transmission now.
	for i := range 4 {
		doubtful += int64(l.med.Stats(i).AC[wifi.BE].AckLost)
	}
	lost := sent - arrived - refused
	if lost < 0 || lost > dropped+waiting || lost < dropped+waiting-doubtful {
		t.Errorf("%d sent, %d arrived, %d refused, %d given up, %d waiting, %d acknowledgements lost", sent, arrived, refused, dropped, waiting, doubtful)
	}
	if forwarded == 0 || arrived == 0 || refused == 0 {
		t.Errorf("the case is too easy: %d forwarded, %d arrived, %d refused", forwarded, arrived, refused)
	}
	for f := range 2 {
		if r := l.dst(f); r.Reordered != 0 || r.Total != vtime.Bytes(r.Datagrams)*l.cfg.Flows[f].Options.PacketSize {
			t.Errorf("flow %d: %+v", f, r)
		}
	}
}

// TestGoodputIsWhatTheMediumCarried: on a clean link without loss, the bytes that
// the destination's application got are those that the medium handed up, less
// headers: 20 IP, 20 TCP, 12 timestamps.
func TestGoodputIsWhatTheMediumCarried(t *testing.T) {
	f := tcpFlow(0, 1)
	f.Options.ReceiveBuffer = 32 * vtime.KiB // the window fits the radio's queue
	l := newLab(t, positions(0, 100), testMAC(), nil, f)
	l.finish()
	s := l.med.Stats(1)
	if got, want := l.dst(0).Bytes, s.BytesUp-52*vtime.Bytes(s.Delivered); got != want || got == 0 {
		t.Errorf("delivered %d B, carried %d B", got, want)
	}
	if r := l.src(0); r.Last.Retrans != 0 || r.CC != "cubic" || r.Attempts != 1 {
		t.Errorf("the link was to be clean: %+v", r)
	}
	if up := l.counter(0, "Tcp.OutSegs"); up == 0 || l.counter(0, "Tcp.RetransSegs") != 0 {
		t.Errorf("counters: %+v", l.res[0].Facts.Counters)
	}
}

// TestConstantRate: datagrams at a rate that the link carries, to the bit.
func TestConstantRate(t *testing.T) {
	f := udp(0, 2, 1000)
	f.Options.Rate = 800_123
	l := newLab(t, positions(0, 200, 400), testMAC(), nil, f)
	l.finish()
	want := float64(f.Options.Rate) * 10 / 8000 // datagrams in 10 s
	if got := float64(l.dst(0).Bytes) / 1000; math.Abs(got-want) > 1.5 {
		t.Errorf("%v datagrams in 10 s, want %v", got, want)
	}
	if r := l.src(0); r.DatagramsSent-l.dst(0).Datagrams > 2 {
		t.Errorf("%d sent, %d arrived", r.DatagramsSent, l.dst(0).Datagrams)
	}
}

// TestSaturatingFlowsShareTheQueue: two of them at one node get the same, but
// for the queue that the first one filled before the other began.
func TestSaturatingFlowsShareTheQueue(t *testing.T) {
	l := newLab(t, positions(0, 100), testMAC(), nil, udp(0, 1, 1400), udp(0, 1, 1400))
	l.finish()
	if a, b := l.dst(0).Datagrams, l.dst(1).Datagrams; a-b > wifi.DefaultQueueLimit || b-a > wifi.DefaultQueueLimit || a < 1000 {
		t.Errorf("%d and %d datagrams", a, b)
	}
}

// TestLoopsAndMissingRoutes: packets end by their hop limit, and a flow that
// cannot connect is an outcome.
func TestLoopsAndMissingRoutes(t *testing.T) {
	l := newLab(t, positions(0, 100, 200), testMAC(), nil, tcpFlow(0, 2), tcpFlow(1, 2))
	l.next[[2]int{0, 2}] = 1
	l.next[[2]int{1, 2}] = 0
	l.finish()
	if n := l.counter(0, "Ip.InHdrErrors") + l.counter(1, "Ip.InHdrErrors"); n < 4 {
		t.Errorf("%d packets died of their hop limit", n)
	}
	for f := range 2 {
		if r := l.src(f); r.Error == nil || r.Error.Code != proto.CodeTimeout || l.dst(f).Total != 0 {
			t.Errorf("flow %d: %+v", f, r)
		}
	}
	l = newLab(t, positions(0, 100, 200), testMAC(), nil, tcpFlow(0, 2))
	delete(l.next, [2]int{1, 2})
	l.finish()
	if n := l.counter(1, "Ip.OutNoRoutes"); n < 3 {
		t.Errorf("%d packets without a route", n)
	}
}

// TestStartAndStop: a flow sends nothing before its start and after its stop,
// whatever carries it.
func TestStartAndStop(t *testing.T) {
	for _, name := range []string{"udp", "tcp/cubic", "hop-by-hop-tcp/cubic", "hop"} {
		f := proto.Flow{Transport: name, Src: 0, Dst: 2, Path: []int{0, 1, 2}, Start: 2 * sec, Stop: 4 * sec}
		if name == "hop" {
			f.Options.BlockSize = 32 * vtime.KiB
		}
		l := newLab(t, positions(0, 200, 400), testMAC(), nil, f)
		var at []vtime.Time
		var total vtime.Bytes
		for now := vtime.Time(0); now < l.cfg.End; now += sec / 10 {
			l.net.RunTo(now)
			l.net.Observe(now, func(_ int, s *proto.Sample) {
				if s.Side == proto.Destination && s.Delivered > total {
					total = s.Delivered
					at = append(at, now)
				}
			})
		}
		l.finish()
		if len(at) == 0 || at[0] <= 2*sec || at[len(at)-1] > 4*sec+sec/2 { // a full queue of 100 datagrams takes half a second
			t.Errorf("%s from 2 to 4 s delivered at %v", name, at)
		}
		if r := l.src(0); r.Error != nil {
			t.Errorf("%s: %v", name, r.Error)
		}
		if q := l.med.Queue(0, wifi.BE).Packets + l.med.Queue(0, wifi.BK).Packets; q != 0 {
			t.Errorf("%s: %d packets in the queue long after the stop", name, q)
		}
	}
}

// TestSizedTransfersArriveWhole over one hop and three, with every transport
// that promises it.
func TestSizedTransfersArriveWhole(t *testing.T) {
	const size = 300_001
	for _, name := range []string{"tcp/reno", "hop-by-hop-tcp/cubic", "hop"} {
		for _, path := range [][]int{{0, 1}, {0, 1, 2, 3}} {
			f := proto.Flow{Transport: name, Src: 0, Dst: path[len(path)-1], Path: path, Workload: workload.Spec{Kind: workload.Sized, Size: size}}
			if name == "hop" {
				f.Options.BlockSize = 100 * vtime.KB
			}
			l := newLab(t, positions(0, 200, 400, 600), testMAC(), func(c *Config) { c.Warmup = 0 }, f)
			l.finish()
			s, d := l.src(0), l.dst(0)
			if !d.Finished || d.Bytes != size || d.Total != size || s.Total != size || !s.Finished || s.FinishedAt < d.FinishedAt || d.FinishedAt == 0 {
				t.Errorf("%s over %d hops:\n%+v\n%+v", name, len(path)-1, s, d)
			}
			if d.Corrupt != 0 || s.Error != nil || d.Error != nil {
				t.Errorf("%s over %d hops: %v %v", name, len(path)-1, s.Error, d.Error)
			}
		}
	}
}

// TestRelayStaysWithinItsBound, and passes backpressure on: before a bad second
// hop the relay's buffer is full, data waits unread in its socket, and the source
// gets no further ahead than that.
func TestRelayStaysWithinItsBound(t *testing.T) {
	f := proto.Flow{Transport: "hop-by-hop-tcp/cubic", Src: 0, Dst: 3, Path: []int{0, 1, 2, 3}}
	f.Options.RelayBuffer = 128 * vtime.KiB
	l := newLab(t, positions(0, 200, 400, 600), testMAC(), nil, f)
	l.loss(1, 2, 0.2)
	unread := false
	for now := sec; now <= l.cfg.End; now += sec / 10 {
		l.net.RunTo(now)
		l.net.Observe(now, func(int, *proto.Sample) {})
		in := l.net.flows[0].(*stream).links[0].server
		unread = unread || in != nil && in.conn.Readable() > 10_000
	}
	l.finish()
	for _, node := range []int{1, 2} {
		r := l.side(0, proto.Relay, node)
		if r.MaxHeld > f.Options.RelayBuffer || r.Error != nil || r.CC != "cubic" || r.Last.CwndPackets == 0 {
			t.Errorf("relay %d: %+v", node, r)
		}
	}
	if held := l.side(0, proto.Relay, 1).MaxHeld; held < 64*vtime.KiB || !unread {
		t.Errorf("the relay before the bottleneck held %v at most, with data unread: %v", held, unread)
	}
	// What was acknowledged to the source and has not arrived is in the relays.
	i := l.src(0).Last
	if ahead := i.Acked - l.dst(0).Total; ahead > 2*f.Options.RelayBuffer {
		t.Errorf("the first relay has acknowledged %v more than has arrived", ahead)
	}
	if l.dst(0).Total == 0 {
		t.Error("nothing arrived")
	}
}

func TestFamiliesAreThoseOfTheAgent(t *testing.T) {
	if f := Families(); !slices.Equal(f, []string{"hop", "tcp", "coop-tcp", "hop-by-hop-tcp", "bundle", "udp"}) {
		t.Errorf("%v", f)
	}
	_, err := New(nil, Config{Nodes: 2, Flows: []proto.Flow{{Transport: "sctp", Dst: 1}}})
	if err == nil {
		t.Error("an unknown transport is taken")
	}
}
