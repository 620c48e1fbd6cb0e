package simnet

import (
	"slices"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// TestWindowsAreRewrittenAtTheAccessPoint: with a download, an upload and windows of 42
// segments the queue of 20 packets overflows; with rewritten windows it does not, whether the
// access point routes or bridges, and no sender has more than its share under way.
func TestWindowsAreRewrittenAtTheAccessPoint(t *testing.T) {
	for _, bridge := range []bool{false, true} {
		for _, rewrite := range []bool{false, true} {
			fast := line()
			fast.Rate, fast.Queue.Packets = 100*mbit, 500
			mac := testMAC()
			mac.Queues[wifi.BE].Limit = 20
			var bridges [][3]int
			path := []int{2, 1, 0}
			if bridge {
				bridges, path = [][3]int{{0, 2, 1}, {2, 0, 1}}, []int{2, 0}
			}
			back := slices.Clone(path)
			slices.Reverse(back)
			o := proto.FlowOptions{MSS: 1024, ReceiveWindow: 42}
			l := newLab(t, positions(0, 100), mac, both(wired(2, 3, []Pipe{wire(1, 2, fast)}, bridges...), func(c *Config) {
				c.TCP.Ack, c.TCP.Timestamps = tcp.AckEvery, false
				if rewrite {
					c.Rewriting = []*winrewrite.Config{nil, {Buffer: 20}, nil}
				}
			}), proto.Flow{Transport: "tcp/reno", Src: 2, Dst: 0, Path: path, Options: o}, proto.Flow{Transport: "tcp/reno", Src: 0, Dst: 2, Path: back, Options: o})
			l.finish()
			over := l.med.Stats(1).AC[wifi.BE].Outcomes[wifi.Overflow]
			if (over == 0) != rewrite {
				t.Errorf("bridge %v, rewriting %v: %d packets overflowed", bridge, rewrite, over)
			}
			if !rewrite {
				if n := l.counter(1, "rewriting_segments"); n != 0 {
					t.Errorf("%d segments seen without a filter", n)
				}
				continue
			}
			if n := l.counter(1, "rewriting_max_connections"); n != 2 || l.counter(1, "rewriting_rewritten") < 1000 || l.counter(1, "rewriting_unscaled") != 0 || l.counter(1, "rewriting_min_segments") != 10 {
				t.Errorf("bridge %v: %d connections, %d segments rewritten, %d unscaled", bridge, n, l.counter(1, "rewriting_rewritten"), l.counter(1, "rewriting_unscaled"))
			}
			for i, src := range []int{2, 0} {
				if s := l.side(i, proto.Source, src).Last; s == nil || s.SendWindow > 10*1024 || s.InFlight > 10 || s.Retrans != 0 {
					t.Errorf("bridge %v: flow %d ended with %+v, want a window of at most 10 segments and no loss", bridge, i, s)
				}
			}
		}
	}
}

// TestAFilterWithoutABufferIsRefused: it would divide nothing among connections.
func TestAFilterWithoutABufferIsRefused(t *testing.T) {
	_, err := New(nil, Config{Nodes: 1, Rewriting: []*winrewrite.Config{{}}})
	if err == nil {
		t.Error("a buffer of 0 packets was taken")
	}
}
