//go:build linux

package daemon_test

import (
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

func sleepUntil(epoch int64, t vtime.Time) {
	time.Sleep(time.Duration(epoch + int64(t) - probe.MonotonicNS()))
}

// TestRelayIsSwitchedOff: a relay that stores on disk goes on after it was switched
// off and on; of one that stores in memory is lost what it had acknowledged, and
// nothing else.
func TestRelayIsSwitchedOff(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	fast, slow := agenttest.Link{Rate: 20 * vtime.MbitPerSecond}, agenttest.Link{Rate: 2 * vtime.MbitPerSecond}
	l.SetLink(0, 1, fast)
	l.SetLink(1, 2, slow)
	const size, bundles = 1_000_000, 20
	var flows []proto.Flow
	for id := range 2 {
		f := l.Flow(proto.Flow{ID: id, Transport: "bundle/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: size}})
		f.Options.Bundle = &proto.Bundle{Size: size / bundles, Disk: id == 0}
		flows = append(flows, f)
	}
	const down, up, end = 3 * second, 4 * second, 20 * second
	l.ConfigureChain(flows, func(c *proto.Configure) {
		if c.Node == 1 {
			c.Switches = []proto.Switch{{T: down}, {T: up, Up: true}}
		}
	})
	epoch := l.Start(0, end)
	sleepUntil(epoch, down-second/20)
	l.SetLink(0, 1, agenttest.Link{Down: true})
	l.SetLink(1, 2, agenttest.Link{Down: true})
	sleepUntil(epoch, up)
	l.SetLink(0, 1, fast)
	l.SetLink(1, 2, slow)
	rs := l.Finish(epoch, end)
	for id, f := range flows {
		src, dst, relay := agenttest.Result(t, rs, id, proto.Source), agenttest.Result(t, rs, id, proto.Destination), agenttest.Result(t, rs, id, proto.Relay)
		if src.Error != nil || dst.Error != nil || relay.Error != nil || dst.Corrupt != 0 || !src.Finished {
			t.Fatalf("flow %d: source %+v\nrelay %+v\ndestination %+v", id, src, relay, dst)
		}
		// What the relay held: it had passed on a part of the 2 Mb/s that flows share.
		if f.Options.Bundle.Disk {
			if !dst.Finished || dst.Blocks != bundles || counter(relay, "bundle_restored") == 0 {
				t.Errorf("from disk: relay %+v\ndestination %+v", relay, dst)
			}
		} else if dst.Finished || dst.Blocks >= bundles || counter(relay, "bundle_restored") != 0 {
			t.Errorf("from memory: relay %+v\ndestination %+v", relay, dst)
		}
	}
}

// TestPartition: links that are never up together carry a file all the same.
func TestPartition(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	open, shut := agenttest.Link{Rate: 20 * vtime.MbitPerSecond}, agenttest.Link{Down: true}
	l.SetLink(0, 1, open)
	l.SetLink(1, 2, shut)
	const size = 500_000
	f := l.Flow(proto.Flow{ID: 0, Transport: "bundle/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: size}})
	f.Options.Bundle = &proto.Bundle{Size: 100_000}
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 16 * second
	epoch := l.Start(0, end)
	sleepUntil(epoch, 3*second)
	l.SetLink(0, 1, shut)
	sleepUntil(epoch, 4*second)
	l.SetLink(1, 2, open)
	rs := l.Finish(epoch, end)
	src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
	if !dst.Finished || dst.Total != size || dst.Error != nil || src.Error != nil {
		t.Errorf("source %+v\nrelay %+v\ndestination %+v", src, rs[1].Flows[0], dst)
	}
}
