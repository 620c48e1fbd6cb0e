//go:build linux

package session_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// received returns what a flow delivered, which must be without fault.
func received(t *testing.T, rs []*proto.Results, flow int) vtime.Bytes {
	t.Helper()
	src, dst := agenttest.Result(t, rs, flow, proto.Source), agenttest.Result(t, rs, flow, proto.Destination)
	if src.Error != nil || dst.Error != nil || dst.Corrupt != 0 {
		t.Errorf("flow %d: source %+v, destination %+v", flow, src, dst)
	}
	return dst.Bytes
}

// A station at a radio, a server at a wire, and between them a node that routes
// from one to the other: each interface has the node's one address.
func TestRouterBetweenRadioAndWire(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{Wires: [][2]int{{1, 2}}, WiredOnly: []int{2}})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	}
	const end = vtime.Time(2 * vtime.Second)
	flows := []proto.Flow{
		l.Flow(proto.Flow{ID: 0, Transport: "tcp/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}}),
		l.Flow(proto.Flow{ID: 1, Transport: "tcp/cubic", Src: 2, Dst: 0, Workload: workload.Spec{Kind: workload.Continual}}),
		l.Flow(proto.Flow{ID: 2, Transport: "hop-by-hop-tcp/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}}),
	}
	rb := l.ConfigureChain(flows, nil)
	names := func(i int) (out []string) {
		for _, s := range rb[i].Interfaces {
			if !slices.Equal(s.Addresses, []netip.Prefix{l.Chain(i, nil).Address}) {
				t.Errorf("node %d: %s has the addresses %v", i, s.Name, s.Addresses)
			}
			for _, o := range s.Offloads {
				if o.On {
					t.Errorf("node %d: %s of %s is on", i, o.Name, s.Name)
				}
			}
			out = append(out, s.Name)
		}
		return out
	}
	for i, want := range []string{"wlan0", "wlan0 eth0", "eth0"} {
		if got := strings.Join(names(i), " "); got != want {
			t.Errorf("node %d has the interfaces %s, want %s", i, got, want)
		}
	}
	if rb[1].Routes != 2 || rb[1].Neighbours != 2 || rb[2].Neighbours != 1 {
		t.Errorf("the router has %d routes and %d neighbours, the server %d neighbours", rb[1].Routes, rb[1].Neighbours, rb[2].Neighbours)
	}
	if v := inside(t, l.Nodes[1], "/proc/sys/net/ipv4/conf/eth0/send_redirects"); v != "0" {
		t.Errorf("send_redirects of eth0 is %s", v)
	}
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		if received(t, rs, f.ID) == 0 {
			t.Errorf("flow %d got nothing through", f.ID)
		}
	}
	for _, c := range rs[1].Facts.Counters {
		if c.Name == "Ip.ForwDatagrams" && c.Delta > 0 {
			return
		}
	}
	t.Errorf("the router forwarded nothing: %+v", rs[1].Facts.Counters)
}

// A bridge passes frames on by its static table, without touching the packets,
// and sends nothing of its own. It is a node all the same.
func TestBridge(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{Wires: [][2]int{{0, 1}, {1, 2}}, WiredOnly: []int{0, 1, 2}, Bridges: []int{1}})
	const end = vtime.Time(2 * vtime.Second)
	flows := []proto.Flow{
		l.Flow(proto.Flow{ID: 0, Transport: "tcp/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}}),
		l.Flow(proto.Flow{ID: 1, Transport: "tcp/cubic", Src: 1, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}}),
	}
	// The bridge takes no part in the flow that it only passes on.
	flows[0].Path = []int{0, 2}
	rb := l.ConfigureChain(flows[:1], func(c *proto.Configure) {
		if c.Node == 1 {
			c.Flows = nil
		}
	})
	b := rb[1].Bridge
	if b == nil || !slices.Equal(b.Ports, []string{"eth0", "eth1"}) || b.Forward != 2 || b.HardwareAddress != tap.HardwareAddr(1).String() || len(b.Addresses) != 1 || b.MTU != tap.MTU {
		t.Fatalf("the bridge reads back %+v", b)
	}
	for _, i := range rb[1].Interfaces {
		if len(i.Addresses) != 0 {
			t.Errorf("port %s has the addresses %v", i.Name, i.Addresses)
		}
	}
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	if received(t, rs, 0) == 0 {
		t.Error("nothing came over the bridge")
	}
	for _, c := range rs[1].Facts.Counters {
		if c.Name == "Ip.ForwDatagrams" {
			t.Errorf("the bridge routed %d packets", c.Delta)
		}
	}
	if n := l.Stray(); n != 0 {
		t.Errorf("%d frames came that no flow sent", n)
	}

	// Again, with the bridge as a flow's source.
	for _, n := range l.Nodes {
		if rev, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil || len(rev.Failed) > 0 {
			t.Fatalf("node %d: revert: %+v, %v", n.ID, rev, err)
		}
	}
	if dev := inside(t, l.Nodes[1], "/proc/thread-self/net/dev"); strings.Contains(dev, "br0") {
		t.Errorf("the bridge is left after the revert:\n%s", dev)
	}
	l.ConfigureChain(flows[1:], nil)
	epoch = l.Start(0, end)
	rs = l.Finish(epoch, end)
	if received(t, rs, 1) == 0 {
		t.Error("nothing came from the bridge itself")
	}
}

// Bridges, windows and caps need no rights outside a user namespace. Only a cap
// stays in the kernel until the namespace ends, so another one is refused.
func TestBridgeAndCapsWithoutRightsOnTheHost(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{UserNS: true, Wires: [][2]int{{0, 1}, {1, 2}}, WiredOnly: []int{0, 1, 2}, Bridges: []int{1}})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Delay: 5 * vtime.Millisecond})
	}
	const end, cap = vtime.Time(vtime.Second), 4
	f := l.Flow(proto.Flow{ID: 0, Transport: "tcp/cubic", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}})
	f.Path, f.Options.ReceiveWindow, f.Options.CwndCap = []int{0, 2}, 10, cap
	capped := func(n int) func(c *proto.Configure) {
		return func(c *proto.Configure) {
			for i := range c.Routes {
				if c.Node == 0 && c.Routes[i].Dst.Addr() == f.DstAddr {
					c.Routes[i].CwndCap = n
				}
			}
			if c.Node == 1 {
				c.Flows = nil
			}
		}
	}
	for range 2 {
		l.ConfigureChain([]proto.Flow{f}, capped(cap))
		rs := l.Finish(l.Start(0, end), end)
		if received(t, rs, 0) == 0 {
			t.Error("nothing came")
		}
		if last := agenttest.Result(t, rs, 0, proto.Source).Last; last == nil || last.CwndPackets != cap {
			t.Errorf("the source's last state is %+v, want a window of %d", last, cap)
		}
		for _, n := range l.Nodes {
			if rev, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil || len(rev.Failed) > 0 {
				t.Errorf("node %d: revert: %+v, %v", n.ID, rev, err)
			}
		}
	}
	for _, other := range []int{0, 9} {
		f.Options.CwndCap = other
		c := l.Chain(0, []proto.Flow{f})
		capped(other)(c)
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), c)
		wantError(t, err, proto.CodeOrder, "n01", "cap of the congestion window to 10.77.0.3", `got "4"`, "start the agent anew")
	}
}

