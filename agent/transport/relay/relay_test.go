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

func TestMain(m *testing.M) { agenttest.Main(m) }

const second = vtime.Time(vtime.Second)

// node0 ─ node1 ─ node2 ─(slow)─ node3: the relays before the slow hop fill to
// their bound and no further, and the source is stopped.
func TestSlowLastHopFillsRelaysToTheirBound(t *testing.T) {
	l := agenttest.New(t, 4, agenttest.Options{})
	fast, slow := agenttest.Link{Rate: 40 * vtime.MbitPerSecond}, agenttest.Link{Rate: 1 * vtime.MbitPerSecond}
	l.SetLink(0, 1, fast)
	l.SetLink(1, 2, fast)
	l.SetLink(2, 3, slow)
	f := l.Flow(proto.Flow{ID: 5, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 3, Workload: workload.Spec{Kind: workload.Continual}})
	const bound = 128 * vtime.KiB
	f.Options.RelayBuffer = bound
	rb := l.ConfigureChain([]proto.Flow{f}, nil)
	for i, r := range rb {
		if len(r.Flows) != 1 || r.Flows[0].CC != "reno" {
			t.Errorf("node %d read back %+v", i, r.Flows)
		}
	}
	if s := rb[1].Flows[0]; s.Side != proto.Relay || s.SendBuffer != bound/4 {
		t.Errorf("the relay's send buffer is %v, want %v", s.SendBuffer, bound/4)
	}
	const warmup, end = second, 5 * second
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	src, dst := agenttest.Result(t, rs, 5, proto.Source), agenttest.Result(t, rs, 5, proto.Destination)
	if src.Error != nil || dst.Error != nil || dst.Bytes == 0 || dst.Corrupt != 0 {
		t.Fatalf("source %+v, destination %+v", src, dst)
	}
	if mbps := float64(dst.Bytes) * 8 / 4e6; mbps > 1 {
		t.Errorf("%.2f Mb/s over a hop of 1 Mb/s", mbps)
	}
	for _, i := range []int{1, 2} {
		r := rs[i].Flows[0]
		if r.Side != proto.Relay || r.Error != nil || r.CC != "reno" {
			t.Errorf("relay %d: %+v", i, r)
		}
		if r.MaxHeld > bound || r.MaxHeld < bound/4 {
			t.Errorf("relay %d held at most %v, want nearly and never more than %v", i, r.MaxHeld, bound)
		}
		samples := l.Nodes[i].Samples(5, proto.Relay)
		if len(samples) < 4 { // relays are sampled once a second
			t.Errorf("relay %d: %d samples", i, len(samples))
		}
		for _, s := range samples {
			if s.Held > bound {
				t.Errorf("relay %d holds %v at %v", i, s.Held, s.T)
			}
		}
		if last := samples[len(samples)-1]; last.CwndPackets == 0 || last.SRTT == 0 {
			t.Errorf("relay %d: its connection is not sampled: %+v", i, last)
		}
		t.Logf("relay %d: %v passed on, at most %v held", i, r.Total, r.MaxHeld)
	}
	// Everything that the source's transport took is accounted for.
	if inside := src.Total - dst.Total; inside < 0 || inside > 8*vtime.MiB {
		t.Errorf("the source gave %v, the destination got %v", src.Total, dst.Total)
	}
}

func TestSizedFlowCompletesThroughRelays(t *testing.T) {
	l := agenttest.New(t, 4, agenttest.Options{})
	for i := range 3 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Loss: 0.01})
	}
	const size = 800_001
	var flows []proto.Flow
	for id, ends := range [][2]int{{0, 3}, {3, 0}, {1, 2}} {
		flows = append(flows, l.Flow(proto.Flow{ID: id, Transport: "hop-by-hop-tcp/cubic", Src: ends[0], Dst: ends[1], Workload: workload.Spec{Kind: workload.Sized, Size: size}}))
	}
	l.ConfigureChain(flows, nil)
	const end = 6 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if !src.Finished || !dst.Finished || dst.Bytes != size || dst.Corrupt != 0 || src.Error != nil || dst.Error != nil {
			t.Errorf("flow %d: source %+v, destination %+v", f.ID, src, dst)
		}
		if src.FinishedAt < dst.FinishedAt {
			t.Errorf("flow %d: the source believes at %v what happened at %v", f.ID, src.FinishedAt, dst.FinishedAt)
		}
	}
	if r := agenttest.Result(t, rs, 0, proto.Relay); !r.Finished || r.Total != size || r.Error != nil {
		t.Errorf("relay: %+v", r)
	}
}

func failed(t *testing.T, n *agenttest.Node, within time.Duration) proto.Event {
	t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, e := range n.Events() {
			if e.Kind == proto.Failed {
				return e
			}
		}
	}
	t.Fatalf("node %d told no failure within %v: %+v", n.ID, within, n.Events())
	return proto.Event{}
}

