package simnet

import (
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

const (
	ms  = vtime.Time(vtime.Millisecond)
	sec = vtime.Time(vtime.Second)
)

// lab is a small network with routes by hand.
type lab struct {
	t    testing.TB
	eng  *des.Engine
	med  *wifi.Medium
	net  *Net
	cfg  Config
	next map[[2]int]int
	mute int               // nodes without a radio, the last ones
	out  map[[2]int]Egress // nil: radio only; pairs that are not in it: the radio
	res  []*proto.Results
}

// Egress implements Links.
func (l *lab) Egress(from, via int) (Egress, bool) {
	if e, ok := l.out[[2]int{from, via}]; ok {
		return e, true
	}
	return Egress{Pipe: Radio, Next: via}, true
}

// wired is for newLab: pipes between the nodes of a lab, each end's slot in the
// order of the list. The last nodes, from the number radios on, have no radio.
// Further arguments are bridges: {from, via, next} says that what from sends for
// its neighbour via goes to next first.
func wired(radios, nodes int, pipes []Pipe, bridges ...[3]int) func(*Config) {
	return func(c *Config) {
		c.Nodes, c.Pipes = nodes, pipes
		l := c.Routes.(*lab)
		l.out, l.mute = map[[2]int]Egress{}, nodes-radios
		slots := make([]int, nodes)
		for i := range pipes {
			p := &pipes[i]
			p.ID = i
			for e, node := range p.Ends {
				p.Slot[e] = slots[node]
				slots[node]++
				l.out[[2]int{node, p.Ends[1-e]}] = Egress{Pipe: i, End: e, Next: p.Ends[1-e]}
			}
		}
		for _, b := range bridges {
			e, _ := l.Egress(b[0], b[2])
			l.out[[2]int{b[0], b[1]}] = e
			l.next[[2]int{b[0], b[1]}] = b[1]
		}
		c.Links = l
	}
}

// wire is a pipe that is alike in both directions.
func wire(a, b int, c pipe.Config) Pipe {
	return Pipe{Ends: [2]int{a, b}, Config: [2]pipe.Config{c, c}}
}

// both applies several changes to a configuration.
func both(edits ...func(*Config)) func(*Config) {
	return func(c *Config) {
		for _, e := range edits {
			e(c)
		}
	}
}

// NextHop implements Routes.
func (l *lab) NextHop(from, dst int) (int, bool) {
	via, ok := l.next[[2]int{from, dst}]
	return via, ok
}

// row lets packets between the nodes travel along the row.
func (l *lab) row(nodes ...int) {
	for i := range nodes {
		for j := range nodes {
			if i < j {
				l.next[[2]int{nodes[i], nodes[j]}] = nodes[i+1]
			} else if i > j {
				l.next[[2]int{nodes[i], nodes[j]}] = nodes[i-1]
			}
		}
	}
}

// testMAC is 802.11b with Hop's data queue.
func testMAC() wifi.MAC {
	m := wifi.DefaultMAC(wifi.StandardB)
	m.Queues[wifi.BK].TXOP, m.Queues[wifi.BK].Ack = hop.DataTxop, wifi.AckNone
	return m
}

// positions puts a node at each x, in metres.
func positions(xs ...float64) []wifi.Position {
	out := make([]wifi.Position, len(xs))
	for i, x := range xs {
		out[i].X = vtime.Metres(x)
	}
	return out
}

// newLab makes a network of nodes that decode to 250 m and sense to 550 m,
// measured from second 1 to second 11 unless edit says otherwise.
func newLab(t testing.TB, pos []wifi.Position, mac wifi.MAC, edit func(*Config), flows ...proto.Flow) *lab {
	t.Helper()
	l := &lab{t: t, eng: des.New(), next: map[[2]int]int{}}
	l.cfg = Config{Seed: 1, Nodes: len(pos), Routes: l, Flows: flows, Warmup: sec, End: 11 * sec, Hop: hop.DefaultConfig(), TCP: tcp.DefaultConfig()}
	all := make([]int, 64)
	for i := range all {
		all[i] = i
	}
	l.row(all...)
	if edit != nil {
		edit(&l.cfg)
	}
	for i := range l.cfg.Flows {
		f := &l.cfg.Flows[i]
		f.ID = i
		if f.Workload.Kind == "" {
			f.Workload.Kind = workload.Continual
		}
		if f.Path == nil {
			f.Path = []int{f.Src, f.Dst}
		}
	}
	var err error
	if l.net, err = New(l.eng, l.cfg); err != nil {
		t.Fatal(err)
	}
	if len(pos) > 0 {
		l.addMedium(pos, mac)
	}
	l.net.Start()
	return l
}

func (l *lab) addMedium(pos []wifi.Position, mac wifi.MAC) {
	l.t.Helper()
	var mute []int
	for i := range l.mute {
		mute = append(mute, len(pos)+i)
	}
	ch, err := wifi.NewChannel(1, wifi.DiskRadio(250, 550), mac, append(pos, make([]wifi.Position, l.mute)...), mute...)
	if err != nil {
		l.t.Fatal(err)
	}
	if l.med, err = wifi.NewMedium(l.eng, l.cfg.Seed, ch, []wifi.MAC{mac}, l.net); err != nil {
		l.t.Fatal(err)
	}
	l.net.Attach(l.med)
}

// runTo goes on until t, in steps of a second, and marks the warm-up's end.
func (l *lab) runTo(t vtime.Time) {
	for now := l.eng.Now(); now < t; now = l.eng.Now() {
		to := min(now.Add(vtime.Second), t)
		if now < l.cfg.Warmup {
			to = min(to, l.cfg.Warmup)
		}
		l.net.RunTo(to)
		if to == l.cfg.Warmup {
			l.net.ResetStats()
			if l.med != nil {
				l.med.ResetStats()
			}
		}
	}
}

// finish runs to the end and returns the accounts.
func (l *lab) finish() {
	l.runTo(l.cfg.End)
	l.res = l.net.Account(l.cfg.End)
}

// side returns one side's account of a flow; of a relay that of the node.
func (l *lab) side(flow int, s proto.Side, node int) proto.FlowResult {
	l.t.Helper()
	for _, f := range l.res[node].Flows {
		if f.Flow == flow && f.Side == s {
			return f
		}
	}
	l.t.Fatalf("node %d gives no account of flow %d as its %s", node, flow, s)
	return proto.FlowResult{}
}

func (l *lab) dst(flow int) proto.FlowResult {
	return l.side(flow, proto.Destination, l.cfg.Flows[flow].Dst)
}
func (l *lab) src(flow int) proto.FlowResult {
	return l.side(flow, proto.Source, l.cfg.Flows[flow].Src)
}

// goodput is a flow's, in Mb/s over the measured interval.
func (l *lab) goodput(flow int) float64 {
	return 8 * float64(l.dst(flow).Bytes) / l.cfg.End.Sub(l.cfg.Warmup).Seconds() / 1e6
}

// counter returns a node's counter, 0 where it is absent.
func (l *lab) counter(node int, name string) int64 {
	for _, c := range l.res[node].Facts.Counters {
		if c.Name == name {
			return c.Delta
		}
	}
	return 0
}

func udp(src, dst int, size vtime.Bytes) proto.Flow {
	return proto.Flow{Transport: "udp", Src: src, Dst: dst, Options: proto.FlowOptions{PacketSize: size}}
}

func tcpFlow(src, dst int) proto.Flow {
	return proto.Flow{Transport: "tcp/cubic", Src: src, Dst: dst}
}
