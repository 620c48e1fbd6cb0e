package winrewrite

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// world drives a Rewriter with segments of numbered connections: end 0 of a
// connection is the station behind the queue, end 1 the server.
type world struct {
	t   *testing.T
	r   *Rewriter
	now vtime.Time
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, r: r}
}

func addr(conn, end int) Addr {
	return Addr{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: byte(end), 14: byte(conn >> 8), 15: byte(conn)}, Port: uint16(1000 + 4000*end)}
}

// send sends a segment of an end of a connection and returns its window field.
func (w *world) send(conn, end int, s Segment) uint16 {
	s.Src, s.Dst = addr(conn, end), addr(conn, 1-end)
	d := Up
	if end == 1 {
		d = Down
	}
	return w.r.See(w.now, &s, d)
}

// open makes a connection with the options of both SYNs.
func (w *world) open(conn, mss, scale int) {
	syn := Segment{SYN: true, Window: 64240, MSS: mss, WScale: scale}
	w.send(conn, 0, syn)
	w.send(conn, 1, syn)
}

const full = 65535

func (w *world) want(conn, end int, bytes int, scale int) {
	w.t.Helper()
	if got := int(w.send(conn, end, Segment{Window: full, WScale: -1})) << scale; got != bytes {
		w.t.Errorf("connection %d, end %d at %v: a window of %d bytes, want %d", conn, end, w.now, got, bytes)
	}
}

// The bound is ⌊B/n⌋ segments of each of the n connections of the last 5 s, for
// either end, whatever the way of the data (Pilosof et al., section 5).
func TestTheBufferIsShared(t *testing.T) {
	w := newWorld(t, Config{Buffer: 50})
	w.open(1, 1024, -1)
	w.want(1, 0, 50*1024, 0)
	w.open(2, 1024, -1)
	w.want(1, 0, 25*1024, 0)
	w.want(2, 1, 25*1024, 0)
	w.open(3, 1024, -1)
	w.want(3, 0, 16*1024, 0)
	w.want(1, 1, 16*1024, 0)
	// Connections 2 and 3 fall silent.
	w.now = w.now.Add(3 * vtime.Second)
	w.want(1, 0, 16*1024, 0)
	w.now = w.now.Add(2 * vtime.Second)
	w.want(1, 0, 50*1024, 0)
	if n := w.r.Active(w.now); n != 1 {
		t.Errorf("%d connections count, want 1", n)
	}
	w.want(2, 0, 25*1024, 0) // its SYN is remembered
	if s := w.r.Stats(); s.MaxActive != 3 || s.MinLimit != 16 || s.Unscaled != 0 || s.Segments != 14 || s.Rewritten == 0 {
		t.Errorf("%+v", s)
	}
}

// Weighted, an upstream connection takes α of what a downstream one does.
func TestSharesByWhatPassesTheQueue(t *testing.T) {
	w := newWorld(t, Config{Buffer: 60, Weighted: true, Acks: 0.5})
	w.open(1, 1000, -1)
	w.open(2, 1000, -1)
	w.want(1, 0, 30*1000, 0) // neither has sent data yet: both count one
	w.send(1, 0, Segment{Payload: 1000, WScale: -1})
	w.send(2, 1, Segment{Payload: 1000, WScale: -1})
	w.want(1, 1, 40*1000, 0)
	w.send(1, 1, Segment{Payload: 1000, WScale: -1}) // data both ways: 1 + α, beside 1
	w.want(2, 0, 24*1000, 0)
	w.now = w.now.Add(5 * vtime.Second)
	w.send(1, 0, Segment{Payload: 1, WScale: -1}) // what it was before does not count
	w.want(1, 1, 65535, 0)                        // 120,000 bytes: above what it offers
}

// Windows are never raised, and are of at least one segment.
func TestBounds(t *testing.T) {
	w := newWorld(t, Config{Buffer: 2})
	for i := range 5 {
		w.open(i, 1460, 7)
	}
	for _, small := range []uint16{0, 1, 11} {
		if got := w.send(1, 0, Segment{Window: small, WScale: -1}); got != small {
			t.Errorf("a window of %d became %d", small, got)
		}
	}
	w.want(1, 0, 1536, 7) // 1460 rounded up to a multiple of 128
}

