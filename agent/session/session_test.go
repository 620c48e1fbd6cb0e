//go:build linux

package session_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

func wantError(t *testing.T, err error, code proto.Code, parts ...string) {
	t.Helper()
	var e *proto.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v, want one with the code %q", err, code)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

// inside reads a file of the agent's network namespace.
func inside(t *testing.T, n *agenttest.Node, file string) string {
	t.Helper()
	var b []byte
	err := tap.InNamespace(n.Cmd.Process.Pid, func() (err error) {
		b, err = os.ReadFile(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestConfigureReadsBackAndReverts(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	n := l.Nodes[0]
	const redirects = "/proc/sys/net/ipv4/conf/wlan0/send_redirects"
	before := map[string]string{}
	for _, f := range []string{redirects, "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/tcp_no_metrics_save"} {
		before[f] = inside(t, n, f)
	}
	c := l.Chain(0, nil)
	c.MTU = 1400
	r, err := n.Client.Configure(l.Context(5*time.Second), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Interfaces) != 1 || r.Bridge != nil || r.Routes != 1 || r.Neighbours != 1 {
		t.Fatalf("read back %+v", r)
	}
	i := r.Interfaces[0]
	if !i.Up || i.MTU != 1400 || i.HardwareAddress != "02:68:6f:70:00:00" || len(i.Addresses) != 1 || i.Addresses[0] != c.Address {
		t.Errorf("read back %+v", i)
	}
	if len(i.Offloads) == 0 {
		t.Error("the state of the offloads is not recorded")
	}
	for _, o := range i.Offloads {
		if o.On {
			t.Errorf("%s is on", o.Name)
		}
	}
	// "default" was ordered, and the interface existed already: it must have it.
	if v := inside(t, n, redirects); v != "0" {
		t.Errorf("send_redirects of wlan0 is %s", v)
	}
	if v := inside(t, n, "/proc/sys/net/ipv4/ip_forward"); v != "1" {
		t.Errorf("ip_forward is %s", v)
	}
	if _, err := n.Client.Configure(l.Context(5*time.Second), c); err == nil {
		t.Error("a configured node was configured again without a revert")
	}

	// Somebody interferes: the next readback says so.
	err = tap.InNamespace(n.Cmd.Process.Pid, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0) })
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Client.Readback(l.Context(5 * time.Second))
	wantError(t, err, proto.CodeNotApplied, "n01", "net.ipv4.ip_forward", `wanted "1"`, `got "0"`)

	rev, err := n.Client.Revert(l.Context(5 * time.Second))
	if err != nil || len(rev.Failed) > 0 {
		t.Fatalf("revert: %+v, %v", rev, err)
	}
	for f, v := range before {
		if got := inside(t, n, f); got != v {
			t.Errorf("%s is %s after the revert, was %s", f, got, v)
		}
	}
	if s := inside(t, n, "/proc/thread-self/net/route"); strings.Count(s, "\n") != 0 {
		t.Errorf("routes are left:\n%s", s)
	}
	// And again, from the start.
	if _, err := n.Client.Configure(l.Context(5*time.Second), c); err != nil {
		t.Errorf("configure after revert: %v", err)
	}
}

func TestWhatDidNotTakeIsAnError(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	n := l.Nodes[0]
	for _, c := range []struct {
		name   string
		change func(*proto.Configure)
		code   proto.Code
		parts  []string
	}{
		{"another MAC address", func(c *proto.Configure) {
			c.Interfaces[0].HardwareAddress, c.WaitInterfaces = "02:00:00:00:00:07", 100*vtime.Millisecond
		}, proto.CodeNotApplied, []string{"n01", "hardware address of wlan0", `wanted "02:00:00:00:00:07"`, `got "02:68:6f:70:00:00"`}},
		{"a value that the kernel clamps", func(c *proto.Configure) {
			c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "net.ipv4.conf.wlan0.forwarding", Value: "0"}, proto.Sysctl{Key: "net.ipv4.ip_forward", Value: "1"}, proto.Sysctl{Key: "net.ipv4.conf.all.forwarding", Value: "0"})
		}, proto.CodeNotApplied, []string{"n01", "ip_forward", `wanted "1"`, `got "0"`}},
		{"no such setting", func(c *proto.Configure) {
			c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "net.ipv4.no_such_setting", Value: "1"})
		}, proto.CodeUnavailable, []string{"n01", "net.ipv4.no_such_setting"}},
		{"a bad value", func(c *proto.Configure) {
			c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "net.ipv4.ip_forward", Value: "many"})
		}, proto.CodeSystem, []string{"n01", "net.ipv4.ip_forward", "many"}},
		{"a setting outside the network", func(c *proto.Configure) {
			c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "kernel.hostname", Value: "x"})
		}, proto.CodeOrder, []string{"kernel.hostname", "net."}},
		{"a way out of the network's settings", func(c *proto.Configure) {
			c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "net/../kernel/hostname", Value: "x"})
		}, proto.CodeOrder, []string{"net."}},
		{"an interface that never comes", func(c *proto.Configure) {
			c.Interfaces, c.WaitInterfaces = append(c.Interfaces, proto.Interface{Name: "eth9"}), 100*vtime.Millisecond
		}, proto.CodeTimeout, []string{"n01", "eth9", "100ms"}},
		{"an interface that is not there", func(c *proto.Configure) { c.Interfaces[0].Name, c.WaitInterfaces = "wlan9", 0 }, proto.CodeOrder, []string{"n01", "wlan9"}},
		{"loopback as a link", func(c *proto.Configure) { c.Interfaces[0].Name = "lo" }, proto.CodeOrder, []string{"lo is not a link"}},
		{"no interface", func(c *proto.Configure) { c.Interfaces = nil }, proto.CodeOrder, []string{"interfaces", "none is given"}},
		{"an interface twice", func(c *proto.Configure) { c.Interfaces = append(c.Interfaces, c.Interfaces[0]) }, proto.CodeOrder, []string{"wlan0", "twice"}},
		{"a bridge of an interface's name", func(c *proto.Configure) {
			c.Bridge = &proto.Bridge{Name: "wlan0", HardwareAddress: "02:68:6f:70:00:00"}
		}, proto.CodeOrder, []string{"wlan0", "twice"}},
		{"a name that the kernel does not take", func(c *proto.Configure) { c.Interfaces[0].Name = "a-very-long-name" }, proto.CodeOrder, []string{"a-very-long-name", "1 to 15 characters"}},
		{"a port that the board does not have", func(c *proto.Configure) {
			c.Board, c.Ports = &proto.Board{MemFD: 3, EventFD: 4, Nodes: 2, Pipes: []int{0}}, []proto.Port{{Node: 1, Port: 2}}
		}, proto.CodeOrder, []string{"port towards node 1", `wanted "0 to 1", got "2"`}},
		{"a route through an interface that the node does not have", func(c *proto.Configure) { c.Routes[0].Interface = "eth0" }, proto.CodeOrder, []string{"route 10.77.0.2/32 dev eth0", "wlan0"}},
		{"a route through a port of the bridge", func(c *proto.Configure) {
			c.Bridge = &proto.Bridge{Name: "br0", HardwareAddress: "02:68:6f:70:00:00"}
		}, proto.CodeOrder, []string{"10.77.0.2", "one of the interfaces br0", `got "wlan0"`}},
		{"a bridge with a bad address", func(c *proto.Configure) {
			c.Bridge = &proto.Bridge{Name: "br0", HardwareAddress: "02:68"}
		}, proto.CodeOrder, []string{"bridge br0", "02:68"}},
		{"a bad MTU", func(c *proto.Configure) { c.MTU = 20 }, proto.CodeSystem, []string{"mtu of wlan0", `"20"`}},
		{"a foreign flow", func(c *proto.Configure) {
			c.Flows = []proto.Flow{{ID: 1, Transport: "tcp/reno", Src: 1, Dst: 2, SrcAddr: tap.Addr(1), DstAddr: tap.Addr(2), Workload: workload.Spec{Kind: workload.Continual}}}
		}, proto.CodeOrder, []string{"flow 1", "node 0 is neither"}},
		{"an unknown transport", func(c *proto.Configure) {
			c.Flows = []proto.Flow{l.Flow(proto.Flow{ID: 1, Transport: "quic", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})}
		}, proto.CodeOrder, []string{"flow 1", "quic", "tcp"}},
		{"an unknown workload", func(c *proto.Configure) {
			c.Flows = []proto.Flow{l.Flow(proto.Flow{ID: 1, Transport: "tcp/reno", Src: 0, Dst: 1, Workload: workload.Spec{Kind: "gopher"}})}
		}, proto.CodeOrder, []string{"flow 1", `"gopher"`}},
		{"responses without requests", func(c *proto.Configure) {
			c.Flows = exchange(l)[:1]
		}, proto.CodeOrder, []string{"flow 1", "its peer, flow 2, is not among"}},
		{"a direction that does not know the other", func(c *proto.Configure) {
			c.Flows = exchange(l)
			c.Flows[1].Peer = nil
		}, proto.CodeOrder, []string{"flow", "peer"}},
		{"two flows of one direction", func(c *proto.Configure) {
			c.Flows = exchange(l)
			c.Flows[1].Workload.Role = workload.Responses
		}, proto.CodeOrder, []string{"flow 1", "not the opposite direction"}},
		{"an exchange with two seeds", func(c *proto.Configure) {
			c.Flows = exchange(l)
			c.Flows[1].Workload.Seed++
		}, proto.CodeOrder, []string{"flow 1", "another workload"}},
		{"an option of another transport", func(c *proto.Configure) {
			c.Flows = []proto.Flow{l.Flow(proto.Flow{ID: 1, Transport: "tcp/reno", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}, Options: proto.FlowOptions{BlockSize: 1}})}
		}, proto.CodeOrder, []string{"flow 1", "block_size"}},
		{"a congestion control that no kernel has", func(c *proto.Configure) {
			c.Flows = []proto.Flow{l.Flow(proto.Flow{ID: 1, Transport: "tcp/teleport", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})}
		}, proto.CodeUnavailable, []string{"n01", "flow 1", "unavailable on this kernel: teleport", "available: reno", "tcp_teleport"}},
		{"the same at the destination", func(c *proto.Configure) {
			c.Flows = []proto.Flow{l.Flow(proto.Flow{ID: 1, Transport: "tcp/teleport", Src: 1, Dst: 0, Workload: workload.Spec{Kind: workload.Continual}})}
		}, proto.CodeUnavailable, []string{"n01", "flow 1", "unavailable on this kernel: teleport"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := l.Chain(0, nil)
			c.change(cfg)
			_, err := n.Client.Configure(l.Context(5*time.Second), cfg)
			wantError(t, err, c.code, c.parts...)
			// Nothing of a refused configuration is left.
			if v := inside(t, n, "/proc/sys/net/ipv4/tcp_no_metrics_save"); v != "0" {
				t.Errorf("tcp_no_metrics_save is %s after a refused configuration", v)
			}
			if s := inside(t, n, "/proc/thread-self/net/route"); strings.Count(s, "\n") != 0 {
				t.Errorf("routes are left:\n%s", s)
			}
		})
	}
	if _, err := n.Client.Configure(l.Context(5*time.Second), l.Chain(0, nil)); err != nil {
		t.Errorf("a right configuration after all that: %v", err)
	}
}

