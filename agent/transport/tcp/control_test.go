package tcp

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestTable: names are unique, each makes a fresh control.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Controls() {
		if seen[n] {
			t.Errorf("%s is there twice", n)
		}
		seen[n] = true
		mk, ok := lookup(n)
		if !ok || mk() == nil {
			t.Errorf("%s cannot be made", n)
		}
	}
	cfg := DefaultConfig()
	cfg.CC = "vegas"
	if _, err := New(cfg, nil); err == nil {
		t.Error("an unknown control was taken")
	}
}

// open is a window in congestion avoidance that limits the flow.
func avoiding(cwnd int) *Window {
	return &Window{Cwnd: cwnd, Ssthresh: 2, Clamp: infinite, MSS: 1448, State: Open, CwndLimited: true,
		MaxPacketsOut: cwnd, Tick: 4 * vtime.Millisecond}
}

// TestRenoAIMD: one segment per window acknowledged (RFC 5681 §3.1), half at
// a loss, never below two.
func TestRenoAIMD(t *testing.T) {
	w := avoiding(20)
	c := new(reno)
	for round := range 5 {
		for n := w.Cwnd; n > 0; n -= 2 {
			c.Avoid(0, w, min(2, n))
		}
		if want := 21 + round; w.Cwnd != want {
			t.Fatalf("round %d: window %d, want %d", round, w.Cwnd, want)
		}
	}
	if s := c.Ssthresh(w); s != 12 {
		t.Errorf("half of 25 is %d", s)
	}
	w.Cwnd = 3
	if s := c.Ssthresh(w); s != 2 {
		t.Errorf("threshold %d below the minimum", s)
	}
	// Slow start doubles and stops at the threshold: the excess counts for
	// avoidance.
	w = &Window{Cwnd: 10, Ssthresh: 16, Clamp: infinite, State: Open, CwndLimited: true}
	c.Avoid(0, w, 10)
	if w.Cwnd != 16 || w.CwndCnt != 4 {
		t.Errorf("slow start to the threshold: window %d, count %d; want 16 and 4", w.Cwnd, w.CwndCnt)
	}
	// A window that is not the limit does not grow.
	w = avoiding(20)
	w.CwndLimited = false
	c.Avoid(0, w, 20)
	if w.Cwnd != 20 || w.CwndCnt != 0 {
		t.Errorf("an unused window grew to %d", w.Cwnd)
	}
}

// TestCubicFollowsItsCurve: after a loss the window returns to W_max after
// K = ∛(W_max(1−β)/C) seconds and is W(t) = C(t−K)³ + W_max before and after
// (RFC 9438 §4.2). The RTT is long enough that the Reno-friendly region does
// not matter.
func TestCubicFollowsItsCurve(t *testing.T) {
	const wmax, rtt = 1000, 400 * vtime.Millisecond
	const beta, scale = 717.0 / 1024, 41.0 / 1024 * 10
	c := new(cubic)
	w := avoiding(wmax)
	now := vtime.Time(vtime.Second)
	c.Init(now, w)
	w.Cwnd = wmax
	w.Ssthresh = c.Ssthresh(w)
	w.Cwnd = w.Ssthresh
	if w.Cwnd != 700 {
		t.Fatalf("β·1000 = %d, want 700", w.Cwnd)
	}
	k := math.Cbrt(wmax * (1 - 700.0/wmax) / scale)
	start := now
	for now.Sub(start).Seconds() < 1.6*k {
		// One ACK per two segments, spread over the round trip.
		acks := w.Cwnd / 2
		for range acks {
			c.Acked(now, w, 2, rtt)
			c.Avoid(now, w, 2)
			now = now.Add(rtt / vtime.Duration(acks))
		}
		s := now.Sub(start).Seconds()
		want := scale*math.Pow(s-k, 3) + wmax
		// The target is one minimal RTT ahead, and the window follows it within
		// about one more.
		lo := scale*math.Pow(s-2.2*rtt.Seconds()-k, 3) + wmax
		hi := scale*math.Pow(s+rtt.Seconds()-k, 3) + wmax
		if got := float64(w.Cwnd); got < lo-3 || got > hi+3 {
			t.Fatalf("t=%.2f (K=%.2f): window %d, curve %.1f, want %.1f to %.1f", s, k, w.Cwnd, want, lo, hi)
		}
	}
}

