package simhop

import (
	"fmt"
	"testing"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// wires is a Carrier of pipes only: nodes in a row, joined by equal pipes.
type wires struct {
	net *Net
	out [][]*wire // per node, by slot
}

// wire is one direction of a pipe, and its sink.
type wire struct {
	w        *wires
	from, to int
	port     hop.Port
	pipe     *pipe.Pipe
	most     int // packets in the queue
}

func (w *wires) find(from, to int) *wire {
	for _, x := range w.out[from] {
		if x.to == to {
			return x
		}
	}
	return nil
}

func (w *wires) Port(from, to int) hop.Port { return w.find(from, to).port }
func (w *wires) Free(from int, p hop.Port, _ hop.Class) int {
	return w.out[from][p-1].pipe.Room(MaxPacket)
}
func (w *wires) Send(from int, m *hop.Message) bool {
	x := w.out[from][m.Port-1]
	k := x.pipe.NewPacket()
	k.Len, k.Payload = Overhead+vtime.Bytes(m.Len()), m
	ok := x.pipe.Send(k)
	x.most = max(x.most, x.pipe.Stats().Queued)
	return ok
}
func (x *wire) Deliver(now vtime.Time, k *pipe.Packet) {
	m := k.Payload.(*hop.Message)
	x.w.net.Receive(now, x.to, x.from, m)
	x.w.net.Free(m)
}
func (x *wire) Drop(_ vtime.Time, k *pipe.Packet, _ pipe.Cause) {
	x.w.net.Free(k.Payload.(*hop.Message))
}
func (x *wire) Clone(payload any) any               { return x.w.net.Clone(payload.(*hop.Message)) }
func (x *wire) Left(now vtime.Time, _ *pipe.Packet) { x.w.net.TxDone(now, x.from, x.port, hop.Data, 1) }

// newWires makes n nodes in a row.
func newWires(t testing.TB, n int, cfg hop.Config, c pipe.Config) (*bed, *wires) {
	t.Helper()
	var links [][2]int
	for i := range n - 1 {
		links = append(links, [2]int{i, i + 1})
	}
	return newTree(t, n, links, cfg, c)
}

// newStar makes a source, 0, a relay, 1, and five destinations behind it.
func newStar(t testing.TB, cfg hop.Config, c pipe.Config) (*bed, *wires) {
	t.Helper()
	return newTree(t, 7, [][2]int{{0, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}}, cfg, c)
}

// newTree makes nodes joined by equal pipes without a circle. A link names the
// node that is nearer to 0 first.
func newTree(t testing.TB, n int, links [][2]int, cfg hop.Config, c pipe.Config) (*bed, *wires) {
	t.Helper()
	b := &bed{t: t, eng: des.New()}
	b.net = New(b.eng, n)
	w := &wires{net: b.net, out: make([][]*wire, n)}
	b.net.SetCarrier(w)
	b.next = make([][]int, n)
	for i := range b.next {
		b.next[i] = make([]int, n)
		for d := range b.next[i] {
			b.next[i][d] = -1
		}
	}
	for _, l := range links {
		for _, e := range [2][2]int{l, {l[1], l[0]}} {
			x := &wire{w: w, from: e[0], to: e[1], port: hop.Port(1 + len(w.out[e[0]]))}
			var err error
			if x.pipe, err = pipe.New(b.eng, 1, fmt.Sprintf("pipe/%d/%d", e[0], e[1]), c, x); err != nil {
				t.Fatal(err)
			}
			w.out[e[0]] = append(w.out[e[0]], x)
		}
		for d := range n { // what l[0] reaches, l[1] reaches through it; and back
			b.next[l[1]][d] = l[0]
			b.next[d][l[1]] = b.next[d][l[0]]
		}
		b.next[l[0]][l[1]], b.next[l[1]][l[1]] = l[1], -1
	}
	for i := range n {
		a := &app{t: t, pos: map[hop.FlowKey]uint64{}, blocks: map[hop.FlowKey]int{}}
		b.apps = append(b.apps, a)
		if err := b.net.Add(i, cfg, router{b, i}, a); err != nil {
			t.Fatal(err)
		}
	}
	return b, w
}

// line is a pipe of 10 Mb/s with 20 ms of delay either way.
func line() pipe.Config {
	return pipe.Config{Rate: 10 * vtime.MbitPerSecond, Delay: 20 * vtime.Millisecond, Queue: pipe.Queue{Packets: 100}}
}

// TestPipes: goodput of one flow over one pipe, in kb/s, against what the
// exchange of a block costs. A block of n packets takes their time on the line,
// and one round trip until the grant of the next one has come; each further
// round takes one more. Without loss there is one round.
func TestPipes(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*pipe.Config)
		block vtime.Bytes
		least float64 // share of the bound without loss
	}{
		{"plain", func(*pipe.Config) {}, vtime.MiB, 0.99},
		{"256 KiB", func(*pipe.Config) {}, 256 * vtime.KiB, 0.99},
		{"64 KiB", func(*pipe.Config) {}, 64 * vtime.KiB, 0.98},
		{"50 Mb/s, 200 ms", func(c *pipe.Config) { c.Rate, c.Delay = 50*vtime.MbitPerSecond, 100*vtime.Millisecond }, vtime.MiB, 0.99},
		{"1 Mb/s", func(c *pipe.Config) { c.Rate = vtime.MbitPerSecond }, vtime.MiB, 0.95},
		{"queue of 2 packets", func(c *pipe.Config) { c.Queue.Packets = 2 }, vtime.MiB, 0.99},
		{"queue of 6000 B", func(c *pipe.Config) { c.Queue = pipe.Queue{Bytes: 6000} }, vtime.MiB, 0.99},
		{"jitter", func(c *pipe.Config) {
			c.Jitter = pipe.Jitter{Distribution: pipe.Normal, Spread: 2 * vtime.Millisecond}
		}, vtime.MiB, 0.97},
		{"jitter that reorders", func(c *pipe.Config) {
			c.Jitter = pipe.Jitter{Distribution: pipe.Normal, Spread: 2 * vtime.Millisecond, Overtake: true}
		}, vtime.MiB, 0.90},
		{"reordering", func(c *pipe.Config) { c.Reorder = pipe.Reorder{Share: 0.01, Extra: 5 * vtime.Millisecond} }, vtime.MiB, 0.97},
		{"duplication", func(c *pipe.Config) { c.Duplicate = 0.01 }, vtime.MiB, 0.98},
		{"loss of 1 %", func(c *pipe.Config) { c.Loss.Good = 0.01 }, vtime.MiB, 0.92},
		{"loss of 1 % after the queue", func(c *pipe.Config) { c.Loss.Good, c.LossAfterQueue = 0.01, true }, vtime.MiB, 0.92},
		{"loss of 5 %", func(c *pipe.Config) { c.Loss.Good = 0.05 }, vtime.MiB, 0.82},
		{"bursts of loss", func(c *pipe.Config) { c.Loss = pipe.Loss{Bad: 0.5, ToBad: 0.002, ToGood: 0.1} }, vtime.MiB, 0.88},
		{"loss of 20 %", func(c *pipe.Config) { c.Loss.Good = 0.2 }, vtime.MiB, 0.5},
	} {
		cfg := line()
		c.edit(&cfg)
		b, w := newWires(t, 2, hop.DefaultConfig(), cfg)
		k := b.flow(1, 0, 1, c.block)
		got := b.goodput(20*vtime.Second, 120*vtime.Second, k)[0]
		packets := (c.block + 1399) / 1400
		time := cfg.Rate.TxTime(c.block+packets*(hop.HeaderLen+Overhead)) + 2*cfg.Delay
		bound := float64(c.block) * 8 / time.Seconds() / 1000
		s, _ := b.net.Node(0).FlowStats(k)
		t.Logf("%-28s %6.0f kb/s, %5.1f %% of the bound, %.2f rounds a block, at most %d packets queued", c.name, got, 100*got/bound, float64(s.Rounds)/float64(s.BlocksSent), w.out[0][0].most)
		if got < c.least*bound || got > 1.01*bound {
			t.Errorf("%s: %.0f kb/s, want %v of %.0f", c.name, got, c.least, bound)
		}
		if w.out[0][0].most > 12 {
			t.Errorf("%s: %d packets stood in the queue", c.name, w.out[0][0].most)
		}
	}
}

