package hop

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

var seeds = flag.Int("hop.seeds", 200, "number of random networks that TestRandomNetworks runs")

// randomConfig draws a configuration: mostly the default, with any switch.
func randomConfig(r *rand.Rand) Config {
	c := DefaultConfig()
	c.BlockSize = vtime.Bytes(1 + r.IntN(100_000))
	c.H = 1 + r.IntN(3)
	c.Window = 2 + r.IntN(MaxWindow-1)
	c.Payload = MinPayload + r.IntN(MaxPayload-MinPayload+1)
	c.E2EInitial = vtime.Duration(1+r.IntN(10)) * vtime.Second
	if r.IntN(4) == 0 {
		c.MemoryLimit = 2 * MaxBlockSize
		c.BlockSize = vtime.Bytes(200_000 + r.IntN(800_000))
	}
	for _, b := range []*bool{&c.NoWithholding, &c.NoBackpressure, &c.NoTxop, &c.NoMicro, &c.NoVirtual, &c.GrantPoll, &c.E2ELiteral, &c.Unordered} {
		*b = r.IntN(6) == 0
	}
	if r.IntN(5) == 0 {
		c.Gap = vtime.Duration(1+r.IntN(20)) * vtime.Millisecond
	}
	if r.IntN(3) == 0 {
		c.GrantRepeat = vtime.Duration(20+r.IntN(300)) * vtime.Millisecond
	}
	c.PollAdaptive, c.Notice = r.IntN(4) == 0, r.IntN(4) == 0
	if r.IntN(2) == 0 {
		c.E2EStall = E2EStall
	}
	return c
}

// randomOptions draws what links and MACs do to packets; half of those with flips
// damage 2 % of the packets.
func randomOptions(r *rand.Rand, flips bool) worldOptions {
	o := worldOptions{
		jitter: vtime.Duration(r.IntN(20)) * vtime.Millisecond, dup: r.Float64() * 0.3, delay: vtime.Duration(r.IntN(5)) * vtime.Millisecond,
		feedback: feedback(r.IntN(3)), arqTries: 1 + r.IntN(7), queue: [NumClasses]int{1 + r.IntN(40), 1 + r.IntN(20)},
	}
	if flips {
		o.flipBytes = float64(r.IntN(2)) * 0.02
	}
	o.rate = vtime.BitRate(1+r.IntN(54)) * vtime.MbitPerSecond
	return o
}

// TestRandomNetworks: whatever the links do to packets, and although nodes
// die, lose their memory and come back, and routes change in mid-block, every
// block arrives exactly once and intact (testApp), the invariants hold after
// every event, and all flows finish within a bound once the links are back.
func TestRandomNetworks(t *testing.T) {
	run := []uint64{2256, 2528, 3628} // found mistakes
	for seed := range uint64(*seeds) {
		run = append(run, seed)
	}
	for _, seed := range run {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 77))
			cfg := randomConfig(r)
			k := 2 + r.IntN(7)
			w := newWorld(t, seed, k, cfg, randomOptions(r, true))
			worst := r.Float64() * 0.8
			for i := 1; i < k; i++ { // a tree, and some links more
				w.link(i, r.IntN(i), r.Float64()*worst)
			}
			for range r.IntN(k) {
				if i, j := r.IntN(k), r.IntN(k); i != j {
					w.link(i, j, r.Float64()*worst)
				}
			}
			w.route()
			var flows []FlowKey
			limit := 20 * vtime.Minute
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
				limit += w.bound(size, cfg, k, worst)
				flows = append(flows, w.open(src, dst, FlowID(id), size, FlowOptions{}))
			}
			w.mayhem(r, cfg, flows, 60*vtime.Second)
			for i := range w.down {
				w.down[i] = false
			}
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

// bound is what a flow may take with all links up: three times the mean that
// the slowest link needs over the most hops, every block after the other. A
// control packet gets through, and its answer back, with probability q, and is
// repeated after at most 2 s for the grant and 200 ms for each round's bitmap.
func (w *world) bound(size vtime.Bytes, cfg Config, nodes int, loss float64) vtime.Duration {
	q := math.Pow(1-math.Pow(loss, float64(w.opt.arqTries)), 2)
	blocks := float64(packets(int(size), int(cfg.BlockSize)))
	perBlock := float64(packets(int(min(size, cfg.BlockSize)), cfg.Payload))
	rounds := 2 + math.Log(perBlock+1)/-math.Log(max(loss, 0.1))
	exchange := 2/q + rounds*0.2/q
	air := w.opt.rate.TxTime(size+vtime.Bytes(blocks*perBlock)*100).Seconds() + blocks*perBlock*0.0005
	return vtime.FromSeconds(3 * float64(nodes) * (blocks*exchange + air/(1-loss)))
}

// flap takes a link down for a while, unless it is down already.
func (w *world) flap(i, j int, d vtime.Duration) {
	there, back := w.loss[i][j], w.loss[j][i]
	if i == j || there < 0 || there == 1 || back == 1 {
		return
	}
	w.loss[i][j], w.loss[j][i] = 1, 1
	w.at(w.now.Add(d), func() { w.loss[i][j], w.loss[j][i] = there, back })
}

// mayhem runs for a while and meanwhile cuts nodes and links off, restarts relays
// without their memory and changes routes. Nodes that are the end of a flow
// keep their memory: nobody can hold a promise for them.
func (w *world) mayhem(r *rand.Rand, cfg Config, flows []FlowKey, d vtime.Duration) {
	end := make(map[NodeID]bool)
	for _, f := range flows {
		end[f.Src], end[f.Dst] = true, true
	}
	if cfg.NoVirtual || r.IntN(3) == 0 {
		return // without end-to-end reliability nobody makes good what a relay loses
	}
	for until := w.now.Add(d); w.now < until; {
		w.run(w.now.Add(vtime.Duration(1+r.IntN(8000))*vtime.Millisecond), nil)
		i := r.IntN(len(w.nodes))
		switch r.IntN(5) {
		case 0:
			w.down[i] = true
		case 1:
			w.down[i] = false
		case 2:
			if !end[NodeID(i)] {
				w.boot(NodeID(i), cfg)
			}
		case 3:
			w.route()
		case 4:
			w.flap(i, r.IntN(len(w.nodes)), vtime.Duration(1+r.IntN(20000))*vtime.Millisecond)
		}
	}
}
