//go:build linux

package sock_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/agenttest"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

// windows reads from the wire what windows a TCP end offers (RFC 9293 §3.1, RFC
// 7323 §2).
type windows struct {
	mu          sync.Mutex
	shift       int
	first, most int // the first one, of the SYN, and the largest
	segments    int
}

func (w *windows) watch(frame []byte) {
	const ip = 14
	if len(frame) < ip+40 || frame[ip+9] != 6 {
		return
	}
	tcp := frame[ip+int(frame[ip]&15)*4:]
	w.mu.Lock()
	defer w.mu.Unlock()
	offered := int(binary.BigEndian.Uint16(tcp[14:]))
	if syn := tcp[13]&2 != 0; syn { // never scaled
		w.first = offered
		w.shift = scale(tcp[20 : 4*int(tcp[12]>>4)])
	} else if tcp[13]&4 == 0 { // a reset offers nothing
		offered <<= w.shift
		w.segments++
	}
	w.most = max(w.most, offered)
}

func scale(options []byte) int {
	for len(options) > 0 {
		switch kind := options[0]; {
		case kind == 0:
			return 0
		case kind == 1:
			options = options[1:]
		case len(options) < 2 || int(options[1]) > len(options) || options[1] < 2:
			return 0
		case kind == 3:
			return int(options[2])
		default:
			options = options[options[1]:]
		}
	}
	return 0
}

// A receiver never offers more than its window, on the wire, from the first
// segment on, and it does offer that much: more than a path needs, and far less.
func TestReceiveWindow(t *testing.T) {
	const rate, delay = 20 * vtime.MbitPerSecond, 20 * vtime.Millisecond
	for _, c := range []struct{ segments, mss int }{{1, 0}, {2, 1000}, {10, 0}, {42, 536}, {42, 0}, {50, 0}, {200, 0}} {
		t.Run(fmt.Sprintf("%d segments of %d", c.segments, c.mss), func(t *testing.T) {
			var seen windows
			l := agenttest.New(t, 2, agenttest.Options{Watch: func(node int, frame []byte) {
				if node == 1 {
					seen.watch(frame)
				}
			}})
			l.SetLink(0, 1, agenttest.Link{Rate: rate, Delay: delay, Queue: 400})
			f := l.Flow(continual(0, "tcp/cubic", 0, 1))
			f.Options.ReceiveWindow, f.Options.MSS = c.segments, c.mss
			mss := c.mss
			if mss == 0 {
				mss = 1460
			}
			bound := c.segments * mss
			rb := l.ConfigureChain([]proto.Flow{f}, nil)
			if got := rb[1].Flows[0].ReceiveWindow; got != vtime.Bytes(bound) {
				t.Errorf("the listener's window reads back as %v, want %d B", got, bound)
			}
			const end = 3 * second / 2
			epoch := l.Start(0, end)
			rs := l.Finish(epoch, end)
			src, dst := agenttest.Result(t, rs, 0, proto.Source), agenttest.Result(t, rs, 0, proto.Destination)
			if src.Error != nil || dst.Error != nil || dst.Bytes == 0 {
				t.Fatalf("source %+v, destination %+v", src, dst)
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			// A window is told in units of 1<<shift, rounded up.
			slack := 1<<seen.shift - 1
			if seen.most > bound+slack {
				t.Errorf("a window of %d B was offered, the bound is %d B", seen.most, bound)
			}
			// It is told in whole segments, which may be shorter than the MSS by the
			// timestamps.
			if seen.most < c.segments*(mss-12)-slack {
				t.Errorf("the largest of %d windows was %d B, the bound is %d B", seen.segments, seen.most, bound)
			}
			// No more than a window a round trip.
			if most := float64(bound+slack) * 8 / (2 * delay).Seconds(); goodput(dst) > most {
				t.Errorf("%.2f Mb/s with a window for %.2f Mb/s", goodput(dst)/1e6, most/1e6)
			}
			for _, s := range l.Nodes[0].Samples(0, proto.Source) {
				if int(s.SendWindow) > bound+slack {
					t.Errorf("at %v the sender knew of a window of %v", s.T, s.SendWindow)
				}
			}
			t.Logf("SYN %d B, most %d B of %d, %.2f Mb/s", seen.first, seen.most, bound, goodput(dst)/1e6)
		})
	}
}

// Without the option the kernel goes beyond every bound of the other test: what
// that finds is the option's work.
func TestWindowWithoutABound(t *testing.T) {
	var seen windows
	l := agenttest.New(t, 2, agenttest.Options{Watch: func(node int, frame []byte) {
		if node == 1 {
			seen.watch(frame)
		}
	}})
	l.SetLink(0, 1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Delay: 20 * vtime.Millisecond, Queue: 400})
	l.ConfigureChain([]proto.Flow{l.Flow(continual(0, "tcp/cubic", 0, 1))}, nil)
	const end = 2 * second
	l.Finish(l.Start(0, end), end)
	seen.mu.Lock() // the last acknowledgements may still be on their way
	defer seen.mu.Unlock()
	if seen.most <= 42*1460 {
		t.Errorf("the largest window was %d B", seen.most)
	}
}