// exchange is a web exchange between the nodes 0 and 1.
func exchange(l *agenttest.Lab) []proto.Flow {
	web := workload.Spec{Kind: workload.Web, Role: workload.Responses, Web: &workload.WebSpec{Objects: 1, MeanSize: 1000, MaxSize: 1000, PageObjects: 1, Request: 100}}
	a := l.Flow(proto.Flow{ID: 1, Transport: "tcp/reno", Src: 0, Dst: 1, Workload: web, Peer: new(2)})
	web.Role = workload.Requests
	return []proto.Flow{a, l.Flow(proto.Flow{ID: 2, Transport: "tcp/reno", Src: 1, Dst: 0, Workload: web, Peer: new(1)})}
}

func TestOrdersOutOfTurn(t *testing.T) {
	l := agenttest.New(t, 1, agenttest.Options{NoDevices: true})
	c := l.Nodes[0].Client
	ctx := l.Context(5 * time.Second)
	wantError(t, c.Start(ctx, proto.Start{EpochNS: 1 << 62, End: 1}), proto.CodeOrder, "start", "not configured")
	wantError(t, c.Stop(ctx), proto.CodeOrder, "running")
	_, err := c.Collect(ctx)
	wantError(t, err, proto.CodeOrder, "stopped")
	_, err = c.Readback(ctx)
	wantError(t, err, proto.CodeOrder, "configured")
	before := probe.MonotonicNS()
	ck, err := c.Clock(ctx)
	if err != nil || ck.MonotonicNS < before || ck.MonotonicNS > probe.MonotonicNS() {
		t.Errorf("clock %v, %v", ck, err)
	}
	if err := c.Bye(ctx); err != nil {
		t.Errorf("bye: %v", err)
	}
	select {
	case <-l.Nodes[0].Exited:
	case <-time.After(5 * time.Second):
		t.Fatal("the agent is still there after bye")
	}
	if s := l.Nodes[0].Cmd.ProcessState; s.ExitCode() != 0 {
		t.Errorf("after bye the agent ended with %v", s)
	}
}

