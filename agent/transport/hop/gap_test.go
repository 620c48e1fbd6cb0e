package hop

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// gapConfig is Hop with the two rules for long gaps.
func gapConfig() Config {
	c := testConfig()
	c.E2EStall = E2EStall
	return c
}

// cut takes links of a chain down, or up again.
func (w *world) cut(down bool, links ...int) {
	p := 0.0
	if down {
		p = 1
	}
	for _, i := range links {
		w.loss[i][i+1], w.loss[i+1][i] = p, p
	}
}

// all are the links of a chain.
func (w *world) all() []int {
	var out []int
	for i := range len(w.nodes) - 1 {
		out = append(out, i)
	}
	return out
}

// TestLongGap: whatever the length of a gap in all links, the flow goes on where it
// was. Once the links are back each hop loses no more than the pause between two BSYNs,
// and the source knows the end within E2EInitial.
func TestLongGap(t *testing.T) {
	const hops = 5
	run := func(h int, at, gap vtime.Duration) (delivered, known vtime.Time) {
		cfg := gapConfig()
		cfg.H = h
		w := newWorld(t, 1, hops+1, cfg, worldOptions{})
		w.chain(0)
		k := w.open(0, hops, 1, 40*64*vtime.KiB, FlowOptions{})
		if gap > 0 {
			w.run(vtime.Time(at), nil)
			w.cut(true, w.all()...)
			w.run(w.now.Add(gap), nil)
			w.cut(false, w.all()...)
		}
		done := func(i int) func() bool { return func() bool { return w.nodes[i].app.finished[k] } }
		if !done(hops)() && !w.run(w.now.Add(vtime.Hour), done(hops)) {
			t.Fatalf("H %d, a gap of %v at %v: not delivered\n%s", h, gap, at, w.summary())
		}
		delivered = w.now
		if !done(0)() && !w.run(w.now.Add(vtime.Hour), done(0)) {
			t.Fatalf("H %d, a gap of %v at %v: the source does not know\n%s", h, gap, at, w.summary())
		}
		return delivered, w.now
	}
	for _, h := range []int{1, 4} {
		plain, known := run(h, 0, 0)
		if known.Sub(plain) > vtime.Second {
			t.Fatalf("H %d: delivered at %v, known at %v", h, plain, known)
		}
		slack := hops*DefaultConfig().BSYNCeil + vtime.Second
		for _, gap := range []vtime.Duration{vtime.Second, vtime.Minute, vtime.Hour, 30 * vtime.Hour} {
			step := 300*vtime.Millisecond + gap/1000
			for at := 200 * vtime.Millisecond; vtime.Time(at) < plain; at += step {
				delivered, known := run(h, at, gap)
				if late := delivered.Sub(plain.Add(gap)); late > slack {
					t.Errorf("H %d: a gap of %v at %v delays the end by %v more, at most %v expected", h, gap, at, late, slack)
				}
				if late := known.Sub(delivered); late > DefaultConfig().E2EInitial+slack {
					t.Errorf("H %d, a gap of %v at %v: the source knows %v after the delivery", h, gap, at, late)
				}
			}
		}
	}
}

// TestContacts: adjacent links are never up together (reference 1c.10). In the long run
// each contact brings H blocks over its hop: nothing but H bounds the flow, neither
// the way there nor the acknowledgements' way back.
func TestContacts(t *testing.T) {
	for _, c := range []struct {
		hops, h  int
		up, turn vtime.Duration // of each turn the links whose it is are up so long
		once     bool           // end-to-end BACKs are sent once
		share    float64        // of H blocks in each round, at least (or, with once, at most)
	}{
		{2, 4, 5 * vtime.Second, 5 * vtime.Second, false, 0.9},
		{4, 4, 5 * vtime.Second, 5 * vtime.Second, false, 0.9},
		{7, 2, 5 * vtime.Second, 5 * vtime.Second, false, 0.85},
		{4, 4, 5 * vtime.Second, 55 * vtime.Second, false, 0.9},
		{4, 4, vtime.Minute, 10 * vtime.Minute, false, 0.9},
		{4, 4, 5 * vtime.Second, 55 * vtime.Second, true, 0.6},
	} {
		cfg := gapConfig()
		cfg.H, cfg.Window = c.h, MaxWindow
		if c.once {
			cfg.E2EStall = 0
		}
		w := newWorld(t, 1, c.hops+1, cfg, worldOptions{})
		w.chain(0)
		w.cut(true, w.all()...)
		k := w.open(0, c.hops, 1, -1, FlowOptions{})
		const rounds = 60
		for range rounds {
			for turn := range 2 { // first the links with even numbers, then the others
				links := w.all()[turn:]
				for i := 0; i < len(links); i += 2 {
					w.cut(false, links[i])
				}
				w.run(w.now.Add(c.up), nil)
				w.cut(true, w.all()...)
				w.run(w.now.Add(c.turn-c.up), nil)
			}
		}
		s, _ := w.nodes[0].n.FlowStats(k)
		share := float64(s.BlocksAcked) / float64(c.h*(rounds-c.hops))
		if !c.once && share < c.share || c.once && share > c.share {
			t.Errorf("%+v: %d blocks in %d rounds, %.2f of H in each", c, s.BlocksAcked, rounds, share)
		}
		t.Logf("%+v: share %.2f, %d tokens by the source", c, share, s.Tokens)
	}
}

