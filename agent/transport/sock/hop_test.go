//go:build linux

package sock_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Blocks cross three lossy hops intact: over an emulated radio with its queue
// board, and over plain sockets.
func TestHopMovesBlocksIntactOverLossyHops(t *testing.T) {
	for name, c := range map[string]struct {
		opt  agenttest.Options
		rate vtime.BitRate
	}{"board": {agenttest.Options{Board: true}, 40 * vtime.MbitPerSecond}, "socket": {agenttest.Options{}, 0}} {
		t.Run(name, func(t *testing.T) {
			l := agenttest.New(t, 4, c.opt)
			for i := range 3 {
				l.SetLink(i, i+1, agenttest.Link{Rate: c.rate, Loss: 0.02, BulkLoss: 0.25})
			}
			flows := []proto.Flow{
				l.Flow(sized(0, "hop", 0, 3, 3_000_000)),
				l.Flow(sized(1, "hop", 3, 0, 10_000)), // a micro-block the other way
			}
			l.ConfigureChain(flows, nil)
			const end = 8 * second
			epoch := l.Start(0, end)
			rs := l.Finish(epoch, end)
			for _, f := range flows {
				src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
				if !dst.Finished || dst.Total != f.Workload.Size || dst.Corrupt != 0 || dst.Error != nil || src.Error != nil {
					t.Errorf("flow %d: destination %+v, source %+v", f.ID, dst, src)
				}
				if dst.Bytes != f.Workload.Size {
					t.Errorf("flow %d: %v were counted in the whole run, want %v", f.ID, dst.Bytes, f.Workload.Size)
				}
				// The end-to-end acknowledgement may be lost; the source then asks
				// after 60 s only.
				if src.Finished && (src.FinishedAt < dst.FinishedAt || src.Blocks != dst.Blocks) {
					t.Errorf("flow %d: the source finished at %v with %d blocks, the destination at %v with %d", f.ID, src.FinishedAt, src.Blocks, dst.FinishedAt, dst.Blocks)
				}
			}
			if l := agenttest.Result(t, rs, 0, proto.Source).Last; l.RetransPackets == 0 || l.Sent <= 3_000_000 {
				t.Errorf("over lossy links the source repeated %d packets and sent %v", l.RetransPackets, l.Sent)
			}
			for _, r := range rs {
				t.Logf("node %d: cpu %v+%v, hop %v", r.Node, r.Facts.CPUUser, r.Facts.CPUSystem, r.Facts.Hop)
			}
		})
	}
}

// The queue board is Hop's flow control: a continual flow keeps the slow
// radio's queue filled and never overflows it.
func TestHopFillsTheQueueAndNeverOverflowsIt(t *testing.T) {
	const limit = 20
	l := agenttest.New(t, 2, agenttest.Options{Board: true, QueueLimit: limit})
	const rate = 8 * vtime.MbitPerSecond
	l.SetLink(0, 1, agenttest.Link{Rate: rate, Queue: limit})
	f := l.Flow(continual(0, "hop", 0, 1))
	l.ConfigureChain([]proto.Flow{f}, func(c *proto.Configure) { c.Hop = json.RawMessage(`{"BlockSize": 262144}`) })
	const warmup, end = second, 4 * second
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	dst := agenttest.Result(t, rs, 0, proto.Destination)
	if dst.Error != nil || dst.MeasuredFrom != warmup || dst.MeasuredTo != end {
		t.Fatalf("destination: %+v", dst)
	}
	starved := false // the hub was so late that frames were taken for lost
	for _, c := range rs[0].Facts.Hop {
		starved = starved || c.Name == "hop_never_queued"
	}
	if _, lost := l.Frames(0, 1); lost > 0 && !starved {
		t.Errorf("%d frames overflowed a queue of %d", lost, limit)
	}
	// 1,400 of 1,482 bytes of each frame are payload; the rest of the time goes
	// to the exchange of BSYN and BACK.
	best := float64(rate) * 1400 / 1482
	t.Logf("goodput %.2f Mb/s of at most %.2f; facts %+v", goodput(dst)/1e6, best/1e6, rs[0].Facts)
	if goodput(dst) < 0.2*best || goodput(dst) > 1.05*best {
		t.Errorf("goodput %.2f Mb/s, want nearly %.2f", goodput(dst)/1e6, best/1e6)
	}
	samples := l.Nodes[1].Samples(0, proto.Destination)
	if len(samples) < 30 {
		t.Errorf("%d samples in 4 s, want about 40", len(samples))
	}
	for i := 1; i < len(samples); i++ {
		if samples[i].Delivered < samples[i-1].Delivered || samples[i].T <= samples[i-1].T {
			t.Errorf("sample %d runs backwards: %+v after %+v", i, samples[i], samples[i-1])
		}
	}
	if src := l.Nodes[0].Samples(0, proto.Source); len(src) < 30 || src[len(src)-1].DataFrames == 0 || src[len(src)-1].BlocksDone == 0 {
		t.Errorf("the source's samples say nothing: %+v", src[len(src)-1])
	}
}

