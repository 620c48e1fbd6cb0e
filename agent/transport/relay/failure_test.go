//go:build linux

package relay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The source has given everything away, and closed its half of the connection,
// long before the destination has it: the relay keeps the other half open, and
// the source does not believe in the end before the destination does.
func TestHalfCloseWaitsForTheDestination(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 40 * vtime.MbitPerSecond})
	l.SetLink(1, 2, agenttest.Link{Rate: 1 * vtime.MbitPerSecond})
	const size = 200 * vtime.KB // all of it fits the relay: 1.6 s over its slow hop
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: size}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 5 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	src, dst, relay := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination), agenttest.Result(t, rs, 0, proto.Relay)
	if !src.Finished || !relay.Finished || !dst.Finished || dst.Total != size || src.Error != nil || relay.Error != nil || dst.Error != nil {
		t.Fatalf("source %+v\nrelay %+v\ndestination %+v", src, relay, dst)
	}
	if dst.FinishedAt < 3*second/2 || relay.FinishedAt < dst.FinishedAt || src.FinishedAt < relay.FinishedAt {
		t.Errorf("finished at %v at the destination, %v at the relay, %v at the source", dst.FinishedAt, relay.FinishedAt, src.FinishedAt)
	}
	var all vtime.Time // when the source's kernel had everything acknowledged by the relay's
	for _, s := range l.Nodes[0].Samples(0, proto.Source) {
		if s.Acked >= size && all == 0 {
			all = s.T
		}
	}
	if all == 0 || all >= dst.FinishedAt {
		t.Errorf("the relay had everything at %v, the destination at %v", all, dst.FinishedAt)
	}
}

// The process of a relay dies in the middle of a flow: both sides end, long
// before the flow's stop, and say at which hop it broke.
func TestDeathOfARelayEndsBothSides(t *testing.T) {
	l := agenttest.New(t, 5, agenttest.Options{})
	for i := range 4 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	}
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 4, Workload: workload.Spec{Kind: workload.Continual}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	l.Start(0, 60*second)
	time.Sleep(time.Second)
	if err := l.Nodes[2].Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	src := failed(t, l.Nodes[0], 10*time.Second)
	if src.Side != proto.Source || src.Error.Code != proto.CodeFlow || !strings.Contains(src.Error.Error(), "node n02") {
		t.Errorf("the source says: %v", src.Error)
	}
	before, after, dst := failed(t, l.Nodes[1], time.Second), failed(t, l.Nodes[3], 10*time.Second), failed(t, l.Nodes[4], 10*time.Second)
	if before.Side != proto.Relay || dst.Side != proto.Destination || dst.Error.Code != proto.CodeFlow {
		t.Errorf("n02 says %v, the destination %v", before.Error, dst.Error)
	}
	t.Logf("source: %v\nn02: %v\nn04: %v\ndestination: %v", src.Error, before.Error, after.Error, dst.Error)
}

// A source that has nothing to send just now is told of a failure, too, and does
// not find out with its next message.
func TestIdleSourceIsToldOfAFailure(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	}
	later := []workload.Transfer{{At: 0, Size: 1000}, {At: vtime.Minute, Size: 1000}}
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Trace, Transfers: later}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	l.Start(0, 120*second)
	time.Sleep(time.Second)
	if err := l.Nodes[2].Client.Stop(l.Context(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if e := failed(t, l.Nodes[0], 5*time.Second); e.Side != proto.Source || !strings.Contains(e.Error.Error(), "node n02") {
		t.Errorf("the source says: %v", e.Error)
	}
}

// A relay that begins to listen late, or begins anew before the flow has begun,
// does not harm: the source tries until it stands.
func TestSetUpWaitsForARelay(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Down: true})
	l.SetLink(1, 2, agenttest.Link{Rate: 10 * vtime.MbitPerSecond, Down: true})
	const size = 100 * vtime.KB
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: size}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 9 * second
	epoch := l.Start(0, end)
	time.Sleep(800 * time.Millisecond)
	l.SetLink(0, 1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond}) // the source reaches the relay, the relay nobody
	time.Sleep(1500 * time.Millisecond)
	l.SetLink(1, 2, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	rs := l.Finish(epoch, end)
	src, dst, relay := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination), agenttest.Result(t, rs, 0, proto.Relay)
	if !src.Finished || !dst.Finished || src.Error != nil || dst.Error != nil || relay.Error != nil {
		t.Fatalf("source %+v\nrelay %+v\ndestination %+v", src, relay, dst)
	}
	if src.SetupTime < vtime.Second/3 || relay.Established <= src.Established {
		t.Errorf("set up after %v at the source, at %v at the relay, at %v from the source on", src.SetupTime, relay.Established, src.Established)
	}
}
