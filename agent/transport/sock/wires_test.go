//go:build linux

package sock_test

import (
	"encoding/json"
	"testing"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// facts returns a node's counters of Hop by name.
func facts(r *proto.Results) map[string]int64 {
	m := make(map[string]int64)
	for _, c := range r.Facts.Hop {
		m[c.Name] = c.Delta
	}
	return m
}

// Over a wire Hop keeps the queue filled, but no longer than needed, and does
// not overflow it.
func TestHopFillsAWire(t *testing.T) {
	const limit = 60
	l := agenttest.New(t, 2, agenttest.Options{Board: true, QueueLimit: limit, Wires: [][2]int{{0, 1}}, WiredOnly: []int{0, 1}})
	const rate = 10 * vtime.MbitPerSecond
	l.SetLink(0, 1, agenttest.Link{Rate: rate, Queue: limit, Delay: 5 * vtime.Millisecond})
	f := l.Flow(continual(0, "hop", 0, 1))
	l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) { c.Hop = json.RawMessage(`{"BlockSize": 262144}`) })
	const warmup, end = second, 4 * second
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	dst := agenttest.Result(t, rs, 0, proto.Destination)
	best := float64(rate) * 1400 / 1482
	cpu := rs[0].Facts.CPUUser + rs[0].Facts.CPUSystem
	// How near it comes depends on how busy the machine is.
	t.Logf("%.2f Mb/s of at most %.2f, cpu %v, hop %v, %v", goodput(dst)/1e6, best/1e6, cpu, facts(rs[0]), facts(rs[1]))
	if dst.Error != nil || goodput(dst) < 0.02*best || goodput(dst) > 1.05*best {
		t.Errorf("%.2f Mb/s of at most %.2f: %+v", goodput(dst)/1e6, best/1e6, dst)
	}
	if _, lost := l.Frames(0, 1); lost > 0 && facts(rs[0])["hop_never_queued"] == 0 {
		t.Errorf("%d frames overflowed a queue of %d", lost, limit)
	}
}

// Blocks cross a node that has a radio on one side and wires on the other, in
// both directions, intact, beside a flow that keeps the wire's queue full.
func TestHopBetweenRadioAndWire(t *testing.T) {
	l := agenttest.New(t, 4, agenttest.Options{Board: true, Wires: [][2]int{{1, 2}, {2, 3}}, WiredOnly: []int{2, 3}})
	for i := range 3 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Loss: 0.02})
	}
	flows := []proto.Flow{
		l.Flow(sized(0, "hop", 0, 3, 1_500_000)),
		l.Flow(sized(1, "hop", 3, 0, 1_000_000)),
		l.Flow(sized(2, "hop", 2, 0, 10_000)),
		l.Flow(continual(3, "udp", 2, 3)),
	}
	flows[3].Stop = 2 * second
	l.ConfigureChain(flows, func(c *proto.Configure) { c.Hop = json.RawMessage(`{"BlockSize": 262144}`) })
	const end = 10 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows[:3] {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if !dst.Finished || dst.Total != f.Workload.Size || dst.Corrupt != 0 || dst.Error != nil || src.Error != nil {
			t.Errorf("flow %d: destination %+v, source %+v", f.ID, dst, src)
		}
		t.Logf("flow %d: finished at %v", f.ID, dst.FinishedAt)
	}
	if dst := agenttest.Result(t, rs, 3, proto.Destination); dst.Datagrams == 0 || dst.Error != nil {
		t.Errorf("udp beside it: %+v", dst)
	}
	for _, r := range rs {
		t.Logf("node %d: cpu %v+%v, hop %v", r.Node, r.Facts.CPUUser, r.Facts.CPUSystem, r.Facts.Hop)
	}
}

// A saturating flow keeps a pipe's queue filled, however short, and does not
// overflow it.
func TestUDPSaturatesAWire(t *testing.T) {
	for _, c := range []struct {
		limit int
		rate  vtime.BitRate
	}{{6, 10 * vtime.MbitPerSecond}, {100, 50 * vtime.MbitPerSecond}} {
		l := agenttest.New(t, 2, agenttest.Options{Board: true, QueueLimit: c.limit, Wires: [][2]int{{0, 1}}, WiredOnly: []int{0, 1}})
		l.SetLink(0, 1, agenttest.Link{Rate: c.rate, Queue: c.limit})
		f := l.Flow(continual(0, "udp", 0, 1))
		l.ConfigureChain([]proto.Flow{f}, nil)
		const warmup, end = second / 2, 3 * second
		epoch := l.Start(warmup, end)
		rs := l.Finish(epoch, end)
		dst := agenttest.Result(t, rs, 0, proto.Destination)
		best := float64(c.rate) * 1400 / 1442
		cpu := rs[0].Facts.CPUUser + rs[0].Facts.CPUSystem
		t.Logf("queue of %d: %.2f Mb/s of %.2f, the source's agent used %v in %v", c.limit, goodput(dst)/1e6, best/1e6, cpu, rs[0].Facts.Wall)
		if dst.Error != nil || goodput(dst) > 1.05*best || goodput(dst) < 0.02*best {
			t.Errorf("queue of %d: %+v", c.limit, dst)
		}
		if cpu > rs[0].Facts.Wall/2 {
			t.Errorf("queue of %d: the source's agent used %v in %v: it spins", c.limit, cpu, rs[0].Facts.Wall)
		}
		if _, lost := l.Frames(0, 1); int64(lost) > dst.Datagrams/4 {
			t.Errorf("queue of %d: %d frames overflowed it, %d passed", c.limit, lost, dst.Datagrams)
		}
	}
}
