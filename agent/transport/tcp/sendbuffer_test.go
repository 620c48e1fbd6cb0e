package tcp

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// stalled is an established sender whose peer has closed the window.
func stalled(t *testing.T, cfg Config, buf int64) *Conn {
	t.Helper()
	c, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.state = Established
	c.snd.una, c.snd.nxt, c.snd.written = 1, 1, 1
	c.snd.mss, c.snd.fullMSS, c.snd.maxWnd, c.snd.buf = 1448, 1448, 1<<17, buf
	return c
}

// TestSendBufferTakesWholeBuffers: the limit is on memory, heads included, and
// the buffer that reaches it is filled; a waiting writer goes on when a third
// is free.
func TestSendBufferTakesWholeBuffers(t *testing.T) {
	const goal = 45 * 1448
	c := stalled(t, DefaultConfig(), 3*(goal+skbHead)+1)
	if n := c.Write(0, 1000); n != 1000 {
		t.Fatalf("took %v of 1000", n)
	}
	if q := c.queued(); q != 1000+skbHead {
		t.Errorf("one small buffer takes %d, want %d", q, 1000+skbHead)
	}
	// The small buffer is filled up, then three more: the last exceeds the limit.
	if n := c.Write(0, 1<<20); n != 4*goal-1000 {
		t.Errorf("took %v, want %d", n, 4*goal-1000)
	}
	if q := c.queued(); q != 4*(goal+skbHead) {
		t.Errorf("four full buffers take %d, want %d", q, 4*(goal+skbHead))
	}
	if n := c.Write(0, 1); n != 0 {
		t.Errorf("took %v beyond the limit", n)
	}
	// Two buffers acknowledged: half is used, a third free.
	c.snd.una, c.snd.nxt, c.snd.headLeft = 1+2*goal, 1+2*goal, goal
	if n := c.Writable(); n != 2*goal {
		t.Errorf("would take %v after half was acknowledged, want %d", n, 2*goal)
	}
	c.snd.una -= goal / 2 // in flight
	c.snd.buffers = 1
	if n := c.Writable(); n != 0 {
		t.Errorf("wakes the writer (%v) with less than a third free", n)
	}
}

// TestSendBufferNotSentLow: a buffer is filled beyond the low-water mark.
func TestSendBufferNotSentLow(t *testing.T) {
	const goal = 45 * 1448
	cfg := DefaultConfig()
	cfg.NotSentLow = 16384
	c := stalled(t, cfg, 1<<22)
	if n := c.Write(0, 1<<20); n != goal {
		t.Errorf("took %v, want one buffer of %d", n, goal)
	}
	if n := c.Writable(); n != 0 {
		t.Errorf("would take %v with %d bytes not sent", n, goal)
	}
}

// TestSlowStartOutgrowsTheSendBuffer: at the end of slow start over 50 Mb/s and
// 200 ms the window reaches 3 MB. The kernel's buffer of 4 MB, in bursts of
// several segments, covers it: the window, not the buffer, limits the flow.
func TestSlowStartOutgrowsTheSendBuffer(t *testing.T) {
	l := path(t, "reno", 50*vtime.MbitPerSecond, 200*vtime.Millisecond, 500, 0, 1)
	c := l.end[0]
	peak := 0
	for c.w.State != Recovery && l.now < vtime.Time(5*vtime.Second) {
		l.run(l.now.Add(vtime.Millisecond))
		peak = max(peak, c.snd.packets)
	}
	if c.w.State != Recovery || peak < c.w.PriorCwnd*95/100 || peak < 2000 {
		t.Errorf("state %v at %v: %d segments in flight at most, window %d", c.w.State, l.now, peak, c.w.PriorCwnd)
	}
}
