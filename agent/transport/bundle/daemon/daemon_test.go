//go:build linux

package daemon_test

import (
	"testing"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

const second = vtime.Time(vtime.Second)

// counter returns one of a side's counters.
func counter(r proto.FlowResult, name string) int64 {
	for _, c := range r.Counters {
		if c.Name == name {
			return c.Delta
		}
	}
	return 0
}

// TestFilesThroughRelays: files in both directions over lossy hops arrive whole,
// from memory and from disk.
func TestFilesThroughRelays(t *testing.T) {
	l := agenttest.New(t, 4, agenttest.Options{})
	for i := range 3 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Loss: 0.01})
	}
	const size = 800_001
	var flows []proto.Flow
	for id, ends := range [][2]int{{0, 3}, {3, 0}, {1, 2}} {
		f := l.Flow(proto.Flow{ID: id, Transport: "bundle/cubic", Src: ends[0], Dst: ends[1], Workload: workload.Spec{Kind: workload.Sized, Size: size}})
		f.Options.Bundle = &proto.Bundle{Size: 100 * vtime.KB, Disk: id == 1}
		flows = append(flows, f)
	}
	rb := l.ConfigureChain(flows, nil)
	for i, r := range rb {
		for _, s := range r.Flows {
			if s.CC != "cubic" {
				t.Errorf("node %d read back %+v", i, s)
			}
		}
	}
	const end = 8 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if !src.Finished || !dst.Finished || dst.Bytes != size || dst.Corrupt != 0 || dst.Blocks != 9 || src.Error != nil || dst.Error != nil {
			t.Errorf("flow %d: source %+v, destination %+v", f.ID, src, dst)
		}
	}
	for _, node := range []int{1, 2} {
		for _, r := range rs[node].Flows {
			if r.Side == proto.Relay && (r.Blocks != 9 || r.Error != nil || r.MaxHeld < 100_000 || counter(r, "bundle_sessions") < 2 || r.CC != "cubic") {
				t.Errorf("relay %d: %+v", node, r)
			}
		}
	}
	if s := l.Nodes[1].Samples(0, proto.Relay); len(s) < 4 || s[len(s)-1].BlocksDone != 9 {
		t.Errorf("samples of relay 1: %+v", s)
	}
}

// TestMessagesAsBundles: each message is a bundle, and what became of it is told.
func TestMessagesAsBundles(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	l.SetLink(1, 2, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	f := l.Flow(proto.Flow{ID: 0, Transport: "bundle/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.VoIP, Codec: "g729"}})
	f.Options.NoDelay = true
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 4 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	dst := agenttest.Result(t, rs, 0, proto.Destination)
	got := l.Nodes[2].Messages(0)
	if dst.Error != nil || len(got) < 150 || dst.Blocks < int64(len(got))-5 {
		t.Fatalf("%d messages, %+v", len(got), dst)
	}
	lost := 0
	for _, m := range got {
		if m.Lost {
			lost++
		}
	}
	if lost > 5 {
		t.Errorf("%d of %d messages are lost", lost, len(got))
	}
}

// TestSlowLastHop: a relay stores up to its limit and no further, and the source is
// stopped.
func TestSlowLastHop(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 40 * vtime.MbitPerSecond})
	l.SetLink(1, 2, agenttest.Link{Rate: 1 * vtime.MbitPerSecond})
	f := l.Flow(proto.Flow{ID: 5, Transport: "bundle/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}})
	const limit = 1 * vtime.MiB
	f.Options.Bundle = &proto.Bundle{Size: 50 * vtime.KB, Limit: limit}
	l.ConfigureChain([]proto.Flow{f}, nil)
	const warmup, end = second, 5 * second
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	src, dst, relay := agenttest.Result(t, rs, 5, proto.Source), agenttest.Result(t, rs, 5, proto.Destination), agenttest.Result(t, rs, 5, proto.Relay)
	if src.Error != nil || dst.Error != nil || relay.Error != nil || dst.Bytes == 0 || dst.Corrupt != 0 {
		t.Fatalf("source %+v, relay %+v, destination %+v", src, relay, dst)
	}
	if relay.MaxHeld > limit || relay.MaxHeld < limit*9/10 || counter(relay, "bundle_refused_in") != 0 {
		t.Errorf("the relay held %v of %v: %+v", relay.MaxHeld, limit, relay)
	}
}