// Whatever changes the bridge during a run, the comparison names it.
func TestBridgeIsReadBack(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{Wires: [][2]int{{0, 1}, {1, 2}}, WiredOnly: []int{0, 1, 2}, Bridges: []int{1}})
	n := l.Nodes[1]
	for _, c := range []struct {
		name   string
		change func() error
		parts  []string
	}{
		{"learning", func() error {
			return onLink("eth1", func(k netlink.Link) error { return netlink.LinkSetLearning(k, true) })
		}, []string{"learning of bridge port eth1", `wanted "off"`}},
		{"flooding", func() error {
			return onLink("eth0", func(k netlink.Link) error { return netlink.LinkSetFlood(k, true) })
		}, []string{"unicast flooding of bridge port eth0"}},
		{"hairpin", func() error {
			return onLink("eth0", func(k netlink.Link) error { return netlink.LinkSetHairpin(k, true) })
		}, []string{"hairpin of bridge port eth0"}},
		{"spanning tree", func() error { return onLink("br0", spanningTree) }, []string{"spanning tree of br0"}},
		{"a port that left", func() error { return onLink("eth1", netlink.LinkSetNoMaster) }, []string{"bridge of eth1"}},
		{"a bridge that is down", func() error { return onLink("br0", netlink.LinkSetDown) }, []string{"state of br0", `got "down"`}},
		{"no bridge", func() error { return onLink("br0", netlink.LinkDel) }, []string{"interface br0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := n.Client.Configure(l.Context(5*time.Second), l.Chain(1, nil)); err != nil {
				t.Fatal(err)
			}
			if err := tap.InNamespace(n.Cmd.Process.Pid, c.change); err != nil {
				t.Fatal(err)
			}
			_, err := n.Client.Readback(l.Context(5 * time.Second))
			wantError(t, err, proto.CodeNotApplied, append(c.parts, "n02")...)
			if rev, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil || len(rev.Failed) > 0 {
				t.Fatalf("revert: %+v, %v", rev, err)
			}
		})
	}
	// An interface of the bridge's name that somebody else made is not touched.
	err := tap.InNamespace(n.Cmd.Process.Pid, func() error {
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Client.Configure(l.Context(5*time.Second), l.Chain(1, nil))
	wantError(t, err, proto.CodeOrder, "bridge br0", "exists")
	if dev := inside(t, n, "/proc/thread-self/net/dev"); !strings.Contains(dev, "br0") {
		t.Error("somebody else's interface is gone")
	}
}

func onLink(name string, f func(netlink.Link) error) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return f(link)
}

// spanningTree switches it on.
func spanningTree(link netlink.Link) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(link.Attrs().Index)
	req.AddData(msg)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("bridge"))
	info.AddRtAttr(nl.IFLA_INFO_DATA, nil).AddRtAttr(nl.IFLA_BR_STP_STATE, nl.Uint32Attr(1))
	req.AddData(info)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
