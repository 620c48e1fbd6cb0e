package hop

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// star joins nodes 1… to node 0, without losses.
func star(t *testing.T, k int, cfg Config, o worldOptions) *world {
	w := newWorld(t, 1, k, cfg, o)
	for i := 1; i < k; i++ {
		w.link(0, i, 0)
	}
	w.route()
	return w
}

// TestAgeing: a large block that smaller ones pass by all the time has its turn after
// GrantAgeing grants, and without ageing never.
func TestAgeing(t *testing.T) {
	passed := func(ageing int) (done bool, grants uint64) {
		cfg := testConfig()
		cfg.BlockSize, cfg.GrantAgeing = 20*vtime.KiB, ageing
		w := star(t, 5, cfg, worldOptions{})
		small := []FlowKey{w.open(2, 0, 1, -1, FlowOptions{}), w.open(3, 0, 1, -1, FlowOptions{}), w.open(4, 0, 1, -1, FlowOptions{})}
		w.run(vtime.Time(vtime.Second), nil)
		count := func() (n uint64) {
			for _, k := range small {
				s, _ := w.nodes[0].n.FlowStats(k)
				n += s.Grants
			}
			return n
		}
		large := w.open(1, 0, 1, MaxBlockSize, FlowOptions{BlockSize: MaxBlockSize})
		asked := func() bool { return w.nodes[0].n.lookup(large) != nil }
		w.run(w.now.Add(vtime.Second), asked)
		before := count()
		granted := func() bool { s, _ := w.nodes[0].n.FlowStats(large); return s.Grants > 0 }
		done = w.run(w.now.Add(20*vtime.Second), granted)
		return done, count() - before
	}
	if done, grants := passed(5); !done || grants > 6 {
		t.Errorf("granted: %v, after %d grants of smaller blocks; want 5, and the one under way", done, grants)
	}
	if done, grants := passed(1 << 20); done {
		t.Errorf("without ageing it was granted after %d grants of smaller blocks: the test shows nothing", grants)
	}
}

// TestForgottenRequest: a request that its sender has not repeated for RequestTTL gets
// no grant.
func TestForgottenRequest(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w := star(t, 3, testConfig(), worldOptions{rate: 40 * vtime.KbitPerSecond}) // a block takes 14 s
		w.open(1, 0, 1, 64*vtime.KiB, FlowOptions{})
		w.run(vtime.Time(vtime.Second), nil)
		k := w.open(2, 0, 1, 60*vtime.KiB, FlowOptions{})
		w.run(w.now.Add(vtime.Second), nil)
		if f := w.nodes[0].n.lookup(k); f == nil || f.blocks[0].rx != rxRequested {
			t.Fatal("the second request does not wait")
		}
		w.down[2] = silent
		first := func() bool { return w.nodes[0].n.Stats().Flows > 0 && w.nodes[0].n.granted == nil }
		w.run(w.now.Add(30*vtime.Second), first)
		w.run(w.now.Add(vtime.Second), nil)
		if s, _ := w.nodes[0].n.FlowStats(k); (s.Grants > 0) == silent {
			t.Errorf("silent %v: %d grants", silent, s.Grants)
		}
	}
}

// TestHopLimit: a token crosses no more than VirtualTTL hops, and an end-to-end BACK as
// many.
func TestHopLimit(t *testing.T) {
	cfg := testConfig()
	cfg.VirtualTTL, cfg.E2EInitial = 2, vtime.Second
	w := newWorld(t, 1, 6, cfg, worldOptions{})
	w.chain(0)
	k := w.open(0, 5, 1, 64*vtime.KiB, FlowOptions{})
	w.run(vtime.Time(10*vtime.Second), nil)
	if !w.nodes[5].app.finished[k] || w.nodes[0].app.finished[k] {
		t.Errorf("finished at the destination: %v, wanted; at the source, five hops away: %v", w.nodes[5].app.finished[k], w.nodes[0].app.finished[k])
	}
	for i, want := range []bool{true, true, false, false, false, false} {
		if n := w.nodes[i].n.Stats().Tokens; (n > 0) != want {
			t.Errorf("node %d has sent %d tokens", i, n)
		}
	}
	if d := DefaultConfig().VirtualTTL; d != 50 {
		t.Errorf("the default is %d hops, the paper has 50", d)
	}
}
