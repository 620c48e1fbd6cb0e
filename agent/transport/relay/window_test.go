//go:build linux

package relay_test

import (
	"testing"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// offered is the largest window that a sender of the flow was offered.
func offered(n *agenttest.Node, flow int, side proto.Side) (most vtime.Bytes) {
	for _, s := range n.Samples(flow, side) {
		most = max(most, s.SendWindow)
	}
	return most
}

// A relay offers each flow what that flow's bound allows, whatever the bounds of
// others, and the destination offers what its kernel finds useful: on a path of
// 100 ms and 40 Mb/s more than any relay here may hold.
func TestWindowsFollowTheFlowsOwnBound(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 40 * vtime.MbitPerSecond, Queue: 1000})
	l.SetLink(1, 2, agenttest.Link{Rate: 40 * vtime.MbitPerSecond, Delay: 50 * vtime.Millisecond, Queue: 1000})
	const small, large = 128 * vtime.KiB, 4 * vtime.MiB
	var flows []proto.Flow
	for id, bound := range []vtime.Bytes{small, large} {
		f := l.Flow(proto.Flow{ID: id, Transport: "hop-by-hop-tcp/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}})
		f.Options.RelayBuffer = bound
		flows = append(flows, f)
	}
	rb := l.ConfigureChain(flows, nil)
	for id, bound := range []vtime.Bytes{small, large} {
		if s := rb[1].Flows[id]; s.Flow != id || s.ReceiveBuffer != bound/4 || s.SendBuffer != bound/4 {
			t.Errorf("the relay's sockets of flow %d read back as %+v, want %v each", id, s, bound/4)
		}
	}
	const end = 6 * second
	rs := l.Finish(l.Start(second, end), end)
	for _, f := range flows {
		if d := agenttest.Result(t, rs, f.ID, proto.Destination); d.Error != nil || d.Bytes == 0 || d.Corrupt != 0 {
			t.Fatalf("flow %d: %+v", f.ID, d)
		}
		relay, dst := offered(l.Nodes[0], f.ID, proto.Source), offered(l.Nodes[1], f.ID, proto.Relay)
		t.Logf("flow %d: windows of %v at the relay, %v at the destination", f.ID, relay, dst)
		bound := f.Options.RelayBuffer
		if relay > bound/4 || relay < bound/16 {
			t.Errorf("flow %d: the relay offers %v of its %v", f.ID, relay, bound)
		}
	}
	// 263 kB is what the default bound's share of a socket would offer at most.
	if most := offered(l.Nodes[1], 1, proto.Relay); most < 500*vtime.KB {
		t.Errorf("the destination offers %v at most: less than the path holds", most)
	}
}
