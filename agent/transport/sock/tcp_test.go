//go:build linux

package sock_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The goodput is what the destination's application got in the measured
// interval, to the byte, and the samples tell the same story.
func TestTCPContinualFlow(t *testing.T) {
	testenv.Need(t, testenv.CC("reno"), testenv.CC("cubic"))
	l := agenttest.New(t, 3, agenttest.Options{})
	const rate = 10 * vtime.MbitPerSecond
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: rate, Queue: 30})
	}
	flows := []proto.Flow{l.Flow(continual(3, "tcp/reno", 0, 2)), l.Flow(continual(4, "tcp/cubic", 2, 0))}
	flows[1].Start = second / 2
	flows[1].Options.DSCP, flows[1].Options.MSS = 16, 1000
	rb := l.ConfigureChain(flows, nil)
	if s := rb[0].Flows; len(s) != 2 || s[0].CC != "reno" || s[0].Side != proto.Source || s[1].CC != "cubic" || s[1].MSS != 1000 {
		t.Errorf("node 0 read back %+v", s)
	}
	const warmup, end = second, 3 * second
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	for i, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if src.Error != nil || dst.Error != nil || dst.Corrupt != 0 {
			t.Fatalf("flow %d: %+v, %+v", f.ID, src, dst)
		}
		if cc := strings.TrimPrefix(f.Transport, "tcp/"); src.CC != cc || dst.CC != cc {
			t.Errorf("flow %d: congestion control %q at the source, %q at the destination", f.ID, src.CC, dst.CC)
		}
		if src.Established < f.Start || src.SetupTime != src.Established.Sub(f.Start) || src.Attempts != 1 {
			t.Errorf("flow %d: established at %v, set-up %v, %d attempts, start %v", f.ID, src.Established, src.SetupTime, src.Attempts, f.Start)
		}
		if dst.MeasuredFrom != warmup || dst.MeasuredTo != end {
			t.Errorf("flow %d: measured [%v, %v)", f.ID, dst.MeasuredFrom, dst.MeasuredTo)
		}
		if dst.Bytes <= 0 || dst.Bytes > dst.Total || goodput(dst) > 1.05*float64(rate) {
			t.Errorf("flow %d: %v of %v in the interval", f.ID, dst.Bytes, dst.Total)
		}
		// Between the samples nearest to the interval's ends lies nearly the same; on a
		// busy host a sample and a reader may be a tenth of a second apart.
		samples := l.Nodes[f.Dst].Samples(f.ID, proto.Destination)
		var from, to proto.Sample
		for _, s := range samples {
			if s.T <= warmup+second/100 {
				from = s
			}
			if s.T <= end+second/100 {
				to = s
			}
		}
		slack := float64(rate) / 8 * (math.Abs(from.T.Sub(warmup).Seconds()) + math.Abs(to.T.Sub(end).Seconds()) + 0.1)
		if diff := math.Abs(float64(to.Delivered - from.Delivered - dst.Bytes)); diff > slack {
			t.Errorf("flow %d: %v in the interval, the samples at %v and %v say %v", f.ID, dst.Bytes, from.T, to.T, to.Delivered-from.Delivered)
		}
		series := l.Nodes[f.Src].Samples(f.ID, proto.Source)
		if len(series) < 15 {
			t.Fatalf("flow %d: %d samples of the source", f.ID, len(series))
		}
		last := series[len(series)-1]
		if last.CwndPackets <= 0 || last.SRTT <= 0 || last.MinRTT <= 0 || last.MinRTT > last.SRTT+vtime.Second || last.RTO <= 0 || last.Sent < last.Acked-1 || last.DeliveredPackets <= 0 || last.CAState == "" || last.SendWindow <= 0 {
			t.Errorf("flow %d: sample %+v", f.ID, last)
		}
		if src.Last == nil || src.Last.Acked < dst.Total/2 || dst.Total > src.Total {
			t.Errorf("flow %d: source %+v, destination total %v", f.ID, src.Last, dst.Total)
		}
		t.Logf("flow %d (%d): %.2f Mb/s, set-up %v, last %+v", f.ID, i, goodput(dst)/1e6, src.SetupTime, *src.Last)
	}
	for _, r := range rs {
		t.Logf("node %d: cpu %v+%v in %v, samples at most %v late", r.Node, r.Facts.CPUUser, r.Facts.CPUSystem, r.Facts.Wall, r.Facts.SampleLateMax)
		counters := map[string]int64{}
		for _, c := range r.Facts.Counters {
			counters[c.Name] = c.Delta
		}
		if r.Node == 1 && counters["Ip.ForwDatagrams"] == 0 || r.Node == 0 && (counters["Tcp.ActiveOpens"] != 1 || counters["Tcp.PassiveOpens"] != 1) {
			t.Errorf("node %d: counters %v", r.Node, r.Facts.Counters)
		}
	}
}

