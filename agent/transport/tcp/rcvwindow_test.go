package tcp

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// TestReceiverRTTBeginsWithFirstData: the handshake's last ACK and the first
// data echo the timestamp of the SYN-ACK; the data is the receiver's first
// sample (tcp_rcv_state_process takes none), so that the estimate begins with
// the empty path and not with the queue that the first window has built.
func TestReceiverRTTBeginsWithFirstData(t *testing.T) {
	// A segment takes 12 ms at 1 Mb/s: the last of the first ten is 108 ms late.
	l := path(t, "reno", 1*vtime.MbitPerSecond, 40*vtime.Millisecond, 100, 0, 1)
	l.run(vtime.Time(90 * vtime.Millisecond)) // SYN 20, SYN-ACK 41, first data 73 ms
	c := l.end[1]
	if n := c.Info().DataSegsIn; n == 0 || n > 2 {
		t.Fatalf("%d segments have arrived", n)
	}
	if rtt := c.rcv.rtt8 >> 3; rtt < 40_000 || rtt > 54_000 {
		t.Errorf("the receiver's RTT is %d µs, want 40 ms and one or two segments", rtt)
	}
}

// TestChargeOfTAP: what the kernel's receive queue charges for a frame that was
// written to a TAP (tun_build_skb): the frame and 64 bytes of headroom,
// aligned to 64, sk_buff (256) and skb_shared_info (320).
func TestChargeOfTAP(t *testing.T) {
	c := stalled(t, DefaultConfig(), 1<<20)
	for _, n := range []int64{1448, 1000, 500, 100} {
		frame := (14 + 20 + 32 + n + 64 + 63) &^ 63
		want := frame + 256 + 320
		if got := c.charge(int(n)); got < want-64 || got > want+64 {
			t.Errorf("%d bytes are charged %d, the kernel charges %d", n, got, want)
		}
	}
	if got := c.charge(1448); got != 2176 {
		t.Errorf("a full segment is charged %d, want 2176", got)
	}
	// The window of a new connection: 131,072·170/256 less a segment.
	c.rcv.init(c)
	c.rcv.ratio = 128
	c.rcv.buf = 131072
	c.rcv.clamp = 1 << 20
	c.rcv.advMSS = 1448
	c.measureRatio(1448)
	if c.rcv.ratio != 170 {
		t.Errorf("scaling ratio %d, the kernel's is 170", c.rcv.ratio)
	}
}
