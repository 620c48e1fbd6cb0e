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
}

// Monitor sees every transmission as it begins, as an antenna that hears all
// nodes would (for captures and tests). It must not call the medium.
type Monitor interface{ Air(t *Transmission) }

// SetMonitor installs mon; nil removes it.
func (m *Medium) SetMonitor(mon Monitor) { m.monitor = mon }

func (m *Medium) observe(s *station) {
	sig := &s.sig
	m.seen = Transmission{
		Kind: sig.kind, Src: int(sig.src), Dst: int(sig.dst), AC: sig.ac, Start: sig.start, End: sig.end,
		Rate: sig.mode.rate, Nav: sig.nav, Retry: sig.retry, NoAck: sig.kind == KindData && !sig.wantAck, Frame: sig.frame,
	}
	if sig.frame != nil {
		m.seen.Seq = sig.frame.seq
	}
	m.monitor.Air(&m.seen)
}
