//go:build linux

package sock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// carriers are the transports that carry messages.
var carriers = []string{"tcp/reno", "hop-by-hop-tcp/reno", "hop", "udp"}

// expected lists the messages that a flow's source has in [start, stop).
func expected(t *testing.T, f proto.Flow, stop vtime.Time) (out []workload.Receipt) {
	t.Helper()
	r, err := workload.NewReceipts(f.Workload, f.Start, stop)
	if err != nil {
		t.Fatal(err)
	}
	r.Close(stop)
	for m := range r.Take() {
		out = append(out, m)
	}
	return out
}

// busy tells whether the host was so busy that the network of the test stood still
// at times: what did not arrive then says nothing.
func busy(t *testing.T, rs []*proto.Results) bool {
	t.Helper()
	for _, r := range rs {
		if late := r.Facts.SampleLateMax; late > 100*vtime.Millisecond {
			t.Logf("the host is busy: node %d was %v late", r.Node, late)
			return true
		}
	}
	return false
}

// Every message of every kind arrives over two hops by every transport, is told
// once, at the receiver, with the moment at which it was ready, and its delay is
// that of the path.
func TestMessagesOverEveryTransport(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{Board: true})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Queue: 200})
	}
	specs := []workload.Spec{
		{Kind: workload.VoIP, Codec: "g729", Seed: 1},
		{Kind: workload.Poisson, Size: 5000, Interval: 50 * vtime.Millisecond, Sizes: workload.SizesExponential, Seed: 2},
		// The first is several blocks of Hop, the second ends within a datagram by a
		// piece that is shorter than a header.
		{Kind: workload.Trace, Transfers: []workload.Transfer{{At: 0, Size: 150_000}, {At: vtime.Second, Size: 1405}, {At: vtime.Second, Size: 1}}},
	}
	var flows []proto.Flow
	for _, transport := range carriers {
		for _, spec := range specs {
			f := proto.Flow{ID: len(flows), Transport: transport, Src: 0, Dst: 2, Workload: spec, Start: second / 2, Stop: 5 * second / 2}
			f.Options.NoDelay = strings.Contains(transport, "tcp")
			if transport == "hop" {
				f.Options.BlockSize = 64 * vtime.KiB
			}
			flows = append(flows, l.Flow(f))
		}
	}
	l.ConfigureChain(flows, nil)
	const end = 4 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	starved := busy(t, rs)
	for _, f := range flows {
		what := f.Transport + " " + string(f.Workload.Kind)
		src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
		if src.Error != nil || dst.Error != nil || dst.Corrupt != 0 {
			t.Errorf("%s: source %v, destination %v", what, src.Error, dst.Error)
		}
		want := map[int]workload.Receipt{}
		total := vtime.Bytes(0)
		for _, m := range expected(t, f, f.Stop) {
			want[m.Message] = m
			total += m.Size
		}
		got, lost, last, worst := l.Nodes[2].Messages(f.ID), 0, -1, vtime.Duration(0)
		for _, m := range got {
			w, ok := want[m.Message]
			if !ok || m.Size != w.Size || m.Ready != w.Ready {
				t.Fatalf("%s: %+v was told, the schedule has %+v", what, m, w)
			}
			delete(want, m.Message)
			worst = max(worst, m.Delay)
			switch {
			case !m.Lost && m.Delay <= 0:
				t.Errorf("%s: message %d came after %v", what, m.Message, m.Delay)
			case m.Lost:
				lost++
				total -= m.Size
			default:
				last = max(last, m.Message)
			}
		}
		if f.Transport != "udp" && last+1 != len(got)-lost {
			t.Errorf("%s: message %d arrived, and not all before it: %d of %d were lost", what, last, lost, len(got))
		}
		if len(want) > 0 {
			t.Errorf("%s: of %d messages nothing was told, such as %+v", what, len(want), want)
		}
		if done := f.Workload.Ends() && lost == 0; dst.Finished != done {
			t.Errorf("%s: finished %v, %d messages were lost", what, dst.Finished, lost)
		}
		// The last message may become ready just before the stop.
		if lost > 1 && !starved || dst.Total < total {
			t.Errorf("%s: %d of %d messages were lost; %v arrived, the complete ones have %v", what, lost, len(got), dst.Total, total)
		}
		if n := len(l.Nodes[0].Messages(f.ID)); n > 0 {
			t.Errorf("%s: the source tells of %d messages", what, n)
		}
		t.Logf("%s: %d messages, %d lost, at most %v", what, len(got), lost, worst)
	}
}

// Over a link that loses a third of the frames, UDP loses about as many messages
// of one datagram, and tells of each.
func TestLostMessagesAreTold(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetDirection(0, 1, agenttest.Link{Loss: 0.3})
	f := l.Flow(proto.Flow{ID: 0, Transport: "udp", Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.VoIP, Codec: "g711"}})
	l.ConfigureChain([]proto.Flow{f}, nil)
	const end = 4 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	got, lost := l.Nodes[1].Messages(0), 0
	for _, m := range got {
		if m.Lost {
			lost++
		}
	}
	src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
	if len(got) != 200 && len(got) != 199 || (lost < 20 || lost > 120) && !busy(t, rs) {
		t.Errorf("%d messages were told, %d as lost", len(got), lost)
	}
	if dst.Datagrams != int64(len(got)-lost) || src.DatagramsSent < dst.Datagrams {
		t.Errorf("%d datagrams came of %d, %d messages were not lost", dst.Datagrams, src.DatagramsSent, len(got)-lost)
	}
	series := l.Nodes[1].Samples(0, proto.Destination)
	if last := series[len(series)-1]; last.Datagrams == 0 || last.DatagramsLost == 0 {
		t.Errorf("the series says %+v", last)
	}
}

