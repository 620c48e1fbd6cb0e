//go:build linux

package session_test

import (
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A link that the kernel emulates holds a flow to its rate, is read back, and
// counts what passed in the run alone.
func TestKernelEmulatedLink(t *testing.T) {
	needShapers(t)
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 50 * vtime.MbitPerSecond})
	const rate, end = 4 * vtime.MbitPerSecond, vtime.Time(3 * vtime.Second)
	f := l.Flow(proto.Flow{ID: 0, Transport: "tcp/cubic", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})
	rb := l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) {
		if c.Node == 0 {
			c.Shapers = []tc.Link{{Interface: tap.Interface, Egress: []tc.Class{{Shape: tc.Shape{Rate: rate}}}}}
		}
	})
	if s := rb[0].Shapers; len(s) != 1 || len(s[0].Egress) != 1 || s[0].Egress[0].Rate != rate || s[0].Egress[0].Limit == 0 {
		t.Errorf("read back %+v", s)
	}
	rs := l.Finish(l.Start(0, end), end)
	got := received(t, rs, 0)
	if most := vtime.Bytes(int64(rate) * int64(end) / int64(vtime.Second) / 8); got == 0 || got > most {
		t.Errorf("%d bytes came, want at most the %d of the link's rate", got, most)
	}
	c := rs[0].Facts.Shapers
	if len(c) != 1 || c[0].Bytes < uint64(got) || c[0].Interface != tap.Interface {
		t.Fatalf("counters %+v, with %d bytes received (missing: %v)", c, got, rs[0].Facts.Missing)
	}
	if len(rs[1].Facts.Shapers) != 0 {
		t.Errorf("the other node counts %+v", rs[1].Facts.Shapers)
	}

	// Somebody changes it: the next look says so.
	n := l.Nodes[0]
	err := tap.InNamespace(n.Cmd.Process.Pid, func() error {
		_, err := tc.Apply(&tc.Link{Interface: tap.Interface, Egress: []tc.Class{{Shape: tc.Shape{Rate: 2 * rate}}}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Client.Readback(l.Context(5 * time.Second))
	wantError(t, err, proto.CodeNotApplied, "n01", "emulated link at wlan0", "rate", `wanted "500000"`)
	if rev, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil || len(rev.Failed) > 0 {
		t.Errorf("%+v, %v", rev, err)
	}
}

func TestShapersOfOtherInterfacesAreRefused(t *testing.T) {
	l := agenttest.New(t, 1, agenttest.Options{})
	one := []tc.Class{{Shape: tc.Shape{Rate: vtime.MbitPerSecond}}}
	for name, links := range map[string][]tc.Link{
		"another interface": {{Interface: "eth7", Egress: one}},
		"twice":             {{Interface: tap.Interface, Egress: one}, {Interface: tap.Interface, Ingress: one}},
	} {
		c := l.Chain(0, nil)
		c.Shapers = links
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), c)
		if err == nil {
			t.Errorf("%s was taken", name)
			continue
		}
		wantError(t, err, proto.CodeOrder, "n01", "emulated link")
	}
}