// TestCubicFastConvergence: a second loss below W_max gives up more (§4.7).
func TestCubicFastConvergence(t *testing.T) {
	c := new(cubic)
	w := avoiding(100)
	c.Init(0, w)
	w.Cwnd = 100
	c.Ssthresh(w)
	if c.lastMax != 100 {
		t.Fatalf("W_max %d", c.lastMax)
	}
	w.Cwnd = 80
	c.Ssthresh(w)
	if want := 80 * (1024 + 717) / 2048; c.lastMax != want {
		t.Errorf("W_max %d after a loss below it, want %d", c.lastMax, want)
	}
}

// TestCubicIsRenoFriendly: with a short RTT and a small window the growth is
// that of AIMD with α = 3(1−β)/(1+β) (§4.3).
func TestCubicIsRenoFriendly(t *testing.T) {
	const rtt = 10 * vtime.Millisecond
	c := new(cubic)
	w := avoiding(20)
	now := vtime.Time(vtime.Second)
	c.Init(now, w)
	w.Cwnd = 20
	w.Cwnd = c.Ssthresh(w)
	first := w.Cwnd
	rounds := 40
	for range rounds {
		acks := w.Cwnd
		for range acks {
			c.Acked(now, w, 1, rtt)
			c.Avoid(now, w, 1)
			now = now.Add(rtt / vtime.Duration(acks))
		}
	}
	alpha := 3 * (1 - 0.7) / (1 + 0.7)
	want := float64(first) + alpha*float64(rounds)
	if got := float64(w.Cwnd); math.Abs(got-want) > 3 {
		t.Errorf("after %d round trips %d segments, AIMD gives %.1f", rounds, w.Cwnd, want)
	}
}

func TestCubeRoot(t *testing.T) {
	for _, x := range []uint64{0, 1, 7, 8, 9, 26, 27, 1000, 1 << 20, 1<<40 - 1, 1 << 62} {
		y := cubeRoot(x)
		if y*y*y > x || (y+1)*(y+1)*(y+1) <= x {
			t.Errorf("∛%d = %d", x, y)
		}
	}
}

// TestHyStart: delay rise ends slow start once eight samples of a round lie
// above the minimum by the threshold; an ACK train of half the minimal RTT
// ends it as well; and neither below sixteen segments.
func TestHyStart(t *testing.T) {
	const least = 100000 // µs; threshold 12.5 ms
	w := &Window{Cwnd: 40, Ssthresh: infinite, Clamp: infinite}
	at := func(us int64) vtime.Time { return vtime.Time(us * 1000) }
	var h hystart
	h.round(at(0), w)
	for i := range int64(12) {
		h.update(at(5000*(i+1)), w, least+12000, least)
	}
	if h.found {
		t.Fatal("a rise below the threshold ended slow start")
	}
	h.round(at(100000), w)
	for i := range int64(9) {
		h.update(at(100000+5000*(i+1)), w, least+13000, least)
	}
	if !h.found || w.Ssthresh != 40 {
		t.Errorf("a rise of 13 %% did not end slow start (threshold %d)", w.Ssthresh)
	}
	w.Ssthresh = infinite
	h = hystart{}
	h.round(at(0), w)
	var end int64
	for us := int64(1000); us < 90000 && !h.found; us += 1000 {
		h.update(at(us), w, least, least)
		end = us
	}
	if !h.found || end != 51000 {
		t.Errorf("the ACK train was found after %d µs, want 51000 (half the minimal RTT)", end)
	}
	h = hystart{}
	w.Cwnd = 15
	h.round(at(0), w)
	for us := int64(1000); us < 90000; us += 1000 {
		h.update(at(us), w, least+50000, least)
	}
	if h.found {
		t.Error("HyStart acted below 16 segments")
	}
}

// TestBIC: binary search toward the last maximum, steps of at most 16.
func TestBIC(t *testing.T) {
	b := new(bic)
	w := avoiding(1000)
	b.Init(0, w)
	w.Cwnd = 1000
	if s := b.Ssthresh(w); s != 1000*819/1024 {
		t.Errorf("threshold %d, want β = 819/1024", s)
	}
	b.ackRatio = 16 // one segment per ACK
	b.update(vtime.Time(vtime.Second), 800)
	if b.cnt != 800/16 {
		t.Errorf("far below the maximum: one segment per %d ACKs, want %d (16 a round trip)", b.cnt, 800/16)
	}
	b.update(vtime.Time(2*vtime.Second), 960)
	if b.cnt != 960/10 {
		t.Errorf("40 below the maximum: one per %d, want %d (a quarter of the distance)", b.cnt, 960/10)
	}
	b.update(vtime.Time(3*vtime.Second), 998)
	if b.cnt != 998*20/4 {
		t.Errorf("just below: one per %d, want %d", b.cnt, 998*5)
	}
	w.Cwnd = 10
	if s := b.Ssthresh(w); s != 5 {
		t.Errorf("below 14 segments the threshold is Reno's, not %d", s)
	}
}

