package voice

import (
	"math"
	"testing"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

const ms = vtime.Millisecond

// ITU-T G.107 annex B, table B.1: R and MOS at the limits of the categories of
// speech quality; 93.2 with all default values (clause 7.7).
func TestMOSIsAsPublished(t *testing.T) {
	for r, want := range map[float64]float64{90: 4.34, 80: 4.03, 70: 3.60, 60: 3.10, 50: 2.58, 93.2: 4.41, 100: 4.5, 120: 4.5, 0: 1, -5: 1} {
		if got := MOS(r); math.Abs(got-want) > 0.007 { // the table has 4.03 for 4.024
			t.Errorf("R %g: MOS %.3f, want %.2f", r, got, want)
		}
	}
	for r := 0.0; r < 100; r += 0.1 {
		if a, b := MOS(r), MOS(r+0.1); a < 1 || b < a || b > 4.5 {
			t.Errorf("R %.1f: MOS %g, then %g", r, a, b)
		}
	}
}

func TestDefaultsGive93(t *testing.T) {
	if got := G711.Rating(0, 0, 1); math.Abs(got-93.2) > 0.05 {
		t.Errorf("R without delay and loss is %.3f, want 93.2", got)
	}
	if got := G729A.Rating(0, 0, 1); math.Abs(got-82.2) > 0.05 {
		t.Errorf("of G.729A %.3f, want 82.2", got)
	}
}

// ITU-T G.113 (02/2001) appendix I: Ie of G.729-A + VAD with two frames a packet
// under random loss, from listening tests; Bpl is a fit to them.
func TestG729UnderLoss(t *testing.T) {
	for percent, want := range map[float64]float64{0: 11, 0.5: 13, 1: 15, 1.5: 17, 2: 19, 3: 23, 4: 26, 8: 36, 16: 49} {
		if got := G729A.LossImpairment(percent/100, 1); math.Abs(got-want) > 0.55 {
			t.Errorf("%g %% loss: Ie,eff %.2f, published %g", percent, got, want)
		}
	}
	// Bursts hurt a concealing codec more; concealment pays.
	if a, b := G711.LossImpairment(0.05, 1), G711.LossImpairment(0.05, 4); b <= a {
		t.Errorf("in bursts %g, at random %g", b, a)
	}
	if a, b := G711Plain.LossImpairment(0.01, 1), G711.LossImpairment(0.01, 1); a < 4*b {
		t.Errorf("without concealment %g, with it %g", a, b)
	}
}

// Id over the delay, against the straight lines by which Cole and Rosenbluth draw
// the same curve up to 400 ms (Voice over IP performance monitoring, ACM CCR 31(2),
// 2001).
func TestDelay(t *testing.T) {
	cole := func(d float64) float64 {
		id := 0.024 * d
		if d > 177.3 {
			id += 0.11 * (d - 177.3)
		}
		return id
	}
	last := -1.0
	for d := 0.0; d <= 400; d += 5 {
		got := DelayImpairment(vtime.Duration(d*1e6)) - DelayImpairment(0)
		if math.Abs(got-cole(d)) > 3.5 {
			t.Errorf("%g ms: Id %.2f, Cole and Rosenbluth %.2f", d, got, cole(d))
		}
		if got < last-0.15 { // the echo's term dips by as much near 2 ms
			t.Errorf("%g ms: Id falls to %.3f from %.3f", d, got, last)
		}
		last = got
	}
	// The absolute delay counts above 100 ms, by 25·(…) with X = log2(T/100).
	if absolute(100) != 0 || math.Abs(absolute(200)-25*(math.Pow(2, 1.0/6)-3*math.Pow(1+math.Pow(1.0/3, 6), 1.0/6)+2)) > 1e-9 {
		t.Errorf("Idd at 100 and 200 ms: %g, %g", absolute(100), absolute(200))
	}
	if DelayImpairment(-5*ms) != DelayImpairment(0) {
		t.Error("a negative delay (two clocks) is none")
	}
}

// stream is n packets each 20 ms with delays and losses of a function.
func stream(n int, f func(i int) (vtime.Duration, bool)) []Packet {
	out := make([]Packet, n)
	for i := range out {
		d, lost := f(i)
		out[i] = Packet{Sent: vtime.Time(i) * vtime.Time(20*ms), Delay: d, Lost: lost}
	}
	return out
}

func rate(t *testing.T, c Codec, p []Playout) Score {
	t.Helper()
	s, ok := c.Rate(p)
	if !ok {
		t.Fatal("no score")
	}
	return s
}

func TestFixedBuffer(t *testing.T) {
	p := stream(100, func(i int) (vtime.Duration, bool) { return 30*ms + vtime.Duration(i%10)*10*ms, i%50 == 49 })
	// The first is played 60 ms after it has arrived: those with 100 ms and more are late.
	got := Fixed(p, 60*ms)
	s := rate(t, G711, got)
	if got[0] != (Playout{Played, 90 * ms}) || got[7].Fate != Late || got[6].Fate != Played || got[49].Fate != Lost || s.Played != 70 || s.Late != 28 || s.Lost != 2 {
		t.Errorf("%+v, %+v", got[:10], s)
	}
	if s.MouthToEar != 110*ms {
		t.Errorf("from mouth to ear %v, want 20 + 30 + 60 ms", s.MouthToEar)
	}
	// Runs of three among 30 of 100: 3 × 0.7.
	if math.Abs(s.BurstR-2.1) > 1e-9 {
		t.Errorf("BurstR %g", s.BurstR)
	}
}

// The adaptive buffer follows the delay up and down, loses what comes as a
// surprise, and never looks ahead.
func TestAdaptiveBuffer(t *testing.T) {
	jump := stream(1500, func(i int) (vtime.Duration, bool) {
		d := 20*ms + vtime.Duration(i%5)*ms
		if i >= 500 && i < 1000 {
			d += 200 * ms
		}
		return d, false
	})
	got := Usual.Play(jump)
	if got[0].Delay != 80*ms || got[99].Delay != 40*ms {
		t.Errorf("it starts at %v and settles at %v", got[0].Delay, got[99].Delay)
	}
	if got[500].Fate != Late || got[600].Fate != Played || got[600].Delay != 224*ms {
		t.Errorf("at the jump %+v, two seconds later %+v", got[500], got[600])
	}
	if got[1400].Delay != 40*ms || got[1400].Fate != Played {
		t.Errorf("long after it %+v", got[1400])
	}
	// What comes later changes nothing of what was decided.
	for n := 1; n <= len(jump); n += 37 {
		for i, p := range Usual.Play(jump[:n]) {
			if p != got[i] {
				t.Fatalf("with %d packets, packet %d is %+v, with all of them %+v", n, i, p, got[i])
			}
		}
	}
	// A packet that has not arrived yet is not known: delays of 3 s under way for
	// less than that.
	slow := stream(400, func(i int) (vtime.Duration, bool) {
		if i >= 50 {
			return 3 * vtime.Second, false
		}
		return 20 * ms, false
	})
	if p := Usual.Play(slow); p[199].Delay > 100*ms {
		t.Errorf("at 4 s the delay is %v: the first slow packet arrived at 4 s", p[199].Delay)
	}
	// The buffer's memory ends.
	wild := stream(1000, func(i int) (vtime.Duration, bool) { return 20*ms + vtime.Duration(i%50)*40*ms, false })
	for i, p := range Usual.Play(wild)[50:] {
		if p.Delay > 520*ms {
			t.Fatalf("packet %d is played %v after it was sent", 50+i, p.Delay)
		}
	}
}

// A burst counts for more than as many losses that are spread.
func TestBurstsOfLosses(t *testing.T) {
	s := des.NewStream(1, "voice")
	spread := stream(20_000, func(int) (vtime.Duration, bool) { return 30 * ms, s.Float64() < 0.05 })
	bad := false
	bursty := stream(20_000, func(int) (vtime.Duration, bool) { // Gilbert's model: 5 % in bursts of 5
		if bad {
			bad = s.Float64() >= 0.2
		} else {
			bad = s.Float64() < 0.2*0.05/0.95
		}
		return 30 * ms, bad
	})
	a, b := rate(t, G729A, Fixed(spread, 60*ms)), rate(t, G729A, Fixed(bursty, 60*ms))
	if math.Abs(a.BurstR-1) > 0.05 || math.Abs(b.BurstR-5*0.95) > 0.4 || b.R >= a.R {
		t.Errorf("spread: %+v\nbursty: %+v", a, b)
	}
}

func TestNothingIsPlayed(t *testing.T) {
	if _, ok := G711.Rate(nil); ok {
		t.Error("a stream without packets has a score")
	}
	p := stream(10, func(int) (vtime.Duration, bool) { return 0, true })
	for _, playouts := range [][]Playout{Fixed(p, 60*ms), Usual.Play(p)} {
		if s := rate(t, G711, playouts); s.R != 0 || s.MOS != 1 || s.Lost != 10 {
			t.Errorf("%+v", s)
		}
	}
}

func TestCodecNames(t *testing.T) {
	if c, ok := CodecOf("g729"); !ok || c != G729A {
		t.Errorf("%+v", c)
	}
	if c, ok := CodecOf("g711"); !ok || c != G711 {
		t.Errorf("%+v", c)
	}
	if _, ok := CodecOf("opus"); ok {
		t.Error("opus is known")
	}
}
