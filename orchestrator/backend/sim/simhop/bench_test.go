package simhop

import (
	"testing"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// bed is a network of stations with Hop and fixed shortest routes.
type bed struct {
	t    testing.TB
	eng  *des.Engine
	med  *wifi.Medium
	net  *Net
	next [][]int // next[i][d]: the next hop of i towards d; -1: none
	apps []*app
}

// app checks what is delivered against the flows' generators.
type app struct {
	hop.Sink
	t      testing.TB
	pos    map[hop.FlowKey]uint64
	blocks map[hop.FlowKey]int
}

func seedOf(k hop.FlowKey) uint64 { return uint64(k.Flow)<<32 | uint64(k.Src)<<16 | uint64(k.Dst) }

// Deliver implements hop.App.
func (a *app) Deliver(now vtime.Time, d hop.Delivery) {
	if int(d.Block) != a.blocks[d.Flow] || !hop.CheckPattern(seedOf(d.Flow), a.pos[d.Flow], d.Data) {
		a.t.Errorf("%v: flow %v: block %d is out of order or not what was sent", now, d.Flow, d.Block)
	}
	a.blocks[d.Flow]++
	a.pos[d.Flow] += uint64(len(d.Data))
}

// Failed implements hop.App.
func (a *app) Failed(now vtime.Time, f hop.FlowKey, err error) {
	a.t.Errorf("%v: flow %v: %v", now, f, err)
}

// router is one station's routes.
type router struct {
	b *bed
	i int
}

// NextHop implements hop.Routes.
func (r router) NextHop(dst hop.NodeID) (hop.NodeID, bool) {
	h := r.b.next[r.i][dst]
	return hop.NodeID(h), h >= 0
}

// newBed builds the bed over a channel. Links of at least minDelivery for a
// full data frame are used, the routes have the fewest transmissions (ETX).
func newBed(t testing.TB, seed uint64, ch *wifi.Channel, cfg hop.Config, minDelivery float64) *bed {
	t.Helper()
	n := ch.N()
	b := &bed{t: t, eng: des.New()}
	b.net = New(b.eng, n)
	mac := hopMAC(wifi.DefaultMAC(wifi.StandardB), cfg)
	med, err := wifi.NewMedium(b.eng, seed, ch, []wifi.MAC{mac}, sink{b.net})
	if err != nil {
		t.Fatal(err)
	}
	b.med = med
	attach(b.net, med)
	b.routes(ch, mac, minDelivery)
	for i := range n {
		a := &app{t: t, pos: map[hop.FlowKey]uint64{}, blocks: map[hop.FlowKey]int{}}
		b.apps = append(b.apps, a)
		if err := b.net.Add(i, cfg, router{b, i}, a); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bed) routes(ch *wifi.Channel, mac wifi.MAC, minDelivery float64) {
	n := ch.N()
	cost := make([][]float64, n)
	for i := range cost {
		cost[i] = make([]float64, n)
		for j := range cost[i] {
			cost[i][j] = -1
			if i != j {
				f, r := ch.Delivery(i, j, 1468, mac.Rate), ch.Delivery(j, i, 1468, mac.Rate)
				if f >= minDelivery && r >= minDelivery {
					cost[i][j] = 1 / (f * r)
				}
			}
		}
	}
	b.next = make([][]int, n)
	for i := range b.next {
		b.next[i] = make([]int, n)
	}
	for d := range n {
		dist := make([]float64, n)
		for i := range dist {
			dist[i] = 1e9
			b.next[i][d] = -1
		}
		dist[d] = 0
		for range n {
			for i := range n {
				for j := range n {
					if i != d && cost[i][j] >= 0 && dist[j] < 1e9 && cost[i][j]+dist[j] < dist[i]-1e-9 {
						dist[i], b.next[i][d] = cost[i][j]+dist[j], j
					}
				}
			}
		}
	}
}

// flow opens an endless flow and returns its key.
func (b *bed) flow(id, src, dst int, block vtime.Bytes) hop.FlowKey {
	b.t.Helper()
	k := hop.FlowKey{Src: hop.NodeID(src), Dst: hop.NodeID(dst), Flow: hop.FlowID(id)}
	if err := b.net.Open(src, k.Flow, dst, hop.Continual(seedOf(k)), hop.FlowOptions{BlockSize: block}); err != nil {
		b.t.Fatal(err)
	}
	return k
}

// goodput runs from warm-up to end and returns the flows' goodput in kb/s.
func (b *bed) goodput(warmup, end vtime.Duration, flows ...hop.FlowKey) []float64 {
	b.t.Helper()
	b.eng.RunUntil(vtime.Time(0).Add(warmup))
	before := make([]vtime.Bytes, len(flows))
	for i, k := range flows {
		before[i] = b.net.Node(int(k.Dst)).Delivered(k)
	}
	b.eng.RunUntil(vtime.Time(0).Add(end))
	rates := make([]float64, len(flows))
	for i, k := range flows {
		rates[i] = float64(b.net.Node(int(k.Dst)).Delivered(k)-before[i]) * 8 / (end - warmup).Seconds() / 1000
	}
	return rates
}

// chainChannel is a line of stations 200 m apart that decode to 250 m and
// sense to 550 m.
func chainChannel(t testing.TB, n int) *wifi.Channel {
	t.Helper()
	pos := make([]wifi.Position, n)
	for i := range pos {
		pos[i].X = vtime.Metres(200 * i)
	}
	ch, err := wifi.NewChannel(1, wifi.DiskRadio(250, 550), wifi.DefaultMAC(wifi.StandardB), pos)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}
