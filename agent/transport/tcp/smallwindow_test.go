package tcp

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// segments returns the lengths of the data segments that end 0 sends, and how
// many of them are in flight at most.
func segments(l *line) (lengths map[int]int, most *int) {
	lengths, most = make(map[int]int), new(int)
	l.trace = func(_ vtime.Time, from int, s *Segment, _ bool) {
		if from == 0 && s.Len > 0 {
			lengths[s.Len]++
			*most = max(*most, l.end[0].snd.packets)
		}
	}
	return lengths, most
}

// TestHalfWindowSegments: a sender that has never seen a window of two segments
// halves its segments (tcp_bound_to_half_wnd), so that two are in flight; from
// two segments on they are whole.
func TestHalfWindowSegments(t *testing.T) {
	const rtt = 100 * vtime.Millisecond
	for _, c := range []struct{ window, length int }{
		{1, 724}, // the offer is 1460 less the options' 12; half of 1448
		{2, 1448},
	} {
		cfg := DefaultConfig()
		sinkCfg := cfg
		sinkCfg.RecvWindow = c.window
		l := newLine(t, cfg, sinkCfg, 1)
		l.dir[0], l.dir[1] = wire{delay: rtt / 2}, wire{delay: rtt / 2}
		l.app[0], l.app[1] = bulk, sink
		lengths, most := segments(l)
		l.open()
		l.run(vtime.Time(10 * vtime.Second))
		if len(lengths) != 1 || lengths[c.length] == 0 {
			t.Errorf("window of %d segments: lengths %v, want only %d", c.window, lengths, c.length)
		}
		if *most != 2 {
			t.Errorf("window of %d segments: %d in flight at most, want 2", c.window, *most)
		}
		// A window a round trip, less the handshake's.
		got, want := int(l.end[1].Info().BytesReceived), 99*2*c.length
		if got < want*98/100 || got > want {
			t.Errorf("window of %d segments: %d bytes in 100 round trips, want at most %d", c.window, got, want)
		}
		if n := l.end[0].MSS(); n != c.length {
			t.Errorf("window of %d segments: MSS %d, want %d", c.window, n, c.length)
		}
	}
}

// TestSawWindow: the bound is half the largest window ever seen, all of it up
// to 536 bytes, and never below what every host must take.
func TestSawWindow(t *testing.T) {
	c := stalled(t, DefaultConfig(), 1<<20)
	c.snd.maxWnd = 0
	c.syn.ts = true
	for _, w := range []struct {
		window uint64
		mss    int
	}{{0, 1448}, {20, 36}, {500, 500}, {536, 536}, {538, 269}, {2894, 1447}, {2896, 1448}, {1 << 20, 1448}, {1, 1448}} {
		if c.sawWindow(w.window); c.snd.mss != w.mss {
			t.Errorf("after a window of %d: MSS %d, want %d", w.window, c.snd.mss, w.mss)
		}
	}
}

// TestSmallSendBuffer: an SO_SNDBUF of 8 KiB (16 KiB of memory) does not bound
// the flow to 11 segments: one write fills the end of the only buffer again and
// again while the congestion window lets its head leave, and a whole buffer
// remains unsent.
func TestSmallSendBuffer(t *testing.T) {
	cfg := DefaultConfig()
	cfg.SendBuffer, cfg.SendBufferMax = 16384, 16384
	l := newLine(t, cfg, DefaultConfig(), 1)
	l.dir[0] = wire{rate: 10 * vtime.MbitPerSecond, delay: 50 * vtime.Millisecond, limit: 100}
	l.dir[1] = wire{rate: 10 * vtime.MbitPerSecond, delay: 50 * vtime.Millisecond, limit: 100}
	l.app[1] = sink
	_, most := segments(l)
	l.app[0] = func(now vtime.Time, c *Conn) {
		for c.State() == Established && c.Write(now, 64*vtime.KiB) > 0 {
		}
	}
	l.open()
	l.run(vtime.Time(110 * vtime.Millisecond)) // the SYN-ACK has come, no data is acknowledged
	c := l.end[0]
	// The first window is 64 kB: buffers are 22 segments, half of it.
	if c.snd.packets != 10 || c.snd.unsent() != int64(c.bufferGoal()) {
		t.Errorf("after the first write %d segments in flight and %d bytes unsent, want 10 and %d", c.snd.packets, c.snd.unsent(), c.bufferGoal())
	}
	if c.Writable() != 0 {
		t.Errorf("the buffer is full, and %v more would be taken", c.Writable())
	}
	l.run(vtime.Time(2 * vtime.Second))
	before := l.end[1].Info().BytesReceived
	l.run(vtime.Time(7 * vtime.Second))
	got := float64(l.end[1].Info().BytesReceived-before) * 8 / 5 / 1e6
	t.Logf("%.2f Mb/s, %d in flight at most", got, *most)
	// The kernel: 5.0 to 5.2 Mb/s, 141 in flight. Eleven segments a round trip
	// would be 1.3.
	if got < 4.5 || got > 5.7 || *most < 90 {
		t.Errorf("%.2f Mb/s and %d in flight at most", got, *most)
	}
}