// A relay's failure reaches the source, with the name of the node that saw it.
func TestFailureIsPassedOnToTheSource(t *testing.T) {
	l := agenttest.New(t, 4, agenttest.Options{})
	for i := range 3 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	}
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 3, Workload: workload.Spec{Kind: workload.Continual}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	l.Start(0, 30*second)
	time.Sleep(time.Second)
	// The destination's agent gives up: its kernel resets the connection of n03.
	if err := l.Nodes[3].Client.Stop(l.Context(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	e := failed(t, l.Nodes[0], 5*time.Second)
	if e.Side != proto.Source || !strings.Contains(e.Error.Error(), "node n03") || !strings.Contains(e.Error.Error(), "reset") {
		t.Errorf("the source says: %v", e.Error)
	}
	if r := failed(t, l.Nodes[1], time.Second); r.Side != proto.Relay || !strings.Contains(r.Error.Error(), "n03") {
		t.Errorf("relay n02 says: %v", r.Error)
	}
}

// The source's end in the middle of its data must not look like a completed
// file at the destination.
func TestSourceFailureIsPassedOnToTheDestination(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 4 * vtime.MbitPerSecond})
	}
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: 100 * vtime.MB}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	l.Start(0, 30*second)
	time.Sleep(time.Second)
	if err := l.Nodes[0].Client.Stop(l.Context(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if e := failed(t, l.Nodes[2], 5*time.Second); e.Side != proto.Destination || e.Error.Code != proto.CodeFlow {
		t.Errorf("the destination says: %+v, %v", e, e.Error)
	}
	if e := failed(t, l.Nodes[1], time.Second); !strings.Contains(e.Error.Error(), "previous hop") {
		t.Errorf("the relay says: %v", e.Error)
	}
}

// The hop behind the relay is down: the set-up that never stood is an outcome
// (timeout), and the relay stops reading at its bound meanwhile.
func TestNextHopThatNeverComes(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	l.SetLink(1, 2, agenttest.Link{Down: true})
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Continual}})
	f.Options.RelayBuffer = 64 * vtime.KiB
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 2 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	if r := rs[1].Flows[0]; r.Error == nil || r.Error.Code != proto.CodeTimeout || r.MaxHeld > 64*vtime.KiB || r.MaxHeld < 16*vtime.KiB {
		t.Errorf("relay: %+v, %v", r, r.Error)
	}
	if d := agenttest.Result(t, rs, 0, proto.Destination); d.Total != 0 || d.Error != nil {
		t.Errorf("destination: %+v", d)
	}
}

func TestRefusals(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	base := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})
	for name, c := range map[string]struct {
		change func(*proto.Flow)
		want   string
	}{
		"no congestion control": {func(f *proto.Flow) { f.Transport = "hop-by-hop-tcp" }, "hop-by-hop-tcp/CC"},
		"unknown one":           {func(f *proto.Flow) { f.Transport = "hop-by-hop-tcp/teleport" }, "unavailable on this kernel: teleport"},
		"no path":               {func(f *proto.Flow) { f.Path = nil }, "path"},
		"tiny buffer":           {func(f *proto.Flow) { f.Options.RelayBuffer = 1000 }, "relay_buffer"},
		"foreign option":        {func(f *proto.Flow) { f.Options.SendBuffer = 1 << 20 }, "send_buffer"},
	} {
		f := base
		c.change(&f)
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), l.Chain(0, []proto.Flow{f}))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "flow 0") {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.want)
		}
	}
}

// The next hop answers the relay's SYN, hears nothing, and gives the half-open
// connection up: the relay tries again, and nothing of the stream is lost.
func TestConnectionThatNeverStoodAtTheNextHop(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	fast := agenttest.Link{Rate: 10 * vtime.MbitPerSecond}
	l.SetLink(0, 1, fast)
	l.SetDirection(1, 2, fast)
	l.SetDirection(2, 1, agenttest.Link{Rate: fast.Rate, Delay: 300 * vtime.Millisecond})
	const size = 300 * vtime.KB
	f := l.Flow(proto.Flow{ID: 0, Transport: "hop-by-hop-tcp/reno", Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: size}})
	l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) {
		c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "net.ipv4.tcp_synack_retries", Value: "0"})
	})
	const end = vtime.Time(10 * vtime.Second)
	epoch := l.Start(0, end)
	for passed, _ := l.Frames(1, 2); passed == 0; passed, _ = l.Frames(1, 2) {
		time.Sleep(5 * time.Millisecond)
	}
	l.SetDirection(1, 2, agenttest.Link{Down: true})
	time.Sleep(3 * time.Second)
	l.SetLink(1, 2, fast)
	rs := l.Finish(epoch, end)
	dst, relay := agenttest.Result(t, rs, 0, proto.Destination), agenttest.Result(t, rs, 0, proto.Relay)
	if relay.Error != nil || dst.Error != nil || !dst.Finished || dst.Total != size {
		t.Fatalf("relay %+v, destination %+v", relay, dst)
	}
	if relay.Attempts < 2 {
		t.Errorf("the relay connected %d times; its first connection cannot have stood", relay.Attempts)
	}
}