// TestWestwoodPipe: a constant ACK rate converges to its bandwidth; the
// threshold at the end of a recovery is bandwidth · minimal RTT.
func TestWestwoodPipe(t *testing.T) {
	ww := new(westwood)
	w := avoiding(50)
	ww.Init(0, w)
	const rtt = 100 * vtime.Millisecond
	// 1,448 bytes every 2 ms: 724 kB/s, 50 segments in 100 ms.
	for i := range 5000 {
		w.SndUna += 1448
		ww.Acked(vtime.Time(vtime.Duration(i)*2*vtime.Millisecond), w, 1, rtt)
	}
	ww.Event(0, w, CompleteCWR)
	if w.Ssthresh < 48 || w.Ssthresh > 50 || w.Cwnd != w.Ssthresh {
		t.Errorf("threshold %d, want the pipe of 50", w.Ssthresh)
	}
}

// TestMathisLaw: over random loss p a long flow gets MSS/RTT · C/√p, with
// C ≈ √(3/2) for an ACK per segment and √(3/4) for delayed ACKs (Mathis et
// al., 1997). Linux counts segments, not ACKs, so that C is √(3/2) for both.
func TestMathisLaw(t *testing.T) {
	for _, p := range []float64{0.001, 0.002, 0.005} {
		var sum float64
		const seeds, secs = 3, 120
		for seed := range uint64(seeds) {
			l := path(t, "reno", vtime.GbitPerSecond, 100*vtime.Millisecond, 0, p, seed)
			l.run(vtime.Time(60 * vtime.Second)) // past the first slow start
			b := l.end[1].Info().BytesReceived
			l.run(vtime.Time((60 + secs) * vtime.Second))
			sum += float64(l.end[1].Info().BytesReceived-b) / secs / seeds
		}
		want := 1448 / 0.1 * math.Sqrt(1.5/p)
		if r := sum / want; r < 0.85 || r > 1.15 {
			t.Errorf("p = %g: %.0f B/s, the law gives %.0f (ratio %.2f)", p, sum, want, r)
		}
	}
}

// TestNotSentLow: what waits unsent stays below the mark and one buffer.
func TestNotSentLow(t *testing.T) {
	cfg := DefaultConfig()
	cfg.NotSentLow = 16 * vtime.KiB
	l := newLine(t, cfg, cfg, 1)
	l.dir[0] = wire{rate: 10 * vtime.MbitPerSecond, delay: 20 * vtime.Millisecond, limit: 100}
	l.dir[1] = l.dir[0]
	l.app = [2]func(vtime.Time, *Conn){bulk, sink}
	var most vtime.Bytes
	l.after = func(int) { most = max(most, l.end[0].Info().NotSent) }
	l.open()
	l.run(vtime.Time(10 * vtime.Second))
	if most == 0 || most > cfg.NotSentLow+gsoMax {
		t.Errorf("up to %v unsent, the mark is %v", most, cfg.NotSentLow)
	}
	if got := float64(l.end[1].Info().BytesReceived) * 8 / 10; got < 9e6 {
		t.Errorf("%.2f Mb/s of 10", got/1e6)
	}
}

// TestWindowLimited: a fixed receive window of w segments gives w·MSS per
// round trip.
func TestWindowLimited(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Timestamps = false
	cfg.MSS = 1000
	cfg.RecvWindow = 10
	cfg.WindowScale = false
	l := newLine(t, cfg, cfg, 1)
	l.dir[0] = wire{rate: 100 * vtime.MbitPerSecond, delay: 50 * vtime.Millisecond}
	l.dir[1] = l.dir[0]
	l.app = [2]func(vtime.Time, *Conn){bulk, sink}
	l.open()
	l.run(vtime.Time(2 * vtime.Second))
	b := l.end[1].Info().BytesReceived
	l.run(vtime.Time(12 * vtime.Second))
	got := float64(l.end[1].Info().BytesReceived-b) / 10
	if want := 10 * 1000 / 0.1; math.Abs(got/want-1) > 0.02 {
		t.Errorf("%.0f B/s with a window of 10,000 B and 100 ms, want %.0f", got, want)
	}
	if i := l.end[0].Info(); i.InFlight > 10 {
		t.Errorf("%d segments in flight beyond the window", i.InFlight)
	}
}