// The congestion window of a sender never passes its cap, whatever the congestion
// control, from the initial window on, while that of another flow does.
func TestCwndCap(t *testing.T) {
	for _, cc := range []string{"reno", "cubic", "bbr"} {
		t.Run(cc, func(t *testing.T) {
			testenv.Need(t, testenv.CC(cc))
			l := agenttest.New(t, 3, agenttest.Options{})
			for i := range 2 {
				l.SetLink(i, i+1, agenttest.Link{Rate: 20 * vtime.MbitPerSecond, Delay: 10 * vtime.Millisecond, Queue: 400})
			}
			const cap = 5 // below the initial window of 10
			flows := []proto.Flow{l.Flow(continual(0, "tcp/"+cc, 0, 1)), l.Flow(continual(1, "tcp/"+cc, 2, 1))}
			flows[0].Options.CwndCap = cap
			l.ConfigureChain(flows, capRoutes)
			const end = 2 * second
			epoch := l.Start(0, end)
			rs := l.Finish(epoch, end)
			most := map[int]int64{}
			for id, node := range []int{0, 2} {
				src, dst := agenttest.Result(t, rs, id, proto.Source), agenttest.Result(t, rs, id, proto.Destination)
				if src.Error != nil || dst.Error != nil || dst.Bytes == 0 {
					t.Fatalf("flow %d: source %+v, destination %+v", id, src, dst)
				}
				for _, s := range append(l.Nodes[node].Samples(id, proto.Source), *src.Last) {
					most[id] = max(most[id], s.CwndPackets)
				}
			}
			if most[0] != cap || most[1] <= cap {
				t.Errorf("the congestion windows went to %d, capped at %d, and to %d, not capped", most[0], cap, most[1])
			}
			for _, n := range l.Nodes {
				if rev, err := n.Client.Revert(l.Context(5 * time.Second)); err != nil || len(rev.Failed) > 0 {
					t.Errorf("node %d: revert: %+v, %v", n.ID, rev, err)
				}
			}
			// The same flow without a cap, in the same namespaces.
			flows[0].Options.CwndCap = 0
			l.ConfigureChain(flows, nil)
			epoch = l.Start(0, end)
			if src := agenttest.Result(t, l.Finish(epoch, end), 0, proto.Source); src.Last == nil || src.Last.CwndPackets <= cap {
				t.Errorf("without a cap: %+v", src.Last)
			}
		})
	}
}

// capRoutes gives the routes the caps of the flows that begin at the node.
func capRoutes(c *proto.Configure) {
	for _, f := range c.Flows {
		for i := range c.Routes {
			if f.Src == c.Node && c.Routes[i].Dst.Addr() == f.DstAddr {
				c.Routes[i].CwndCap = f.Options.CwndCap
			}
		}
	}
}

func TestCapsAndWindowsThatCannotBe(t *testing.T) {
	l := agenttest.New(t, 2, agenttest.Options{})
	for name, c := range map[string]struct {
		transport string
		options   proto.FlowOptions
		want      []string
	}{
		"no cap on the route":     {"tcp/reno", proto.FlowOptions{CwndCap: 3}, []string{"flow 0", "capped at 3", "10.77.0.2"}},
		"a window and a buffer":   {"tcp/reno", proto.FlowOptions{ReceiveWindow: 3, ReceiveBuffer: 65536}, []string{"flow 0", "receive_window and receive_buffer"}},
		"a window of many":        {"tcp/reno", proto.FlowOptions{ReceiveWindow: 70000}, []string{"receive_window", "1 to 65535"}},
		"a negative cap":          {"tcp/reno", proto.FlowOptions{CwndCap: -1}, []string{"cwnd_cap"}},
		"a window of UDP":         {"udp", proto.FlowOptions{ReceiveWindow: 3}, []string{"receive_window", "udp does not know it"}},
		"a cap of Hop":            {"hop", proto.FlowOptions{CwndCap: 3}, []string{"cwnd_cap", "hop does not know it"}},
		"a window of hop by hop":  {"hop-by-hop-tcp/reno", proto.FlowOptions{ReceiveWindow: 3}, []string{"receive_window", "hop-by-hop-tcp does not know it"}},
		"a cap of hop by hop TCP": {"hop-by-hop-tcp/reno", proto.FlowOptions{CwndCap: 3}, []string{"cwnd_cap", "hop-by-hop-tcp does not know it"}},
	} {
		f := l.Flow(continual(0, c.transport, 0, 1))
		f.Options = c.options
		cfg := l.Chain(0, []proto.Flow{f})
		if c.transport != "tcp/reno" {
			capRoutes(cfg)
		}
		_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), cfg)
		wantOrder(t, name, err, c.want)
	}
	// A window too small for the kernel is found when it is read back.
	f := l.Flow(continual(0, "tcp/reno", 1, 0))
	f.Options.ReceiveWindow, f.Options.MSS = 1, 100
	_, err := l.Nodes[0].Client.Configure(l.Context(5*time.Second), l.Chain(0, []proto.Flow{f}))
	if e := proto.AsError(err, ""); e == nil || e.Code != proto.CodeNotApplied || e.Wanted != "100" {
		t.Errorf("a window of 100 B: %v", err)
	}
}

func wantOrder(t *testing.T, name string, err error, parts []string) {
	t.Helper()
	e := proto.AsError(err, "")
	if e == nil || e.Code != proto.CodeOrder {
		t.Errorf("%s: %v, want an order that is refused", name, err)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %q does not say %q", name, err, p)
		}
	}
}