// A flow that stops before the end of the run leaves the network quiet.
func TestHopFlowStopsOnSchedule(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{Board: true})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 10 * vtime.MbitPerSecond})
	}
	f := l.Flow(continual(0, "hop", 0, 2))
	f.Start, f.Stop, f.Options.BlockSize = second/2, second, 64*vtime.KiB
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 3 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, s := range l.Nodes[0].Samples(0, proto.Source) {
		if s.T < f.Start && s.Sent > 0 || s.T > f.Stop.Add(vtime.Second/5) && s.Sent != agenttest.Result(t, rs, 0, proto.Source).Last.Sent {
			t.Errorf("at %v the source had sent %v", s.T, s.Sent)
		}
	}
	dst := agenttest.Result(t, rs, 0, proto.Destination)
	if dst.Total == 0 || dst.Error != nil {
		t.Errorf("destination %+v", dst)
	}
	// The relay still holds a block then: what comes late does not count.
	for _, s := range l.Nodes[2].Samples(0, proto.Destination) {
		if s.T >= f.Stop && s.Delivered != dst.Total {
			t.Errorf("at %v, after the flow's end, %v were delivered; in the end %v", s.T, s.Delivered, dst.Total)
		}
	}
}

func TestHopRefusesNonsense(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	for name, c := range map[string]struct {
		flow proto.Flow
		hop  string
		want string
	}{
		"unknown variant":    {l.Flow(continual(0, "hop/no-gravity", 0, 1)), "", "no-gravity"},
		"unknown field":      {l.Flow(continual(0, "hop", 0, 1)), `{"Gravity": 1}`, "Gravity"},
		"value out of range": {l.Flow(continual(0, "hop", 0, 1)), `{"H": 0}`, "H = 0"},
		"foreign option":     {func() proto.Flow { f := l.Flow(continual(0, "hop", 0, 1)); f.Options.MSS = 500; return f }(), "", "mss"},
		"a block of 2 MiB": {func() proto.Flow {
			f := l.Flow(continual(0, "hop", 0, 1))
			f.Options.BlockSize = 2 * vtime.MiB
			return f
		}(), "", "block_size"},
		"workload of nothing": {proto.Flow{ID: 0, Transport: "hop", Src: 0, Dst: 1, SrcAddr: l.Flow(continual(0, "hop", 0, 1)).SrcAddr, DstAddr: l.Flow(continual(0, "hop", 0, 1)).DstAddr, Workload: workload.Spec{}}, "", "workload"},
	} {
		cfg := l.Chain(0, []proto.Flow{c.flow})
		if c.hop != "" {
			cfg.Hop = json.RawMessage(c.hop)
		}
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.want)
		}
	}
}
