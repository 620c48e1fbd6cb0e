package program_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TestRealPrograms runs the programs of this host between two agents over a link
// of 8 Mb/s and 5 ms, all at once, and beside a TCP flow of the agents' own.
func TestRealPrograms(t *testing.T) {
	testenv.Need(t, testenv.Program("iperf3"), testenv.Program("iperf"))
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 8 * vtime.MbitPerSecond, Delay: 5 * vtime.Millisecond, Queue: 50})
	const warmup, end = second / 2, 5 * second / 2
	names := []string{"tcp/cubic", "iperf3/cubic", "iperf2/cubic", "iperf3/udp", "iperf2/udp"}
	var flows []proto.Flow
	for id, name := range names {
		f := proto.Flow{ID: id, Transport: name, Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}}
		if strings.HasSuffix(name, "udp") {
			f.Options.Rate, f.Options.PacketSize = 500_000, 1000
		}
		flows = append(flows, l.Flow(f))
	}
	sized := proto.Flow{ID: len(flows), Transport: "iperf2/reno", Src: 1, Dst: 0, Start: warmup, Workload: workload.Spec{Kind: workload.Sized, Size: 100 * vtime.KB}}
	flows = append(flows, l.Flow(sized))
	l.ConfigureChain(flows, nil)
	epoch := l.Start(warmup, end)
	rs := l.Finish(epoch, end)
	var sum vtime.Bytes
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		t.Logf("%s: %.2f Mb/s, %d of %d bytes, set up in %v, source %+v %v, destination %+v %v", f.Transport, float64(dst.Bytes)*8/2e6, dst.Total, src.Total, src.SetupTime, src.Counters, src.Error, dst.Counters, dst.Error)
		if src.Error != nil || dst.Error != nil || dst.Bytes == 0 || dst.MeasuredFrom != warmup || dst.MeasuredTo != end {
			t.Errorf("%s: source %+v (%v), destination %+v (%v)", f.Transport, src, src.Error, dst, dst.Error)
		}
		if f.Dst == 1 {
			sum += dst.Bytes
		}
		_, cc, _ := strings.Cut(f.Transport, "/")
		switch {
		case f.ID == sized.ID:
			if !dst.Finished || dst.Total != sized.Workload.Size || !src.Finished {
				t.Errorf("the sized flow: source %+v, destination %+v", src, dst)
			}
		case cc == "udp":
			if dst.Datagrams == 0 || src.DatagramsSent < dst.Datagrams {
				t.Errorf("%s: %d of %d datagrams", f.Transport, dst.Datagrams, src.DatagramsSent)
			}
		case src.CC != cc:
			t.Errorf("%s: the program read back %q", f.Transport, src.CC)
		}
		if f.ID == 0 || f.ID == sized.ID {
			continue
		}
		for n, side := range map[int]proto.Side{0: proto.Source, 1: proto.Destination} {
			samples := l.Nodes[n].Samples(f.ID, side)
			if len(samples) < 5 || len(samples) > 28 { // a busy host begins late
				t.Errorf("%s: %d samples at the %s", f.Transport, len(samples), side)
				continue
			}
			last := samples[len(samples)-1]
			if !last.Sparse || last.Delivered+last.Sent == 0 || cc != "udp" && side == proto.Source && (last.CwndPackets == 0 || last.SRTT == 0) {
				t.Errorf("%s: the last sample at the %s is %+v", f.Transport, side, last)
			}
		}
	}
	if most := vtime.Bytes(8e6 / 8 * 2); sum > most || sum < most/10 {
		t.Errorf("all flows together had %d bytes of %d", sum, most)
	}
}

// TestNetworksThatDoNotLet: a client that never gets through is starved, not
// broken, and one whose link is cut keeps what was before.
func TestNetworksThatDoNotLet(t *testing.T) {
	testenv.Need(t, testenv.Program("iperf3"), testenv.Program("iperf"))
	l := agenttest.New(t, 3, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Rate: 8 * vtime.MbitPerSecond, Loss: 1})
	l.SetLink(1, 2, agenttest.Link{Rate: 8 * vtime.MbitPerSecond})
	var flows []proto.Flow
	for id, f := range []proto.Flow{{Transport: "iperf3/cubic", Src: 0, Dst: 1}, {Transport: "iperf2/cubic", Src: 0, Dst: 1}, {Transport: "iperf3/cubic", Src: 1, Dst: 2}, {Transport: "iperf2/cubic", Src: 1, Dst: 2}} {
		f.ID, f.Workload.Kind = id, workload.Continual
		flows = append(flows, l.Flow(f))
	}
	l.ConfigureChain(flows, nil)
	const end = 3 * second
	epoch := l.Start(0, end)
	time.Sleep(1300 * time.Millisecond) // 300 ms are before the moment 0
	l.SetLink(1, 2, agenttest.Link{Rate: 8 * vtime.MbitPerSecond, Loss: 1})
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		t.Logf("%s: %d bytes; %v; %v", f.Transport, dst.Bytes, src.Error, dst.Error)
		if f.Src == 0 {
			if src.Error == nil || src.Error.Code != proto.CodeTimeout || dst.Error != nil || dst.Total != 0 {
				t.Errorf("%s over a dead link: source %+v (%v), destination %+v (%v)", f.Transport, src, src.Error, dst, dst.Error)
			}
			continue
		}
		if src.Error != nil || dst.Error != nil || dst.Bytes == 0 || dst.MeasuredTo != end {
			t.Errorf("%s over a link that was cut: source %+v (%v), destination %+v (%v)", f.Transport, src, src.Error, dst, dst.Error)
		}
	}
}

// TestProgramsDieWithTheirAgent: an agent that is killed takes its programs along.
func TestProgramsDieWithTheirAgent(t *testing.T) {
	testenv.Need(t, testenv.Program("iperf3"))
	l := agenttest.New(t, 2, agenttest.Options{})
	f := l.Flow(proto.Flow{ID: 0, Transport: "iperf3/cubic", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Continual}})
	g := execFlow("exec-leaves", "exec-udp-receive")
	g.ID, g.Src, g.Dst = 1, 0, 1
	l.ConfigureChain([]proto.Flow{f, l.Flow(g)}, nil)
	l.Start(0, vtime.Time(vtime.Minute))
	time.Sleep(800 * time.Millisecond)
	var pids []int
	for _, n := range l.Nodes {
		below := descendants(n.Cmd.Process.Pid)
		if len(below) < 3 {
			t.Errorf("node %d has only the processes %v", n.ID, below)
		}
		pids = append(pids, below...)
	}
	for _, n := range l.Nodes {
		if err := n.Cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-n.Exited
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}
