package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// Control is a congestion control: Linux's tcp_congestion_ops as far as the
// model needs them. It reads and writes the connection's window through
// *Window and is called with the time of the event; it keeps no clock.
type Control interface {
	// Init is called once, when the connection is established.
	Init(now vtime.Time, w *Window)
	// Ssthresh returns the threshold, in segments, after a loss event.
	Ssthresh(w *Window) int
	// Avoid is called for an ACK that may raise the window (Open or Disorder
	// state); acked segments were newly delivered.
	Avoid(now vtime.Time, w *Window, acked int)
	// Undo returns the window to restore after a spurious reduction.
	Undo(w *Window) int
	// Acked is called for every ACK; rtt < 0 when it gave no sample.
	Acked(now vtime.Time, w *Window, pkts int, rtt vtime.Duration)
	// State is called before the recovery state changes to s.
	State(now vtime.Time, w *Window, s CAState)
	// Event reports what happened beside ACKs.
	Event(now vtime.Time, w *Window, e CAEvent)
}

// RateControl is a Control that sets window and pacing rate itself from rate
// samples (BBR); Avoid, and the window reductions of loss recovery, are then
// not used.
type RateControl interface {
	Control
	// Main is called for every ACK with its rate sample.
	Main(now vtime.Time, w *Window, rs *RateSample)
	// MinTSO returns the smallest burst in segments; 0 = Linux's default 2.
	MinTSO(w *Window) int
}

// Window is the part of a connection that a congestion control works on; all
// in segments unless said otherwise.
type Window struct {
	Cwnd     int
	CwndCnt  int // ACKed segments since the last increase (Linux's snd_cwnd_cnt)
	Ssthresh int
	Clamp    int // largest Cwnd
	// PriorCwnd is the window before the last reduction.
	PriorCwnd int
	State     CAState

	InFlight    int // packets_out − (sacked + lost) + retransmitted
	PacketsOut  int
	Delivered   uint64
	SndNxt      uint64
	SndUna      uint64
	BytesAcked  uint64
	MSS         int            // current payload of a full segment
	SRTT        vtime.Duration // 0 before the first sample
	MinRTT      vtime.Duration // windowed minimum; 0 before the first sample
	CwndLimited bool           // the last window of data was limited by Cwnd
	// MaxPacketsOut is the largest flight of the last window of data; slow
	// start may double it (cwnd validation, RFC 7661 in Linux's form).
	MaxPacketsOut int
	LastSend      vtime.Time // of the last data segment (lsndtime)
	Tick          vtime.Duration
	AppLimited    bool // in an application-limited phase
	// MarkAppLimited, set by a RateControl, begins such a phase.
	MarkAppLimited bool
	InitialCwnd    int
	NextSend       vtime.Time // earliest departure of the next burst
	Seed           uint64     // for random phases

	// PacingRate in bytes/s; 0 = unknown. It sizes bursts, and paces when
	// Pacing is set.
	PacingRate uint64
	Pacing     bool
}

// infinite is TCP_INFINITE_SSTHRESH.
const infinite = 0x7fffffff

// CAState is Linux's recovery state.
type CAState uint8

// The recovery states, in Linux's order: the order is used in comparisons.
const (
	Open     CAState = iota // nothing unusual
	Disorder                // SACKs or duplicate ACKs seen
	CWR                     // the window is being reduced without a loss
	Recovery                // fast retransmit
	Loss                    // after a timeout
)

// String names the state as ss does.
func (s CAState) String() string {
	return [...]string{"Open", "Disorder", "CWR", "Recovery", "Loss"}[s]
}

// CAEvent is what a congestion control is told beside ACKs.
type CAEvent uint8

// The events of Linux that the model raises.
const (
	TxStart       CAEvent = iota // first transmit when nothing was in flight
	CwndRestart                  // window restarted after idle
	CompleteCWR                  // end of a reduction
	LossEvent                    // timeout
	NonDelayedAck                // an ACK that the receiver did not delay
)

// RateSample is the delivery rate over the last ACK's round
// (draft-cheng-iccrg-delivery-rate-estimation).
type RateSample struct {
	PriorDelivered uint64
	Delivered      int            // segments over Interval; −1 = no sample
	Interval       vtime.Duration // 0 = no sample
	RTT            vtime.Duration // −1 = none
	Losses         int            // segments newly marked lost
	AckedSacked    int
	PriorInFlight  int
	AppLimited     bool
	AckDelayed     bool
}

type controlEntry struct {
	name string
	new  func() Control
}

// controls is the one list of congestion controls: a new one is a file and a
// line here.
var controls = []controlEntry{
	{"reno", func() Control { return new(reno) }},
	{"cubic", func() Control { return new(cubic) }},
	{"bic", func() Control { return new(bic) }},
	{"westwood", func() Control { return new(westwood) }},
	{"bbr", func() Control { return new(bbr) }},
}

func lookup(name string) (func() Control, bool) {
	for _, c := range controls {
		if c.name == name {
			return c.new, true
		}
	}
	return nil, false
}

// Controls returns the names of the congestion controls.
func Controls() []string {
	var n []string
	for _, c := range controls {
		n = append(n, c.name)
	}
	return n
}