// A flow whose rate is known to the byte: nothing is lost or invented at the
// ends of the interval.
func TestTCPBytesAreExact(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond})
	const size = 1_234_567
	flows := []proto.Flow{l.Flow(sized(0, "tcp/reno", 0, 1, size)), l.Flow(sized(1, "tcp/reno", 0, 1, size))}
	flows[0].Start, flows[1].Start = second/2, second/5
	l.ConfigureChain(flows, nil)
	const end = 4 * second
	epoch := l.Start(second/2, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if !dst.Finished || !src.Finished || dst.Total != size || src.Total != size || src.Error != nil || dst.Error != nil {
			t.Fatalf("flow %d: %+v, %+v", f.ID, src, dst)
		}
		if dst.FinishedAt <= f.Start || src.FinishedAt < dst.FinishedAt {
			t.Errorf("flow %d: finished at %v at the destination, %v at the source", f.ID, dst.FinishedAt, src.FinishedAt)
		}
	}
	if r := agenttest.Result(t, rs, 0, proto.Destination); r.Bytes != size {
		t.Errorf("flow 0 lies within the interval: %v of %v were counted", r.Bytes, vtime.Bytes(size))
	}
	if r := agenttest.Result(t, rs, 1, proto.Destination); r.Bytes <= 0 || r.Bytes >= size {
		t.Errorf("flow 1 begins before the interval: %v of %v were counted", r.Bytes, vtime.Bytes(size))
	}
	finished := 0
	for _, e := range l.Nodes[1].Events() {
		if e.Kind == proto.Finished && e.Side == proto.Destination {
			finished++
		}
	}
	if finished != 2 {
		t.Errorf("the destination told %d ends of flows, want 2: %+v", finished, l.Nodes[1].Events())
	}
}

// Over a link that is down the set-up is an outcome with its own error, not a
// fault; when the link comes up in time the set-up takes as long as that.
func TestTCPSetUpUnderLoss(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Down: true})
	flows := []proto.Flow{l.Flow(continual(0, "tcp/reno", 0, 1)), l.Flow(continual(1, "tcp/reno", 0, 1))}
	flows[0].Options.ConnectWithin = vtime.Second / 2
	l.ConfigureChain(flows, nil)
	const end = 4 * second
	epoch := l.Start(0, end)
	time.Sleep(1200 * time.Millisecond)
	l.SetLink(0, 1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	rs := l.Finish(epoch, end)
	r := agenttest.Result(t, rs, 0, proto.Source)
	if r.Error == nil || r.Error.Code != proto.CodeTimeout || !strings.Contains(r.Error.Error(), "flow 0 set-up") || r.Established != 0 {
		t.Errorf("flow 0: %+v", r)
	}
	if d := agenttest.Result(t, rs, 0, proto.Destination); d.Error != nil || d.Total != 0 {
		t.Errorf("flow 0 at the destination: %+v", d)
	}
	r = agenttest.Result(t, rs, 1, proto.Source)
	if r.Error != nil || r.SetupTime < vtime.Second/2 || agenttest.Result(t, rs, 1, proto.Destination).Total == 0 {
		t.Errorf("flow 1: %+v", r)
	}
	t.Logf("flow 1 stood after %v and %d attempts", r.SetupTime, r.Attempts)
}