func TestStartRefusesTheImpossible(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.ConfigureChain(nil, nil)
	c, ctx := l.Nodes[0].Client, l.Context(5*time.Second)
	wantError(t, c.Start(ctx, proto.Start{EpochNS: probe.MonotonicNS() - 50e6, Warmup: 0, End: vtime.Time(vtime.Second)}), proto.CodeTimeout, "too late")
	wantError(t, c.Start(ctx, proto.Start{EpochNS: probe.MonotonicNS() + 1e9, Warmup: 5, End: 5}), proto.CodeOrder, "empty")
}

// The controller dies while flows run at full speed: every agent must be gone
// within seconds, and the namespace with it.
func TestAgentDiesWhenItsInputEnds(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond, Queue: 20})
	f := l.Flow(proto.Flow{ID: 0, Transport: "tcp/reno", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	l.Start(0, vtime.Time(vtime.Minute))
	time.Sleep(600 * time.Millisecond)
	begin := time.Now()
	for _, n := range l.Nodes {
		n.Stdin.Close()
	}
	for _, n := range l.Nodes {
		select {
		case <-n.Exited:
		case <-time.After(5 * time.Second):
			t.Fatalf("node %d lives on %v after its input ended", n.ID, time.Since(begin))
		}
		if n.Cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("node %d ended with %v", n.ID, n.Cmd.ProcessState)
		}
	}
	t.Logf("both agents were gone after %v", time.Since(begin))
}

