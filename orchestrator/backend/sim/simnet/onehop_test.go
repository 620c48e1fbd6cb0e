package simnet

import (
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/pipe"
)

// TestOneHopOfHopByHopIsTCP: without a relay, hop-by-hop TCP is a connection from
// the source to the destination with a header before the data: it leaves slow
// start as that does, and its window grows beyond any relay's share (256 KiB).
func TestOneHopOfHopByHopIsTCP(t *testing.T) {
	for name, c := range map[string]struct {
		pipe   pipe.Config
		window int // packets in flight that the path holds
	}{
		"10 Mb/s, 100 ms": {pipe.Config{Rate: 10 * mbit, Delay: 50 * msec, Queue: pipe.Queue{Packets: 100}}, 83},
		"50 Mb/s, 100 ms": {pipe.Config{Rate: 50 * mbit, Delay: 50 * msec, Queue: pipe.Queue{Packets: 500}}, 416},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(transport string) (float64, *proto.Sample) {
				f := proto.Flow{Transport: transport, Src: 0, Dst: 1, Path: []int{0, 1}}
				l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, c.pipe)}), f)
				l.finish()
				t.Logf("%s: %d cwnd, ssthresh %d, %d sent again", transport, l.src(0).Last.CwndPackets, l.src(0).Last.SsthreshPackets, l.src(0).Last.RetransPackets)
				return l.goodput(0), l.src(0).Last
			}
			want, tcp := run("tcp/cubic")
			got, hop := run("hop-by-hop-tcp/cubic")
			near(t, "goodput in Mb/s", got, want, 0.03)
			if tcp.CwndPackets < int64(c.window) || tcp.SsthreshPackets == 0 {
				t.Errorf("the case is too easy: %+v", tcp)
			}
			near(t, "ssthresh", float64(hop.SsthreshPackets), float64(tcp.SsthreshPackets), 0.05)
			// HyStart's samples of the delay fall in one of two ways by less than a
			// millisecond, in the kernel as well: 12 or 34 segments at 10 Mb/s.
			// Without its exit there are hundreds.
			if d := hop.RetransPackets - tcp.RetransPackets; d > 40 || d < -40 {
				t.Errorf("sent again: %d segments hop by hop, %d end to end", hop.RetransPackets, tcp.RetransPackets)
			}
		})
	}
}