// TestPipeBothWays: data do not hold up the control of the other direction by
// more than the few packets that stand in the queue.
func TestPipeBothWays(t *testing.T) {
	b, _ := newWires(t, 2, hop.DefaultConfig(), line())
	there, back := b.flow(1, 0, 1, vtime.MiB), b.flow(2, 1, 0, vtime.MiB)
	for i, got := range b.goodput(20*vtime.Second, 120*vtime.Second, there, back) {
		t.Logf("direction %d: %.0f kb/s", i, got)
		if got < 8900 {
			t.Errorf("direction %d: %.0f kb/s beside the other one, want the 9,000 that it has alone", i, got)
		}
	}
}

// TestPipeChains: a relay that holds one block (H = 1) is either receiving or
// sending, so that a second hop halves the goodput, on wires as on a radio; a
// relay that holds two does both at once, but for the half round trip by which
// the grant for a freed place is late.
func TestPipeChains(t *testing.T) {
	for h, want := range map[int][3]float64{1: {1, 0.47, 0.47}, 2: {1, 0.93, 0.93}} {
		cfg := hop.DefaultConfig()
		cfg.H = h
		var one float64
		for hops := 1; hops <= 3; hops++ {
			b, _ := newWires(t, hops+1, cfg, line())
			got := b.goodput(20*vtime.Second, 120*vtime.Second, b.flow(1, 0, hops, 256*vtime.KiB))[0]
			if hops == 1 {
				one = got
			}
			t.Logf("H = %d, %d hops: %.0f kb/s", h, hops, got)
			if share := got / one; share < want[hops-1]-0.03 || share > want[hops-1]+0.03 {
				t.Errorf("H = %d, %d hops: %.2f of one hop's goodput, want %.2f", h, hops, share, want[hops-1])
			}
		}
	}
}

