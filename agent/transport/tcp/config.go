package tcp

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// AckMode says how the receiver acknowledges in-order data.
type AckMode uint8

const (
	// AckLinux delays ACKs as Linux does: quick ACKs at the start of a
	// connection, then one per two full segments or after 40–200 ms.
	AckLinux AckMode = iota
	// AckEvery acknowledges each segment at once: the route attribute
	// "quickack 1" of Linux, α = 1 in the WLAN-fairness paper.
	AckEvery
)

// Config holds the options of one end of a connection. Its defaults
// (DefaultConfig) are those of kernel 6.18.
type Config struct {
	// CC is the congestion control: one of Controls().
	CC string
	// MSS is the largest segment to announce and to send, in bytes, without
	// options: 1460 at an MTU of 1500. With timestamps a segment carries 12
	// bytes less (1448), as on the wire.
	MSS int

	SACK        bool // RFC 2018; with it RACK-TLP (RFC 8985) finds the losses
	DSACK       bool // RFC 2883
	Timestamps  bool // RFC 7323 §3
	WindowScale bool // RFC 7323 §2
	FRTO        bool // RFC 5682
	TLP         bool // RFC 8985 §7
	// SlowStartAfterIdle cuts the window after an idle RTO (RFC 2861).
	SlowStartAfterIdle bool

	Ack AckMode
	// NoDelay turns Nagle's rule off (TCP_NODELAY).
	NoDelay bool

	// InitialWindow is the first congestion window in segments (RFC 6928).
	InitialWindow int
	// CwndCap is the largest congestion window in segments (Linux's
	// snd_cwnd_clamp); 0 = none. SetCwndCap changes it in a running flow.
	CwndCap int

	// RecvWindow fixes the advertised window to so many segments of the MSS
	// announced (SO_RCVBUF in effect); 0 = automatic. The window shrinks by
	// what the application has not read.
	RecvWindow int
	// RecvBuffer and RecvBufferMax are tcp_rmem[1] and [2]: the first buffer
	// and what automatic tuning may reach, counted as the kernel counts
	// (memory, not payload; see Truesize).
	RecvBuffer, RecvBufferMax vtime.Bytes
	// Truesize is the memory that the kernel charges for one full segment
	// in the receive queue. It sets how much of a buffer can be window, and
	// depends on the driver: 2176 for a frame of 1514 bytes written to a TAP
	// without blocking (tun_build_skb), 2304 for one in a kmalloc'd buffer.
	Truesize vtime.Bytes

	// SendBuffer and SendBufferMax are tcp_wmem[1] and [2]: the first buffer
	// and what automatic tuning may reach.
	SendBuffer, SendBufferMax vtime.Bytes
	// NotSentLow stops writes while so many bytes wait unsent
	// (TCP_NOTSENT_LOWAT); 0 = no such limit. As in the kernel one buffer of
	// up to 64 kB is filled beyond it, and a waiting writer is woken at half.
	NotSentLow vtime.Bytes

	// TSO lets the sender group segments into bursts as the kernel's
	// segmentation offload (in software where the device has none) does.
	// It decides when the sender waits for a larger window. Off: every
	// segment leaves as soon as the window lets it.
	TSO bool

	// RTOMin and RTOMax bound the retransmission timeout (200 ms and 120 s in
	// Linux; RFC 6298 §2.4 asks for a minimum of 1 s).
	RTOMin, RTOMax vtime.Duration
	// Tick is the kernel's timer granularity, 1/HZ: timers run on the ticks
	// of Linux's timer wheel, and CUBIC counts time in them. 0 = exact timers
	// (CUBIC then counts milliseconds).
	Tick vtime.Duration
	// Seed starts the random draws of a congestion control that makes some
	// (BBR's phase). Flows of one run need different seeds.
	Seed uint64
	// SYNRetries and Retries bound the retransmissions before the connection
	// fails (tcp_syn_retries, tcp_retries2 as a count of backoffs).
	SYNRetries, Retries int
}

// DefaultConfig returns the options of a Linux 6.18 host with HZ=250, CUBIC
// and an MTU of 1500.
func DefaultConfig() Config {
	return Config{
		CC:                 "cubic",
		MSS:                1460,
		SACK:               true,
		DSACK:              true,
		Timestamps:         true,
		WindowScale:        true,
		FRTO:               true,
		TLP:                true,
		SlowStartAfterIdle: true,
		InitialWindow:      10,
		RecvBuffer:         131072,
		RecvBufferMax:      33554432,
		Truesize:           2176,
		SendBuffer:         16384,
		SendBufferMax:      4194304,
		TSO:                true,
		RTOMin:             200 * vtime.Millisecond,
		RTOMax:             120 * vtime.Second,
		Tick:               4 * vtime.Millisecond,
		SYNRetries:         6,
		Retries:            15,
	}
}

// Validate returns what is wrong with the options, naming the field, its
// value and what is allowed.
func (c *Config) Validate() error {
	if _, ok := lookup(c.CC); !ok {
		return fmt.Errorf("tcp: congestion control %q is unknown, want one of %v", c.CC, Controls())
	}
	for _, f := range []struct {
		name      string
		v, lo, hi int64
	}{
		{"MSS", int64(c.MSS), 88, 65495}, // TCP_MIN_MSS, the largest IPv4 packet
		{"InitialWindow", int64(c.InitialWindow), 1, 1 << 20},
		{"CwndCap", int64(c.CwndCap), 0, 1 << 30},
		{"RecvWindow", int64(c.RecvWindow), 0, 1 << 20},
		{"RecvBuffer", int64(c.RecvBuffer), 2304, 1 << 30},
		{"RecvBufferMax", int64(c.RecvBufferMax), int64(c.RecvBuffer), 1 << 30},
		{"Truesize", int64(c.Truesize), int64(c.MSS), 1 << 17},
		{"SendBuffer", int64(c.SendBuffer), 4096, 1 << 30},
		{"SendBufferMax", int64(c.SendBufferMax), int64(c.SendBuffer), 1 << 30},
		{"NotSentLow", int64(c.NotSentLow), 0, 1 << 30},
		{"RTOMin", int64(c.RTOMin), int64(vtime.Millisecond), int64(vtime.Minute)},
		{"RTOMax", int64(c.RTOMax), int64(vtime.Second), int64(vtime.Hour)},
		{"Tick", int64(c.Tick), 0, int64(100 * vtime.Millisecond)},
		{"SYNRetries", int64(c.SYNRetries), 0, 127},
		{"Retries", int64(c.Retries), 1, 127},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("tcp: %s is %d, want %d to %d", f.name, f.v, f.lo, f.hi)
		}
	}
	if c.RTOMin > c.RTOMax {
		return fmt.Errorf("tcp: RTOMin is %v, above RTOMax %v", c.RTOMin, c.RTOMax)
	}
	return nil
}
