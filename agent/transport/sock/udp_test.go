//go:build linux

package sock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestUDPConstantRate(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetDirection(1, 2, agenttest.Link{Loss: 0.1})
	f := l.Flow(continual(0, "udp", 0, 2))
	f.Options.Rate, f.Options.PacketSize = vtime.MbitPerSecond, 1000
	f.Start, f.Stop = second/2, 2*second
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 3 * second
	epoch := l.Start(second, end)
	rs := l.Finish(epoch, end)
	src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
	// 1 Mb/s of 1,000 B payload for 1.5 s are 187.5 datagrams.
	if src.DatagramsSent < 180 || src.DatagramsSent > 188 || src.Total != vtime.Bytes(src.DatagramsSent)*1000 {
		t.Errorf("source: %+v", src)
	}
	_, lost := l.Frames(1, 2)
	if dst.Datagrams != src.DatagramsSent-int64(lost) || dst.Total != vtime.Bytes(dst.Datagrams)*1000 || lost == 0 || dst.Duplicates != 0 || dst.Reordered != 0 || dst.Corrupt != 0 || dst.Error != nil {
		t.Errorf("destination: %+v with %d frames lost of %d", dst, lost, src.DatagramsSent)
	}
	if dst.Bytes <= 0 || dst.Bytes >= dst.Total {
		t.Errorf("%v of %v lie in the interval, which begins after the flow", dst.Bytes, dst.Total)
	}
}

// A saturating flow keeps the radio's queue filled, does not overflow it and
// does not spin.
func TestUDPSaturatesTheQueue(t *testing.T) {
	const limit = 30
	l := agenttest.New(t, 2, agenttest.Options{Board: true, QueueLimit: limit})
	const rate = 10 * vtime.MbitPerSecond
	l.SetLink(0, 1, agenttest.Link{Rate: rate, Queue: limit})
	f := l.Flow(continual(0, "udp", 0, 1))
	l.ConfigureChain([]proto.Flow{f}, nil)
	const warmup, end = second / 2, 3 * second
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	dst := agenttest.Result(t, rs, 0, proto.Destination)
	best := float64(rate) * 1400 / 1442
	cpu := rs[0].Facts.CPUUser + rs[0].Facts.CPUSystem
	t.Logf("%.2f Mb/s of %.2f, %d datagrams, the source's agent used %v in %v", goodput(dst)/1e6, best/1e6, dst.Datagrams, cpu, rs[0].Facts.Wall)
	if dst.Error != nil || goodput(dst) > 1.05*best || goodput(dst) < 0.2*best {
		t.Errorf("%+v", dst)
	}
	if cpu > rs[0].Facts.Wall/2 {
		t.Errorf("the source's agent used %v in %v: it spins", cpu, rs[0].Facts.Wall)
	}
	// On a starved machine the hub may be so late that frames are taken for
	// lost; without any flow control nearly all would be.
	if _, lost := l.Frames(0, 1); int64(lost) > dst.Datagrams/4 {
		t.Errorf("%d frames overflowed the queue, %d passed", lost, dst.Datagrams)
	}
}

// Without a queue to look at, a saturating flow is bounded, not spinning.
func TestUDPWithoutABoardDoesNotSpin(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	f := l.Flow(continual(0, "udp", 0, 1))
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 1 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
	if src.DatagramsSent == 0 || src.DatagramsSent > 64*1100 || dst.Datagrams == 0 || dst.Error != nil {
		t.Errorf("%+v, %+v", src, dst)
	}
	t.Logf("%d datagrams sent, %d received, source's agent %v+%v", src.DatagramsSent, dst.Datagrams, rs[0].Facts.CPUUser, rs[0].Facts.CPUSystem)
}

func TestUDPRefusals(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	for name, c := range map[string]struct {
		change func(*proto.Flow)
		want   string
	}{
		"variant":      {func(f *proto.Flow) { f.Transport = "udp/fast" }, "udp/fast"},
		"large packet": {func(f *proto.Flow) { f.Options.PacketSize = 1473 }, "packet_size"},
		"small packet": {func(f *proto.Flow) { f.Options.PacketSize = 15 }, "packet_size"},
		"mss":          {func(f *proto.Flow) { f.Options.MSS = 1000 }, "mss"},
	} {
		f := l.Flow(continual(0, "udp", 0, 1))
		c.change(&f)
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), l.Chain(0, []proto.Flow{f}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.want)
		}
	}
}