// The same when nobody reads what the agent writes any more: a full pipe must
// not keep it alive.
func TestAgentDiesWithAFullOutput(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Root)
	cmd := reexec.Command(session.Part, nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	// 64 KiB of replies fill the pipe.
	for seq := uint64(1); seq <= 900; seq++ {
		line, err := proto.EncodeEnvelope(seq, proto.TypeHello, proto.Hello{}, nil)
		if err == nil {
			_, err = in.Write(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	in.Close()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case <-exited:
	case <-time.After(8 * time.Second):
		t.Error("the agent lives on although its input has ended")
		cmd.Process.Kill()
		<-exited
	}
}

func TestTerminationRevertsAndInterruptIsIgnored(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.ConfigureChain(nil, nil)
	n := l.Nodes[0]
	if err := n.Cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if _, err := n.Client.Readback(l.Context(5 * time.Second)); err != nil {
		t.Fatalf("after an interrupt: %v", err)
	}
	// The namespace outlives the agent while this descriptor is open.
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := n.Cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-n.Exited
	forward := make(chan string, 1)
	go func() {
		lockAndEnter(int(ns.Fd()))
		b, err := os.ReadFile("/proc/thread-self/net/route")
		forward <- fmt.Sprint(string(b), err)
	}()
	if s := <-forward; strings.Count(s, "\n") != 1 {
		t.Errorf("after SIGTERM the routes are\n%s", s)
	}
}

// An agent with no rights outside its user namespace configures a node and
// runs every transport all the same.
func TestWithoutRightsOnTheHost(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{UserNS: true, Board: true})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	}
	var flows []proto.Flow
	for id, tr := range []string{"tcp/cubic", "hop", "hop-by-hop-tcp/reno", "udp"} {
		f := l.Flow(proto.Flow{ID: id, Transport: tr, Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}})
		switch tr {
		case "hop":
			f.Options.BlockSize = 64 * vtime.KiB
		case "udp":
			f.Options.Rate = vtime.MbitPerSecond
		}
		flows = append(flows, f)
	}
	l.ConfigureChain(flows, nil)
	const end = vtime.Time(3 * vtime.Second)
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if src.Error != nil || dst.Error != nil || dst.Bytes == 0 || dst.Corrupt != 0 {
			t.Errorf("%s: source %+v, destination %+v", f.Transport, src, dst)
		}
		t.Logf("%s: %.2f Mb/s", f.Transport, float64(dst.Bytes)*8/3e6)
	}
	for _, r := range rs {
		if r.Facts.Samples < 10 || r.Facts.SampleLateMax < r.Facts.SampleLateP99 || r.Facts.SampleLateP99 < 0 {
			t.Errorf("facts %+v", r.Facts)
		}
	}
}
