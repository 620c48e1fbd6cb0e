package hop

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestHeldFlow: a destination that is held takes no block but the one that it
// has granted, whatever their size, and goes on at once when it is let go; the
// other flows that end there do not notice.
func TestHeldFlow(t *testing.T) {
	for _, size := range []vtime.Bytes{100_000, 5_000, 500} {
		t.Run(size.String(), func(t *testing.T) {
			w := newWorld(t, 1, 3, testConfig(), worldOptions{})
			w.chain(0.1)
			k := w.open(0, 2, 1, 400*size, FlowOptions{BlockSize: size})
			x := w.nodes[2]
			blocks := func() int { return x.app.blocks[k] }
			w.run(w.now.Add(10*vtime.Second), func() bool { return blocks() >= 3 })
			x.n.Hold(w.now, k, HoldAll)
			had := blocks()
			w.run(w.now.Add(40*vtime.Second), nil)
			under := int(testConfig().MicroWindow / size) // a micro-block's sender does not ask
			if size > testConfig().MicroThreshold {
				under = 1
			}
			if got := blocks(); got > had+under {
				t.Errorf("%d blocks delivered before it was held, %d afterwards", had, got)
			}
			held := blocks()
			other := w.open(0, 2, 2, 50_000, FlowOptions{})
			if !w.run(w.now.Add(20*vtime.Second), func() bool { return x.app.finished[other] }) {
				t.Error("another flow does not get through")
			}
			if blocks() != held {
				t.Errorf("%d blocks more while the flow is held", blocks()-held)
			}
			x.n.Hold(w.now, k, HoldAsOthers)
			w.flush(x)
			at := w.now
			if !w.run(w.now.Add(3*vtime.Second), func() bool { return blocks() > held }) {
				t.Fatalf("no block within 3 s\n%s", w.summary())
			}
			t.Logf("held at %d, the next block %v after it was let go", held, w.now.Sub(at))
			if !w.run(w.now.Add(10*vtime.Minute), func() bool { return x.app.finished[k] }) {
				t.Errorf("the flow has not ended\n%s", w.summary())
			}
		})
	}
}

// TestHoldLarge: no flow that ends at the node gets a grant for a large block;
// micro-blocks, and what the node relays, go on.
func TestHoldLarge(t *testing.T) {
	w := newWorld(t, 1, 3, testConfig(), worldOptions{})
	w.chain(0)
	x := w.nodes[1]
	x.n.HoldLarge(0, true)
	large, small, through := w.open(0, 1, 1, 300_000, FlowOptions{}), w.open(0, 1, 2, 5_000, FlowOptions{}), w.open(0, 2, 3, 300_000, FlowOptions{})
	w.run(w.now.Add(30*vtime.Second), nil)
	if x.app.finished[large] || x.app.blocks[large] > 0 || !x.app.finished[small] || !w.nodes[2].app.finished[through] {
		t.Errorf("large %v, small %v, relayed %v\n%s", x.app.finished[large], x.app.finished[small], w.nodes[2].app.finished[through], w.summary())
	}
	x.n.Hold(w.now, large, HoldNothing) // somebody waits for this one
	w.flush(x)
	if !w.run(w.now.Add(5*vtime.Second), func() bool { return x.app.finished[large] }) {
		t.Errorf("not delivered although the flow was exempted\n%s", w.summary())
	}
	next := w.open(0, 1, 4, 300_000, FlowOptions{})
	w.run(w.now.Add(20*vtime.Second), nil)
	if x.app.blocks[next] > 0 {
		t.Error("another flow's large block was granted")
	}
	x.n.HoldLarge(w.now, false)
	w.flush(x)
	if !w.run(w.now.Add(5*vtime.Second), func() bool { return x.app.finished[next] }) {
		t.Errorf("not delivered after it was let go\n%s", w.summary())
	}
}

// TestHoldIsForDestinations: nothing happens to flows that end elsewhere.
func TestHoldIsForDestinations(t *testing.T) {
	w := newWorld(t, 1, 3, testConfig(), worldOptions{})
	w.chain(0)
	k := w.open(0, 2, 1, 3_000_000, FlowOptions{})
	w.run(w.now.Add(vtime.Second), nil)
	for _, x := range w.nodes[:2] {
		x.n.Hold(w.now, k, HoldAll)
	}
	w.nodes[2].n.Hold(w.now, FlowKey{Src: 9, Dst: 2, Flow: 9}, HoldAll)
	if !w.run(w.now.Add(vtime.Minute), func() bool { return w.nodes[2].app.finished[k] }) {
		t.Error(w.summary())
	}
}
