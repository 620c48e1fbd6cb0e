//go:build linux

package sock_test

import (
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TestHopSurvivesARelaysLossOfMemory: a relay is switched off with blocks that it
// alone answers for, and on again: the source has them brought once more, and what
// the relay counted in both of its lives is in its account.
func TestHopSurvivesARelaysLossOfMemory(t *testing.T) {
	const second = vtime.Time(vtime.Second)
	const cut, down, up, end = second, 2 * second, 3 * second, 12 * second
	l := agenttest.New(t, 4, agenttest.Options{Board: true})
	link := agenttest.Link{Rate: 10 * vtime.MbitPerSecond}
	for i := range 3 {
		l.SetLink(i, i+1, link)
	}
	const size = 3 * vtime.MB
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop", Src: 0, Dst: 3, Workload: workload.Spec{Kind: workload.Sized, Size: size}})
	f.Options.BlockSize = 64 * vtime.KiB
	l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) {
		c.Hop = []byte(`{"H":4}`)
		if c.Node == 2 {
			c.Switches = []proto.Switch{{T: down}, {T: up, Up: true}}
		}
	})
	epoch := l.Start(0, end)
	sleepUntil := func(at vtime.Time) { time.Sleep(time.Duration(epoch + int64(at) - probe.MonotonicNS())) }
	sleepUntil(cut)
	l.SetLink(2, 3, agenttest.Link{Down: true}) // the relay fills
	sleepUntil(down - second/10)
	l.SetLink(1, 2, agenttest.Link{Down: true})
	sleepUntil(up + second/10)
	l.SetLink(1, 2, link)
	l.SetLink(2, 3, link)
	rs := l.Finish(epoch, end)
	src, dst, relay := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination), rs[2]
	if !src.Finished || !dst.Finished || dst.Total != size || src.Error != nil || dst.Error != nil {
		t.Fatalf("source %+v\ndestination %+v", src, dst)
	}
	count := func(node int, name string) int64 {
		for _, c := range rs[node].Facts.Hop {
			if c.Name == name {
				return c.Delta
			}
		}
		return 0
	}
	if w := relay.Facts.Switched; len(w) != 2 || w[0].Err != nil || w[1].Err != nil {
		t.Errorf("switched %+v", w)
	}
	if count(0, "hop_tokens") == 0 || count(1, "hop_data_again") == 0 || count(0, "hop_data_again") != 0 || count(2, "hop_data_redundant") != 0 {
		t.Errorf("tokens %d, data sent again by the source %d, by the node before the relay %d, in vain %d",
			count(0, "hop_tokens"), count(0, "hop_data_again"), count(1, "hop_data_again"), count(2, "hop_data_redundant"))
	}
	if n := count(2, "hop_wakeups"); n > 20*int64(size/1400) {
		t.Errorf("the relay woke %d times", n)
	}
	last := int64(0)
	for _, s := range l.Nodes[2].Samples(0, proto.Relay) {
		if s.DataFrames < last {
			t.Errorf("the relay's data frames fall from %d to %d", last, s.DataFrames)
		}
		last = s.DataFrames
	}
	if sent := count(2, "hop_data_sent"); sent < int64(size/1400) {
		t.Errorf("the relay sent %d data packets in both lives", sent)
	}
}
