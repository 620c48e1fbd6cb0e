package workload

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

func TestSpecSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string // part of the error, "" = valid
	}{
		{Spec{Kind: Continual}, ""},
		{Spec{Kind: Sized, Size: 10 * vtime.MB}, ""},
		{Spec{Kind: Continual, Size: 1}, "use kind sized"},
		{Spec{Kind: Sized}, "must be positive"},
		{Spec{Kind: Sized, Size: -5}, "-5B"},
		{Spec{Kind: "ftp"}, `"ftp" is unknown`},
		{Spec{}, "unknown"},
		{Spec{Kind: Continual, Codec: "g711"}, "field codec"},
		{Spec{Kind: Sized, Size: 1, Web: &WebSpec{}}, "field web"},
		{Spec{Kind: Sized, Size: 1, Seed: 7}, ""}, // the controller gives a seed to every flow
		{Spec{Kind: Poisson, Size: 1, Interval: vtime.Second}, ""},
		{Spec{Kind: Poisson, Interval: vtime.Second}, "size is 0B"},
		{Spec{Kind: Poisson, Size: 2 * vtime.GiB, Interval: vtime.Second}, "want 1B to"},
		{Spec{Kind: Poisson, Size: 1}, "mean interval is 0ns"},
		{Spec{Kind: Poisson, Size: 1, Interval: 1000}, "mean interval"},
		{Spec{Kind: Poisson, Size: 1, Interval: vtime.Second, Sizes: "zipf"}, `"zipf"`},
		{Spec{Kind: Poisson, Size: 1, Interval: vtime.Second, Role: Requests}, "field role"},
		{traced(), ""},
		{Spec{Kind: Trace}, "number of transfers is 0"},
		{Spec{Kind: Trace, Transfers: make([]Transfer, MaxTransfers+1)}, "number of transfers"},
		{Spec{Kind: Trace, Transfers: []Transfer{{5, 1}, {4, 1}}}, "transfer 1"},
		{Spec{Kind: Trace, Transfers: []Transfer{{-1, 1}}}, "moment"},
		{Spec{Kind: Trace, Transfers: []Transfer{{0, 0}}}, "its size"},
		{Spec{Kind: Trace, Transfers: []Transfer{{0, 1}}, Interval: 5}, "field interval_ns"},
		{Spec{Kind: VoIP, Codec: "g729"}, ""},
		{Spec{Kind: VoIP, Codec: "opus"}, "[g729 g711]"},
		{Spec{Kind: VoIP}, "codec"},
		{Spec{Kind: VoIP, Codec: "g729", Size: 4}, "field size"},
		{webSpec(Requests, nil), ""},
		{webSpec("", nil), "role"},
		{Spec{Kind: Web, Role: Requests}, "(web) is missing"},
		{webSpec(Requests, func(w *WebSpec) { w.Objects = 0 }), "number of objects is 0"},
		{webSpec(Requests, func(w *WebSpec) { w.Zipf = -1 }), "popularity"},
		{webSpec(Requests, func(w *WebSpec) { w.Zipf = math.NaN() }), "popularity"},
		{webSpec(Requests, func(w *WebSpec) { w.PageObjects = math.NaN() }), "objects of a page"},
		{webSpec(Requests, func(w *WebSpec) { w.PageObjects = 0.5 }), "objects of a page"},
		{webSpec(Requests, func(w *WebSpec) { w.MaxSize = 10_000 }), "largest size"},
		{webSpec(Requests, func(w *WebSpec) { w.MeanSize = 5 }), "mean size"},
		{webSpec(Requests, func(w *WebSpec) { w.Think = -1 }), "pause"},
		{webSpec(Requests, func(w *WebSpec) { w.Request = 0 }), "request"},
	} {
		err := c.spec.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.spec, err, c.want)
		}
		if _, nerr := NewSource(c.spec, 0, vtime.Never); (nerr == nil) != (err == nil) {
			t.Errorf("%+v: NewSource %v, Validate %v", c.spec, nerr, err)
		}
		if _, nerr := NewReceipts(c.spec, 0, vtime.Never); (nerr == nil) != (err == nil) {
			t.Errorf("%+v: NewReceipts %v, Validate %v", c.spec, nerr, err)
		}
	}
}

