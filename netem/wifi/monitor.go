package wifi

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// FrameKind is the type of a transmission.
type FrameKind uint8

// The frame kinds of the medium.
const (
	KindData FrameKind = iota
	KindAck
	KindCts
	KindRts
	KindCtsSelf // a CTS addressed to its own sender (802.11g protection)
)

var kindNames = [...]string{"data", "ack", "cts", "rts", "cts-self"}

// String returns the kind's name.
func (k FrameKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind%d", uint8(k))
}

// Transmission describes one frame on the air.
type Transmission struct {
	Kind       FrameKind
	Src, Dst   int // Dst is Broadcast, or Src for KindCtsSelf
	AC         AC
	Start, End vtime.Time
	Rate       vtime.BitRate
	Nav        vtime.Duration // the Duration field
	Retry      bool
	NoAck      bool
	Seq        uint32 // of the sending node
	Frame      *Frame // of data frames; valid until the call returns
	// Fate is what became of the frame at the receiver Dst; only Landed knows
	// it, and only of frames to one other node.
	Fate Fate
}

// Fate is what happened to a frame at the node it was for, which no node but
// only the medium knows.
type Fate uint8

// The fates.
const (
	FateUnknown   Fate = iota // still on the air, or for no single other node
	FateReceived              // with a right FCS
	FateNoise                 // lost to noise alone, or out of reach
	FateCollision             // lost to interference, or because Dst transmitted or was locked on another frame
	FateCut                   // its sender went down while it transmitted
)

var fateNames = [...]string{"", "received", "noise", "collision", "cut"}

// String names the fate; the empty string for an unknown one.
func (f Fate) String() string {
	if int(f) < len(fateNames) {
		return fateNames[f]
	}
	return fmt.Sprintf("fate%d", uint8(f))
}

// Monitor sees every transmission as it begins, as an antenna that hears all
// nodes would (for captures and tests). It must not call the medium.
type Monitor interface{ Air(t *Transmission) }

// Recorder is a Monitor that also sees transmissions end, when every receiver
// has judged them and before the sender goes on, and frames that are dropped.
type Recorder interface {
	Monitor
	// Landed is called when a transmission ends: t.End is now, or t.Fate is
	// FateCut and now is earlier.
	Landed(now vtime.Time, t *Transmission)
	// Dropped is called when a node drops a frame (RetryLimit, NodeDown) or
	// refuses it (Overflow, NodeDown).
	Dropped(now vtime.Time, f *Frame, o Outcome)
}

// SetMonitor installs mon; nil removes it. What the medium does is the same
// with and without.
func (m *Medium) SetMonitor(mon Monitor) {
	m.monitor = mon
	m.recorder, _ = mon.(Recorder)
}

func (m *Medium) observe(s *station) { m.monitor.Air(m.describe(s)) }

// landed reports the end of the station's transmission.
func (m *Medium) landed(s *station, now vtime.Time) {
	t := m.describe(s)
	switch sig := &s.sig; {
	case sig.truncated:
		t.Fate = FateCut
	case sig.dst == Broadcast || sig.dst == sig.src:
	case sig.fate == fateReceived:
		t.Fate = FateReceived
	case sig.fate == fateCollision:
		t.Fate = FateCollision
	default:
		t.Fate = FateNoise
	}
	m.recorder.Landed(now, t)
}

func (m *Medium) dropped(now vtime.Time, f *Frame, o Outcome) {
	if m.recorder != nil && o != Acked && o != Sent {
		m.recorder.Dropped(now, f, o)
	}
}

func (m *Medium) describe(s *station) *Transmission {
	sig := &s.sig
	m.seen = Transmission{
		Kind: sig.kind, Src: int(sig.src), Dst: int(sig.dst), AC: sig.ac, Start: sig.start, End: sig.end,
		Rate: sig.mode.rate, Nav: sig.nav, Retry: sig.retry, NoAck: sig.kind == KindData && !sig.wantAck, Frame: sig.frame,
	}
	if sig.frame != nil {
		m.seen.Seq = sig.frame.seq
	}
	return &m.seen
}
