package hop

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// randomWire draws a wire's properties.
func randomWire(r *rand.Rand, worst float64, f feedback) wireOptions {
	o := wireOptions{
		rate: vtime.BitRate(1+r.IntN(100)) * vtime.MbitPerSecond, delay: vtime.Duration(r.IntN(60)) * vtime.Millisecond,
		loss: r.Float64() * worst, dup: r.Float64() * 0.2,
	}
	if r.IntN(4) > 0 || f != exactDone {
		o.limit = 1 + r.IntN(60)
	}
	if r.IntN(2) == 0 {
		o.jitter, o.overtake = vtime.Duration(1+r.IntN(30))*vtime.Millisecond, r.IntN(2) == 0
	}
	return o
}

// TestRandomPorts is TestRandomNetworks for nodes with several interfaces: any
// mix of radio links and wires, some neighbours reachable by both. Wires lose,
// reorder and duplicate, go down and up with packets in their queues, and carry
// others' packets; routes move between ports in mid-block.
func TestRandomPorts(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 78))
			cfg := randomConfig(r)
			k := 2 + r.IntN(7)
			opt := randomOptions(r, false)
			w := newWorld(t, seed, k, cfg, opt)
			worst := r.Float64() * 0.7
			link := func(i, j int) {
				kind := r.IntN(4)
				if kind < 3 {
					w.join(i, j, randomWire(r, worst, opt.feedback))
				}
				if kind > 1 {
					w.link(i, j, r.Float64()*worst)
				}
			}
			for i := 1; i < k; i++ { // a tree, and some links more
				link(i, r.IntN(i))
			}
			for range r.IntN(k) {
				if i, j := r.IntN(k), r.IntN(k); i != j && !w.joined(i, j) {
					link(i, j)
				}
			}
			w.route()
			var flows []FlowKey
			limit := 20 * vtime.Minute
			slow := w.slowest()
			for id := range 1 + r.IntN(6) {
				src, dst := r.IntN(k), r.IntN(k)
				if src == dst {
					continue
				}
				size := vtime.Bytes(1 + r.IntN(1_500_000))
				if r.IntN(3) == 0 {
					size = vtime.Bytes(1 + r.IntN(30_000))
				}
				size = min(size, 200*cfg.BlockSize)
				limit += slow.bound(size, cfg, k, worst)
				flows = append(flows, w.open(src, dst, FlowID(id), size, FlowOptions{}))
			}
			w.rewire(r, 30*vtime.Second)
			w.mayhem(r, cfg, flows, 60*vtime.Second)
			for i := range w.down {
				w.down[i] = false
			}
			w.eachWire(func(x *wire) { x.setUp(true) })
			w.route()
			w.finish(limit, flows...)
			for _, f := range flows {
				if errs := w.nodes[f.Dst].app.errors; len(errs) > 0 {
					t.Fatalf("errors %v", errs)
				}
			}
		})
	}
}

// slowest is a world whose rate is that of the slowest link of w, and whose
// control packets are tried once, as on a wire: for world.bound.
func (w *world) slowest() *world {
	s := &world{opt: w.opt}
	s.opt.arqTries = 1
	w.eachWire(func(x *wire) { s.opt.rate = min(s.opt.rate, x.opt.rate) })
	return s
}

func (w *world) eachWire(do func(*wire)) {
	for _, node := range w.wires {
		for _, x := range node {
			do(x)
		}
	}
}

// rewire runs for a while; meanwhile wires go down and up, are crowded by
// others, and neighbours that are joined by a wire and by radio move from one to
// the other.
func (w *world) rewire(r *rand.Rand, d vtime.Duration) {
	for until := w.now.Add(d); w.now < until; {
		w.run(w.now.Add(vtime.Duration(1+r.IntN(1500))*vtime.Millisecond), nil)
		w.eachWire(func(x *wire) {
			switch r.IntN(8) {
			case 0:
				x.setUp(false)
			case 1, 2:
				x.setUp(true)
			case 3:
				x.crowd(r.IntN(50))
			case 4:
				x.avoid = w.loss[x.from][x.to] >= 0 && r.IntN(2) == 0
			}
			w.flush(w.nodes[x.from])
		})
	}
}