// Windows in SYNs are not scaled; others only where both SYNs have the option,
// by the sender's (RFC 7323 §2.2).
func TestScales(t *testing.T) {
	w := newWorld(t, Config{Buffer: 10})
	if got := w.send(1, 0, Segment{SYN: true, Window: 64240, MSS: 1000, WScale: 9}); got != 10000 {
		t.Errorf("the SYN offers %d, want 10000", got)
	}
	if got := w.send(1, 1, Segment{SYN: true, Window: 64240, MSS: 1000, WScale: 3}); got != 10000 {
		t.Errorf("the SYN-ACK offers %d, want 10000", got)
	}
	w.want(1, 0, 10240, 9)
	w.want(1, 1, 10000, 3)

	w = newWorld(t, Config{Buffer: 10})
	w.send(1, 0, Segment{SYN: true, Window: 64240, MSS: 1000, WScale: 9})
	w.send(1, 1, Segment{SYN: true, Window: 64240, MSS: 1000, WScale: -1})
	w.want(1, 0, 10000, 0)

	// A scale so coarse that a unit is several segments: as few as it allows.
	w = newWorld(t, Config{Buffer: 40})
	w.open(1, 1000, 14)
	w.want(1, 0, 2<<14, 14)
	w = newWorld(t, Config{Buffer: 1})
	w.open(1, 1000, 200) // counts as 14
	w.want(1, 0, 1<<14, 14)
}

// The smaller MSS of the two is what is sent; 536 is that of an end that names none.
func TestSegments(t *testing.T) {
	w := newWorld(t, Config{Buffer: 10})
	w.send(1, 0, Segment{SYN: true, Window: full, MSS: 1460, WScale: -1})
	w.send(1, 1, Segment{SYN: true, Window: full, MSS: 500, WScale: -1})
	w.want(1, 0, 5000, 0)
	w.want(1, 1, 5000, 0)
	w.open(2, 0, -1)
	w.want(2, 0, 5*536, 0)
}

// What a window means is not known without the SYN.
func TestNoSYNWasSeen(t *testing.T) {
	w := newWorld(t, Config{Buffer: 1})
	w.want(1, 0, full, 0)
	if s := w.r.Stats(); s.Unscaled != 1 || s.Rewritten != 0 || w.r.Active(w.now) != 1 {
		t.Errorf("%+v", s)
	}
}

// A flood of connections displaces the silent ones first, and takes bounded memory.
func TestAFloodOfConnections(t *testing.T) {
	w := newWorld(t, Config{Buffer: 20})
	w.open(0, 1000, -1)
	w.now = w.now.Add(10 * vtime.Second)
	w.open(1, 1000, -1)
	for i := 2; i < maxConns+50; i++ {
		s := Segment{WScale: -1, Src: addr(i%65536, 0), Dst: addr(i%65536, 1)}
		w.r.See(w.now, &s, Up)
		if i%1000 == 0 {
			w.want(1, 0, 1000, 0)
		}
	}
	if len(w.r.conns) != maxConns || w.r.active.len+w.r.idle.len != maxConns {
		t.Errorf("%d connections, %d count and %d do not: want %d together", len(w.r.conns), w.r.active.len, w.r.idle.len, maxConns)
	}
	w.want(0, 0, full, 0) // forgotten
	w.now = w.now.Add(10 * vtime.Second)
	w.want(1, 0, 20*1000, 0)
	if w.r.down != 0 || w.r.up != 0 || w.r.silent != 1 {
		t.Errorf("%d, %d, %d connections with data down, up and without, want 0, 0, 1", w.r.down, w.r.up, w.r.silent)
	}
}

func TestSettingsThatCannotBeHonoured(t *testing.T) {
	for _, c := range []Config{{}, {Buffer: -1}, {Buffer: 1, Weighted: true}, {Buffer: 1, Weighted: true, Acks: 1.1}, {Buffer: 1, Idle: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func TestNothingIsAllocatedForWhatIsKnown(t *testing.T) {
	w := newWorld(t, Config{Buffer: 20})
	w.open(0, 1000, 7)
	w.open(1, 1000, 7)
	s := Segment{Src: addr(0, 0), Dst: addr(0, 1), Window: 500, WScale: -1}
	if n := testing.AllocsPerRun(100, func() { w.now++; w.r.See(w.now, &s, Up) }); n > 0 {
		t.Errorf("%v allocations per segment", n)
	}
}