// TestBackpressureInClosedForm is the paper's example (§3.3): k flows share a
// first link with loss p1 and go on over links of their own, one with p1 and k−1
// with p2. Without backpressure the total is C[(1−p1)+(k−1)(1−p2)]/k, because the
// first link carries what then goes no further; with it about C(1−p1). Here k = 5,
// p1 = 0 and p2 = 1: a factor of 5. The links share no airtime, and H is 2: with
// 1 the relay's turns halve what goes through it. The interval ends before the
// flows' windows are full, which is a kind of backpressure, too.
func TestBackpressureInClosedForm(t *testing.T) {
	run := func(no bool) float64 {
		cfg := hop.DefaultConfig()
		cfg.H, cfg.NoBackpressure, cfg.Window = 2, no, hop.MaxWindow
		b, w := newStar(t, cfg, line())
		var flows []hop.FlowKey
		for i := range 5 {
			flows = append(flows, b.flow(i+1, 0, 2+i, 256*vtime.KiB))
			if i > 0 {
				w.find(1, 2+i).pipe.Apply(pipe.Change{Loss: &pipe.Loss{Good: 1}})
			}
		}
		total := 0.0
		for _, g := range b.goodput(5*vtime.Second, 45*vtime.Second, flows...) {
			total += g
		}
		return total
	}
	with, without := run(false), run(true)
	t.Logf("five flows over one link, four of them to links that lose everything: %.0f kb/s with backpressure, %.0f without: ×%.1f", with, without, with/without)
	if gain := with / without; gain < 5*0.75 || gain > 5*1.25 {
		t.Errorf("backpressure gains ×%.1f, want ×5", gain)
	}
}

// TestPipeDown: a pipe that is down for a while keeps its queue; the flow goes
// on within a second or two after it is up again, whatever was under way.
func TestPipeDown(t *testing.T) {
	for _, gap := range []vtime.Duration{500 * vtime.Millisecond, 5 * vtime.Second, 60 * vtime.Second} {
		b, w := newWires(t, 2, hop.DefaultConfig(), line())
		k := b.flow(1, 0, 1, vtime.MiB)
		down, up := false, true
		at := vtime.Time(10 * vtime.Second)
		b.eng.RunUntil(at)
		w.out[0][0].pipe.Apply(pipe.Change{Up: &down})
		b.eng.RunUntil(at.Add(gap))
		before := b.net.Node(1).Delivered(k)
		if q := w.out[0][0].pipe.Queued(); q > 12 {
			t.Errorf("down for %v: %d packets in the queue", gap, q)
		}
		w.out[0][0].pipe.Apply(pipe.Change{Up: &up})
		b.eng.RunUntil(at.Add(gap + 5*vtime.Second))
		got := float64(b.net.Node(1).Delivered(k)-before) * 8 / 5e3
		t.Logf("down for %v: %.0f kb/s in the 5 s afterwards", gap, got)
		if got < 0.7*9000 {
			t.Errorf("down for %v: %.0f kb/s in the 5 s afterwards", gap, got)
		}
	}
}

// TestPipesDeterministic: equal seeds, equal traces, with every source of chance
// on.
func TestPipesDeterministic(t *testing.T) {
	run := func() uint64 {
		cfg := line()
		cfg.Loss.Good, cfg.Duplicate = 0.02, 0.01
		cfg.Jitter = pipe.Jitter{Distribution: pipe.Exponential, Spread: vtime.Millisecond, Overtake: true}
		b, _ := newWires(t, 4, hop.DefaultConfig(), cfg)
		b.flow(1, 0, 3, 64*vtime.KiB)
		b.flow(2, 3, 0, 64*vtime.KiB)
		b.eng.RunUntil(vtime.Time(20 * vtime.Second))
		return b.eng.TraceHash()
	}
	if a, b := run(), run(); a != b {
		t.Errorf("equal seeds, traces %x and %x", a, b)
	}
}