// A user at the client asks the server for pages over each transport: pages
// complete one after the other, with all their objects.
func TestWebOverEveryTransport(t *testing.T) {
	l := agenttest.New(t, 3, agenttest.Options{Board: true})
	for i := range 2 {
		l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Queue: 200})
	}
	web := &workload.WebSpec{Objects: 100, Zipf: 1, MeanSize: 10_000, MaxSize: 60_000, PageObjects: 3, Think: 100 * vtime.Millisecond, Request: 350}
	var flows []proto.Flow
	for i, transport := range []string{"tcp/reno", "hop-by-hop-tcp/reno", "hop"} {
		for _, role := range []workload.Role{workload.Responses, workload.Requests} {
			f := proto.Flow{ID: len(flows), Transport: transport, Src: 2, Dst: 0, Start: second / 5, Workload: workload.Spec{Kind: workload.Web, Seed: uint64(i), Web: web, Role: role}}
			f.Peer = new(f.ID + 1)
			if role == workload.Requests {
				f.Src, f.Dst, *f.Peer = 0, 2, f.ID-1
			}
			f.Options.NoDelay = transport != "hop"
			flows = append(flows, l.Flow(f))
		}
	}
	l.ConfigureChain(flows, nil)
	const end = 4 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	starved := busy(t, rs)
	for i := 0; i < len(flows); i += 2 {
		what := flows[i].Transport
		for _, f := range flows[i : i+2] {
			src, dst := agenttest.Result(t, rs, f.ID, proto.Source), agenttest.Result(t, rs, f.ID, proto.Destination)
			if src.Error != nil || dst.Error != nil || dst.Corrupt != 0 || dst.Finished {
				t.Errorf("%s: source %+v, destination %+v", what, src, dst)
			}
		}
		pages := l.Nodes[0].Messages(i)
		var size vtime.Bytes
		var last vtime.Time
		for k, p := range pages {
			if p.Message != k || p.Ready < last || p.Lost && k < len(pages)-1 {
				t.Fatalf("%s: page %d is %+v, the one before ended at %v", what, k, p, last)
			}
			if !p.Lost {
				size += p.Size
				last = p.Ready.Add(p.Delay)
			}
		}
		responses, requests := agenttest.Result(t, rs, i, proto.Destination), agenttest.Result(t, rs, i+1, proto.Destination)
		if len(pages) < 5 && !starved || responses.Total < size || requests.Total < vtime.Bytes(len(pages)-1)*350 {
			t.Errorf("%s: %d pages of %v; the client received %v, the server %v", what, len(pages), size, responses.Total, requests.Total)
		}
		if n := len(l.Nodes[2].Messages(i)) + len(l.Nodes[2].Messages(i+1)) + len(l.Nodes[0].Messages(i+1)); n > 0 {
			t.Errorf("%s: %d messages were told by somebody else than the client", what, n)
		}
		t.Logf("%s: %d pages, %v", what, len(pages), size)
	}
}

// What UDP cannot carry is refused before the run.
func TestUDPRefusesWorkloads(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	web := workload.Spec{Kind: workload.Web, Role: workload.Responses, Web: &workload.WebSpec{Objects: 1, MeanSize: 1000, MaxSize: 1000, PageObjects: 1, Request: 100}}
	for name, c := range map[string]struct {
		change func(*proto.Flow)
		want   string
	}{
		"web":             {func(f *proto.Flow) { f.Workload = web }, "all of it arrives"},
		"rate of a codec": {func(f *proto.Flow) { f.Options.Rate = 1000 }, "its own moments"},
		"twice":           {func(f *proto.Flow) { f.Transport = "udp/txop+txop" }, "txop+txop"},
	} {
		f, peer := l.Flow(continual(0, "udp", 0, 1)), l.Flow(continual(1, "udp", 1, 0))
		f.Workload = workload.Spec{Kind: workload.VoIP, Codec: "g711"}
		c.change(&f)
		if f.Workload.Kind == workload.Web {
			f.Peer, peer.Peer, peer.Workload = new(1), new(0), f.Workload
			peer.Workload.Role = workload.Requests
		}
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), l.Chain(0, []proto.Flow{f, peer}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.want)
		}
	}
	f := l.Flow(continual(0, "udp/no-arq+txop", 0, 1))
	if _, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), l.Chain(0, []proto.Flow{f})); err != nil {
		t.Errorf("a variant is refused: %v", err)
	}
}

// Where nothing gets through, every message is told as lost after the stop, in as
// many batches as it takes.
func TestUndeliveredMessagesAreToldAtTheEnd(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	l.SetLink(0, 1, agenttest.Link{Down: true})
	var flows []proto.Flow
	for i, transport := range carriers {
		f := proto.Flow{ID: i, Transport: transport, Src: 0, Dst: 1, Workload: workload.Spec{Kind: workload.Poisson, Size: 100, Interval: vtime.Millisecond, Seed: 5}}
		flows = append(flows, l.Flow(f))
	}
	l.ConfigureChain(flows, nil)
	const end = 2 * second
	epoch := l.Start(0, end)
	rs := l.Finish(epoch, end)
	for _, f := range flows {
		want, got := expected(t, f, end), l.Nodes[1].Messages(f.ID)
		if len(got) != len(want) || len(got) < 1800 {
			t.Fatalf("%s: %d messages were told of %d", f.Transport, len(got), len(want))
		}
		for i, m := range got {
			if m.Receipt != want[i] {
				t.Fatalf("%s: message %d is told as %+v, want %+v", f.Transport, i, m, want[i])
			}
		}
		if r := agenttest.Result(t, rs, f.ID, proto.Destination); r.Error != nil || r.Total != 0 {
			t.Errorf("%s: %+v", f.Transport, r)
		}
	}
}
