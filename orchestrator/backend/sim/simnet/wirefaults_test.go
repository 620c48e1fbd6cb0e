package simnet

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TestBadLinesLoseNothing: over a link that loses, reorders, duplicates and
// jitters, what promises to arrive whole does, once; and datagrams count once.
func TestBadLinesLoseNothing(t *testing.T) {
	bad := line()
	bad.Jitter = pipe.Jitter{Distribution: pipe.Normal, Spread: 2 * msec, Overtake: true}
	bad.Loss = pipe.Loss{Good: 0.001, Bad: 0.3, ToBad: 0.01, ToGood: 0.2}
	bad.Reorder = pipe.Reorder{Share: 0.02, Extra: 5 * msec}
	bad.Duplicate = 0.03
	sized := func(name string) proto.Flow {
		return proto.Flow{Transport: name, Src: 0, Dst: 2, Workload: workload.Spec{Kind: workload.Sized, Size: 400_001}}
	}
	for _, bridge := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			bad.LossAfterQueue = after
			cbr := udp(0, 2, 1000)
			cbr.Options.Rate = 400 * vtime.KbitPerSecond
			hop := sized("hop")
			hop.Options.BlockSize = 100 * vtime.KB
			l := accessPoint(t, bridge, bad, func(c *Config) { c.Warmup, c.End = 0, 60*sec }, sized("tcp/cubic"), hop, cbr)
			l.finish()
			for f := range 2 {
				if d := l.dst(f); !d.Finished || d.Bytes != 400_001 || d.Corrupt != 0 || d.Error != nil {
					t.Errorf("bridge %v, after %v: flow %d: %+v", bridge, after, f, d)
				}
			}
			s, d := l.src(2), l.dst(2)
			if d.Datagrams >= s.DatagramsSent || d.Duplicates == 0 || d.Reordered == 0 || d.Bytes != 1000*vtime.Bytes(d.Datagrams) {
				t.Errorf("bridge %v, after %v: %d datagrams sent, %+v", bridge, after, s.DatagramsSent, d)
			}
			for e, p := range l.net.PipeStats()[0] {
				in, out := p.Entered+p.Duplicates, p.Delivered+p.LostPackets+p.Overflows
				if p.LostPackets == 0 || p.Duplicates == 0 || in < out || in-out > 20 {
					t.Errorf("bridge %v, after %v, end %d: %+v", bridge, after, e, p)
				}
			}
		}
	}
}

// TestLossOfEverything: a source that keeps the queue full meets a link that
// takes nothing for a while; the run goes on, and so does the flow.
func TestLossOfEverything(t *testing.T) {
	c := line()
	all, none := pipe.Loss{Good: 1}, pipe.Loss{}
	c.Schedule = []pipe.Change{{At: 3 * sec, Loss: &all}, {At: 5 * sec, Loss: &none}}
	l := newLab(t, nil, testMAC(), wired(0, 2, []Pipe{wire(0, 1, c)}), udp(0, 1, 1472))
	l.finish()
	near(t, "goodput with 8 of 10 s", l.goodput(0), 8*1472.0/1500, 0.02)
}

// TestLinkGoesDownAndUp: nothing passes while it is down, and every transport
// goes on afterwards.
func TestLinkGoesDownAndUp(t *testing.T) {
	down, up := false, true
	c := line()
	c.Schedule = []pipe.Change{{At: 3 * sec, Up: &down}, {At: 5 * sec, Up: &up}}
	for _, name := range []string{"tcp/cubic", "udp", "hop"} {
		f := proto.Flow{Transport: name, Src: 0, Dst: 2}
		f.Options.BlockSize = 64 * vtime.KiB
		if name != "hop" {
			f.Options.BlockSize = 0
		}
		l := accessPoint(t, false, c, nil, f)
		at := map[vtime.Time]vtime.Bytes{}
		for _, s := range []vtime.Time{2, 3, 4, 5, 7, 9, 11} {
			l.runTo(s * sec)
			l.net.Observe(s*sec, func(_ int, p *proto.Sample) {
				if p.Side == proto.Destination {
					at[s] = p.Delivered
				}
			})
		}
		if at[3] == at[2] || at[5] != at[4] || at[9] == at[7] || at[11] == at[9] {
			t.Errorf("%s delivered %v", name, at)
		}
	}
}

// TestWhatWouldNeverEnd is refused with a word on what to do.
func TestWhatWouldNeverEnd(t *testing.T) {
	idle := pipe.Config{}
	zero := vtime.BitRate(0)
	lifted := line()
	lifted.Schedule = []pipe.Change{{At: sec, Rate: &zero}}
	noQueue := line()
	noQueue.Queue = pipe.Queue{}
	open := line()
	open.Schedule = []pipe.Change{{At: sec, Queue: &pipe.Queue{}}}
	for want, c := range map[string]struct {
		pipe pipe.Config
		flow proto.Flow
	}{
		"neither rate nor delay":               {idle, tcpFlow(0, 1)},
		"has no rate:":                         {pipe.Config{Delay: 20 * msec}, udp(0, 1, 1000)},
		"has no rate from 1s on":               {lifted, udp(0, 1, 1000)},
		"has no limit of its queue:":           {noQueue, udp(0, 1, 1000)},
		"has no limit of its queue from 1s on": {open, udp(0, 1, 1000)},
	} {
		l := &lab{t: t, next: map[[2]int]int{}}
		l.row(0, 1)
		c.flow.Workload.Kind, c.flow.Path = workload.Continual, []int{0, 1}
		cfg := Config{Seed: 1, Routes: l, Flows: []proto.Flow{c.flow}, End: sec, TCP: tcp.DefaultConfig()}
		wired(0, 2, []Pipe{wire(0, 1, c.pipe)})(&cfg)
		if _, err := New(des.New(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	l := &lab{t: t, next: map[[2]int]int{}}
	cfg := Config{Routes: l, End: sec}
	wired(0, 2, []Pipe{wire(0, 1, line())})(&cfg)
	cfg.Pipes[0].Ends[1] = 2
	if _, err := New(des.New(), cfg); err == nil || !strings.Contains(err.Error(), "node 0 and node 2") {
		t.Errorf("%v", err)
	}
}
