//go:build linux

package relay_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// switched has node be switched off and on in the configuration of its agent.
func switched(node int, down, up vtime.Time) func(*proto.Configure) {
	return func(c *proto.Configure) {
		if c.Node == node {
			c.Switches = []proto.Switch{{T: down}, {T: up, Up: true}}
		}
	}
}

func sleepUntil(epoch int64, t vtime.Time) {
	time.Sleep(time.Duration(epoch + int64(t) - probe.MonotonicNS()))
}

// A relay that is switched off says nothing to anybody; on again, its kernel knows
// nothing of the connections, and what came before it in the flow is told so.
func TestSwitchedOffRelayDiesInSilence(t *testing.T) {
	var quiet atomic.Bool
	var said atomic.Int64
	l := agenttest.New(t, 4, agenttest.Options{Watch: func(node int, frame []byte) {
		const ipHeader, tcpHeader = 14, 14 + 20
		if node == 1 && quiet.Load() && len(frame) > tcpHeader+13 && frame[ipHeader+9] == 6 {
			said.Add(1)
		}
	}})
	link := agenttest.Link{Rate: 5 * vtime.MbitPerSecond}
	for i := range 3 {
		l.SetLink(i, i+1, link)
	}
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 3, Workload: workload.Spec{Kind: workload.Continual}})
	const down, up, end = 2 * second, 4 * second, 12 * second
	l.ConfigureChain([]proto.Flow{f}, switched(1, down, up))
	epoch := l.Start(0, end)
	sleepUntil(epoch, down-second/5)
	l.SetLink(0, 1, agenttest.Link{Down: true}) // nothing comes that its kernel could answer
	l.SetLink(1, 2, agenttest.Link{Down: true})
	sleepUntil(epoch, down-second/50)
	before := probe.MonotonicNS() < epoch+int64(down)
	quiet.Store(before)
	sleepUntil(epoch, up+second/10)
	quiet.Store(false)
	l.SetLink(0, 1, link)
	l.SetLink(1, 2, link)
	rs := l.Finish(epoch, end)
	src, dst, relay := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination), rs[1].Flows[0]
	if relay.Error != nil || relay.Total == 0 || dst.Total == 0 {
		t.Errorf("relay %+v\ndestination %+v", relay, dst)
	}
	if src.Error == nil || src.Error.Code != proto.CodeFlow || !strings.Contains(src.Error.Error(), "reset") {
		t.Errorf("the source says %v", src.Error)
	}
	// A retransmission timer that ran out just before may have sent one segment.
	if n := said.Load(); before && n > 1 {
		t.Errorf("the relay sent %d TCP segments while it was off and cut off", n)
	}
	w := rs[1].Facts.Switched
	if len(w) != 2 || w[0].Up || !w[1].Up || w[0].T != down || w[1].T != up || w[0].Err != nil || w[1].Err != nil || w[0].Late < 0 {
		t.Errorf("switched %+v", w)
	}
}

// A relay that is off when the flow begins: the flow waits for it, as for one that
// listens late.
func TestFlowWaitsForASwitchedOffRelay(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	}
	const size = 200 * vtime.KB
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: size}, Start: second})
	const end = 8 * second
	l.ConfigureChain([]proto.Flow{f}, switched(1, second/2, 2*second))
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
	if !src.Finished || !dst.Finished || dst.Total != size || src.Error != nil || dst.Error != nil {
		t.Errorf("source %+v\ndestination %+v", src, dst)
	}
	if dst.Established < 2*second {
		t.Errorf("the destination was reached at %v through a relay that was off", dst.Established)
	}
}