// TestFullWindowAsks: a source whose window is full and whose acknowledgements were
// lost hears of the destination within E2EStall and the pauses of a token, however long
// its end-to-end timeout has become.
func TestFullWindowAsks(t *testing.T) {
	cfg := gapConfig()
	cfg.Window, cfg.H = 4, 4
	w := newWorld(t, 1, 4, cfg, worldOptions{})
	w.chain(0)
	k := w.open(0, 3, 1, -1, FlowOptions{})
	w.run(vtime.Time(5*vtime.Second), nil)
	f := w.nodes[0].n.lookup(k)
	f.stats.E2EDelay = 30 * vtime.Minute // as after a gap
	for i := range 3 {                   // the way back is lost, the way there is not
		w.loss[i+1][i] = 1
	}
	w.run(w.now.Add(vtime.Second), nil)
	for i := range 3 {
		w.loss[i+1][i] = 0
	}
	acked := f.stats.BlocksAcked
	f.stats.E2EDelay = 30 * vtime.Minute
	limit := cfg.E2EStall + 4*cfg.BSYNCeil
	if !w.run(w.now.Add(limit), func() bool { return f.stats.BlocksAcked > acked+4 }) {
		t.Errorf("%v after the links were back %d blocks were acknowledged, %d before\n%s", limit, f.stats.BlocksAcked, acked, w.summary())
	}
}

// TestDeathWithinAGap: a relay loses its memory while the links are down. What it alone
// answered for comes again, by a token.
func TestDeathWithinAGap(t *testing.T) {
	for _, gap := range []vtime.Duration{10 * vtime.Second, 2 * vtime.Hour} {
		for victim := 1; victim < 4; victim++ {
			cfg := gapConfig()
			cfg.H = 4
			w := newWorld(t, 1, 5, cfg, worldOptions{})
			w.chain(0)
			k := w.open(0, 4, 1, 60*64*vtime.KiB, FlowOptions{})
			w.run(vtime.Time(2*vtime.Second), nil)
			w.cut(true, victim) // it fills
			w.run(w.now.Add(2*vtime.Second), nil)
			w.cut(true, w.all()...)
			w.run(w.now.Add(gap/2), nil)
			w.boot(NodeID(victim), cfg)
			w.run(w.now.Add(gap/2), nil)
			w.cut(false, w.all()...)
			back := w.now
			w.finish(2*vtime.Minute, k)
			if late := w.now.Sub(back); late > 4*vtime.Minute {
				t.Errorf("gap %v, node %d: the source knows after %v", gap, victim, late)
			}
			s := w.nodes[victim-1].n.Stats()
			if s.DataAgain == 0 {
				t.Errorf("gap %v, node %d: nothing was sent again", gap, victim)
			}
			for i := range w.nodes {
				if s := w.nodes[i].n.Stats(); i != victim-1 && s.DataAgain > 0 || s.Redundant > 0 {
					t.Errorf("gap %v, node %d: node %d sent %d data packets again, and was sent %d in vain", gap, victim, i, s.DataAgain, s.Redundant)
				}
			}
		}
	}
}

// TestRouteChangesInMidBlock: the route moves to another relay while a block is on its
// way to the first one, and back: the block goes on from the node that has it, and what
// the first relay has of it holds up nothing.
func TestRouteChangesInMidBlock(t *testing.T) {
	for when := 20 * vtime.Millisecond; when < 400*vtime.Millisecond; when += 17 * vtime.Millisecond {
		w := newWorld(t, 1, 5, testConfig(), worldOptions{}) // 0 – {1, 2} – 3 – 4
		for _, l := range [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}} {
			w.link(l[0], l[1], 0)
		}
		w.route()
		via := func(relay NodeID) {
			w.nodes[0].next[4], w.nodes[0].next[3] = relay, relay
			w.nodes[3].next[0] = relay
		}
		via(1)
		k := w.open(0, 4, 1, 10*64*vtime.KiB, FlowOptions{})
		w.run(vtime.Time(when), nil)
		w.link(0, 1, 1)
		via(2)
		w.run(w.now.Add(3*vtime.Second), nil)
		w.link(0, 1, 0)
		w.link(0, 2, 1)
		via(1)
		back := w.now
		w.finish(20*vtime.Second, k)
		if late := w.now.Sub(back); late > 80*vtime.Second {
			t.Errorf("a change after %v: finished %v after the second one", when, late)
		}
	}
}

// TestSilentRelayIsNotATrap: a relay that is cut off for good holds blocks that nobody
// else answers for but the source; the route leads around it from then on.
func TestSilentRelayIsNotATrap(t *testing.T) {
	for _, h := range []int{1, 4} {
		cfg := gapConfig()
		cfg.H = h
		w := newWorld(t, 1, 5, cfg, worldOptions{})
		for _, l := range [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}} {
			w.link(l[0], l[1], 0)
		}
		w.route()
		w.nodes[0].next[4], w.nodes[3].next[0] = 1, 1
		k := w.open(0, 4, 1, 40*64*vtime.KiB, FlowOptions{})
		w.run(vtime.Time(2*vtime.Second), nil)
		w.link(1, 3, 1)
		w.run(w.now.Add(5*vtime.Second), nil)
		w.link(0, 1, 1)
		w.nodes[0].next[4], w.nodes[3].next[0] = 2, 2
		w.finish(3*vtime.Minute, k)
		if late := w.now; late > vtime.Time(5*vtime.Minute) {
			t.Errorf("H %d: finished at %v", h, late)
		}
	}
}
