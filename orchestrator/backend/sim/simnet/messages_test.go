package simnet

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The workloads of messages that the tests send.
var (
	poissonLoad = workload.Spec{Kind: workload.Poisson, Size: 5000, Interval: 100 * msec, Sizes: workload.SizesExponential, Seed: 1}
	voipLoad    = workload.Spec{Kind: workload.VoIP, Codec: "g729", Seed: 1}
	traceLoad   = workload.Spec{Kind: workload.Trace, Seed: 1, Transfers: []workload.Transfer{
		{At: 0, Size: 1}, {At: 10 * msec, Size: 100}, {At: 500 * msec, Size: 300_000}, {At: 501 * msec, Size: 40}, {At: 3 * vtime.Second, Size: 16385}}}
	webLoad = workload.Spec{Kind: workload.Web, Seed: 1, Web: &workload.WebSpec{Objects: 100, Zipf: 1, MeanSize: 20_000, MaxSize: 200_000, PageObjects: 3, Think: 200 * msec, Request: 350}}
)

// exchange returns the flows of a web exchange from a server to a client.
func exchange(transport string, path ...int) []proto.Flow {
	back := make([]int, len(path))
	for i, n := range path {
		back[len(path)-1-i] = n
	}
	pages, asks := webLoad, webLoad
	pages.Role, asks.Role = workload.Responses, workload.Requests
	return []proto.Flow{
		{Transport: transport, Src: path[0], Dst: back[0], Path: path, Workload: pages, Peer: new(1)},
		{Transport: transport, Src: back[0], Dst: path[0], Path: back, Workload: asks, Peer: new(0)},
	}
}

// messages runs a lab to its end and returns what became of each flow's messages.
func (l *lab) messages() map[int][]proto.Message {
	got := map[int][]proto.Message{}
	to := func(node int, m *proto.Message) {
		if node != l.cfg.Flows[m.Flow].Dst {
			l.t.Errorf("node %d tells of flow %d", node, m.Flow)
		}
		got[m.Flow] = append(got[m.Flow], *m)
	}
	for now := vtime.Time(0); now < l.cfg.End; now += sec / 2 {
		l.runTo(now)
		l.net.Messages(to)
	}
	l.finish()
	l.net.Messages(to)
	return got
}

// TestMessagesArrive by every workload over every transport that carries it, on one
// hop and on two: each message once, whole, and not before its moment.
func TestMessagesArrive(t *testing.T) {
	for _, load := range []workload.Spec{poissonLoad, traceLoad, voipLoad} {
		for _, transport := range []string{"tcp/cubic", "hop-by-hop-tcp/cubic", "hop", "udp"} {
			for _, path := range [][]int{{0, 1}, {0, 1, 2}} {
				t.Run(fmt.Sprintf("%s/%s/%d", load.Kind, transport, len(path)-1), func(t *testing.T) {
					f := proto.Flow{Transport: transport, Src: 0, Dst: path[len(path)-1], Path: path, Workload: load}
					f.Options.NoDelay = transport != "hop" && transport != "udp"
					l := newLab(t, positions(0, 200, 400), testMAC(), nil, f)
					checkMessages(t, l, l.messages()[0])
				})
			}
		}
	}
}

// checkMessages compares a flow's messages with its schedule.
func checkMessages(t *testing.T, l *lab, got []proto.Message) {
	t.Helper()
	spec := l.cfg.Flows[0].Workload
	want := schedule(t, spec, l.cfg.End)
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d messages, the source has %d", len(got), len(want))
	}
	seen := map[int]bool{}
	var total vtime.Bytes
	lost := 0
	for _, m := range got {
		w := want[m.Message]
		if seen[m.Message] || m.Size != w.size || m.Ready > w.by {
			t.Errorf("message %+v, want %+v", m, w)
		}
		seen[m.Message] = true
		if m.Lost {
			lost++
			continue
		}
		total += m.Size
		if m.Delay <= 0 || m.Delay > 3*vtime.Second {
			t.Errorf("message %+v", m)
		}
	}
	d, s := l.dst(0), l.src(0)
	if lost > 1 || d.Total < total || s.Error != nil || d.Error != nil {
		t.Errorf("%d lost, %v of %v in messages, %v %v", lost, total, d.Total, s.Error, d.Error)
	}
	if d.Finished != spec.Ends() {
		t.Errorf("finished: %v", d.Finished)
	}
}