// The other end answers the SYN, hears nothing, gives the half-open connection
// up, and resets what comes later: to the flow a failed attempt to connect. The
// flow then stands by another connection, and every byte is counted once.
func TestTCPConnectionThatNeverStood(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	fast := agenttest.Link{Rate: 10 * vtime.MbitPerSecond}
	l.SetDirection(0, 1, fast)
	l.SetDirection(1, 0, agenttest.Link{Rate: fast.Rate, Delay: 300 * vtime.Millisecond})
	f := l.Flow(continual(0, "tcp/reno", 0, 1))
	l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) {
		c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: "net.ipv4.tcp_synack_retries", Value: "0"})
	})
	const end = 9 * second
	epoch := l.Start(0, end)
	// The SYN is on its way when the link towards the destination goes down.
	for passed, _ := l.Frames(0, 1); passed == 0; passed, _ = l.Frames(0, 1) {
		time.Sleep(5 * time.Millisecond)
	}
	l.SetDirection(0, 1, agenttest.Link{Down: true})
	time.Sleep(3 * time.Second)
	l.SetLink(0, 1, fast)
	rs := l.Finish(epoch, end)
	src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
	if src.Error != nil || dst.Error != nil || dst.Total == 0 || dst.Total > src.Total {
		t.Fatalf("source %+v, destination %+v", src, dst)
	}
	if src.Attempts < 2 || src.SetupTime < 3*vtime.Second {
		t.Errorf("the flow stood after %v and %d attempts; the first connection cannot have", src.SetupTime, src.Attempts)
	}
	t.Logf("stood after %v and %d attempts, %v delivered", src.SetupTime, src.Attempts, dst.Total)
}

// The destination's program dies in the middle: the source reports it.
func TestTCPDeathOfTheOtherEnd(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	f := l.Flow(continual(0, "tcp/reno", 0, 1))
	l.ConfigureChain([]proto.Flow{f}, nil)
	l.Start(0, 20*second)
	time.Sleep(time.Second)
	if err := l.Nodes[1].Client.Stop(l.Context(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		for _, e := range l.Nodes[0].Events() {
			if e.Kind == proto.Failed {
				if e.Error.Code != proto.CodeFlow || e.Flow != 0 {
					t.Errorf("event %+v, %v", e, e.Error)
				}
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the source reported nothing within 5 s: %+v", l.Nodes[0].Events())
}

func TestTCPOptionsAreReadBack(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	f := l.Flow(continual(0, "tcp/cubic", 0, 1))
	f.Options = proto.FlowOptions{SendBuffer: 100_000, ReceiveBuffer: 40_000, NotSentLow: 16384, NoDelay: true, MSS: 1024}
	rb := l.ConfigureChain([]proto.Flow{f}, nil)
	for i, r := range rb {
		if len(r.Flows) != 1 || r.Flows[0].SendBuffer != 200_000 || r.Flows[0].ReceiveBuffer != 80_000 || r.Flows[0].MSS != 1024 {
			t.Errorf("node %d read back %+v", i, r.Flows)
		}
	}
	const end = second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	src := agenttest.Result(t, rs, 0, proto.Source)
	if src.Error != nil || src.Last == nil {
		t.Fatalf("%+v", src)
	}
	// The window that the receive buffer allows bounds what the sender sees.
	if src.Last.SendWindow <= 0 || src.Last.SendWindow > 80_000 {
		t.Errorf("the peer's window is %v with a receive buffer of 40 kB", src.Last.SendWindow)
	}
	bad := l.Flow(continual(0, "tcp/cubic", 0, 1))
	bad.Options.ReceiveBuffer = 100
	l2 := agenttest.New(t, 2, agenttest.Options{})
	if _, err := l2.Nodes[0].Client.Configure(l.Context(5*time.Second), l2.Chain(0, []proto.Flow{bad})); err == nil || !strings.Contains(err.Error(), "receive_buffer") {
		t.Errorf("a receive buffer of 100 B: %v", err)
	}
	if _, err := l2.Nodes[0].Client.Configure(l.Context(5*time.Second), l2.Chain(0, []proto.Flow{l.Flow(continual(0, "tcp", 0, 1))})); err == nil || !strings.Contains(err.Error(), "tcp/CC") {
		t.Errorf("tcp without a congestion control: %v", err)
	}
}