func TestSources(t *testing.T) {
	s, err := NewSource(Spec{Kind: Sized, Size: 1000}, 0, vtime.Never)
	if err != nil {
		t.Fatal(err)
	}
	s.Take(0, 400)
	if got := s.Ready(5); got != 600 || s.Finished() {
		t.Errorf("after 400 of 1000: ready %d, finished %v", got, s.Finished())
	}
	s.Take(7, 600)
	if s.Ready(8) != 0 || !s.Finished() || s.Next(8) != vtime.Never || s.Taken() != 1000 {
		t.Errorf("at the end: ready %d, finished %v, next %v, taken %d", s.Ready(8), s.Finished(), s.Next(8), s.Taken())
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("taking more than ready did not panic")
			}
		}()
		s.Take(9, 1)
	}()

	c, err := NewSource(Spec{Kind: Continual}, 0, vtime.Never)
	if err != nil {
		t.Fatal(err)
	}
	c.Take(0, 1<<50)
	if c.Ready(0) < 1<<50 || c.Finished() {
		t.Errorf("a continual source ran dry: ready %d, finished %v", c.Ready(0), c.Finished())
	}
}

// A byte belongs to the measured interval when it is delivered at or after the
// end of the warm-up and before the end.
func TestMeterBounds(t *testing.T) {
	const w, e = vtime.Time(20), vtime.Time(30)
	m := NewMeter(w, e, 111)
	for _, d := range []struct {
		at vtime.Time
		n  vtime.Bytes
	}{{5, 1}, {19, 10}, {20, 20}, {25, 0}, {29, 30}, {30, 40}, {31, 10}} {
		m.Add(d.at, d.n)
	}
	first, ok := m.First()
	if m.Total() != 111 || m.Measured() != 50 || !ok || first != 5 || m.Finished() != 31 {
		t.Errorf("total %d measured %d first %v,%v finished %v; want 111 50 5,true 31", m.Total(), m.Measured(), first, ok, m.Finished())
	}
	m.Add(40, 5)
	if m.Finished() != 31 {
		t.Errorf("finished moved to %v", m.Finished())
	}
	if c := NewMeter(w, e, 0); c.Finished() != vtime.Never {
		t.Error("a continual flow never finishes")
	}
}

func TestPatternFindsEveryKindOfDamage(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	p := NewPattern(3)
	stream := make([]byte, 0, 1<<20)
	for len(stream) < cap(stream) {
		n := min(1+rnd.Intn(70000), cap(stream)-len(stream))
		piece := p.At(int64(len(stream)), n)
		if n > MaxChunk && len(piece) != MaxChunk {
			t.Fatalf("At returned %d bytes for %d", len(piece), n)
		}
		stream = append(stream, piece...)
	}
	if at := p.Check(0, stream); at != -1 {
		t.Fatalf("an undamaged stream differs at %d", at)
	}
	for i := 0; i < 2000; i++ {
		off := rnd.Intn(len(stream) - 4000)
		n := 1 + rnd.Intn(3999)
		data := append([]byte(nil), stream[off:off+n]...)
		if p.Check(int64(off), data) != -1 {
			t.Fatalf("[%d,%d) is called damaged", off, off+n)
		}
		flip := rnd.Intn(n)
		data[flip] ^= 1 << rnd.Intn(8)
		if at := p.Check(int64(off), data); at != flip {
			t.Fatalf("a flipped bit at %d is reported at %d", flip, at)
		}
	}
	// Wherever a piece begins, it is the same stream.
	for at := range int64(2 * period) {
		piece := p.At(at, MaxChunk)
		for _, i := range []int{0, 1, MaxChunk - period - 1, period - 1, MaxChunk - 1} {
			if want := p.At(at+int64(i), 1)[0]; piece[i] != want {
				t.Fatalf("byte %d of the piece at %d is %#x, the stream has %#x", i, at, piece[i], want)
			}
		}
	}
	// A segment, a block or a buffer that is missing, repeated or moved.
	for _, shift := range []int64{1, 512, 1400, 1448, 4096, 65536, 131072, 256 << 10, 1 << 20} {
		if p.Check(shift, stream[:64]) == -1 {
			t.Errorf("a shift by %d bytes is not seen", shift)
		}
	}
	if NewPattern(4).Check(0, stream[:64]) == -1 {
		t.Error("another flow's data is not seen")
	}
}