type scheduled struct {
	size vtime.Bytes
	by   vtime.Time // ready then at the latest
}

// schedule asks a source for all of its messages.
func schedule(t *testing.T, spec workload.Spec, stop vtime.Time) (out []scheduled) {
	t.Helper()
	app, err := workload.NewSource(spec, 0, stop)
	if err != nil {
		t.Fatal(err)
	}
	for now := vtime.Time(0); now < vtime.Never; now = app.Next(now) {
		for app.Ready(now) > 0 {
			n := app.Piece(now)
			app.Take(now, n)
			out = append(out, scheduled{n, now})
		}
	}
	return out
}

// TestPagesArrive over every transport that carries them.
func TestPagesArrive(t *testing.T) {
	for _, transport := range []string{"tcp/cubic", "hop-by-hop-tcp/cubic", "hop", "hop/unordered"} {
		for _, path := range [][]int{{0, 1}, {0, 1, 2}} {
			t.Run(fmt.Sprintf("%s/%d", transport, len(path)-1), func(t *testing.T) {
				l := newLab(t, positions(0, 200, 400), testMAC(), func(c *Config) {
					c.Hop.Unordered = transport == "hop/unordered"
					for i := range c.Flows {
						c.Flows[i].Options.NoDelay = true
					}
				}, exchange(transport, path...)...)
				got := l.messages()
				if len(got[1]) > 0 {
					t.Errorf("the requests tell of %d messages", len(got[1]))
				}
				pages := got[0]
				if len(pages) < 10 {
					t.Fatalf("%d pages", len(pages))
				}
				end := vtime.Time(0)
				for i, m := range pages {
					if m.Message != i || m.Ready < end || m.Lost != (i == len(pages)-1 && m.Delay == 0) || m.Size <= 0 {
						t.Errorf("page %d: %+v, the one before ended at %v", i, m, end)
					}
					end = m.Ready.Add(m.Delay)
				}
				for f := range 2 {
					if r, s := l.dst(f), l.src(f); r.Error != nil || s.Error != nil || r.Total == 0 || r.Finished {
						t.Errorf("flow %d: %+v %+v", f, r, s)
					}
				}
				if n := l.dst(1).Total; n%webLoad.Web.Request != 0 {
					t.Errorf("%v of requests", n)
				}
			})
		}
	}
}

// TestHopStopsCounting: blocks that are on their way when a flow of Hop ends meet
// nodes that begin with it anew, and deliver no message any more.
func TestHopStopsCounting(t *testing.T) {
	slow := wired(0, 3, []Pipe{
		wire(0, 1, pipe.Config{Rate: 3 * vtime.MbitPerSecond, Delay: 10 * msec, Queue: pipe.Queue{Packets: 20}, Loss: pipe.Loss{Good: 0.01}, Duplicate: 0.01}),
		wire(1, 2, pipe.Config{Rate: 3 * vtime.MbitPerSecond, Delay: 10 * msec, Queue: pipe.Queue{Packets: 20}, Reorder: pipe.Reorder{Share: 0.01, Extra: 10 * msec}}),
	})
	for k := range 20 {
		f := proto.Flow{Transport: "hop", Src: 0, Dst: 2, Path: []int{0, 1, 2}, Stop: sec + vtime.Time(7*msec)*vtime.Time(k),
			Workload: workload.Spec{Kind: workload.Poisson, Size: 100, Interval: msec, Sizes: workload.SizesFixed, Seed: 1}}
		l := newLab(t, nil, testMAC(), both(slow, func(c *Config) { c.End = 2 * sec }), f)
		l.runTo(2 * sec)
		delivered := 0
		l.net.Messages(func(_ int, m *proto.Message) {
			if m.Lost {
				return
			}
			if delivered++; m.Ready.Add(m.Delay) > f.Stop {
				t.Errorf("message %d, ready at %v, comes at %v, after the flow's end at %v", m.Message, m.Ready, m.Ready.Add(m.Delay), f.Stop)
			}
		})
		if l.finish(); delivered < 100 || vtime.Bytes(100*delivered) > l.dst(0).Total {
			t.Errorf("%d messages delivered, %v in all", delivered, l.dst(0).Total)
		}
	}
}
