package wifi

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Standard is the PHY amendment that a network follows.
type Standard uint8

// The standards of the medium.
const (
	StandardB Standard = iota // 802.11b: DSSS and CCK at 2.4 GHz (802.11-2012 clause 17)
	StandardG                 // 802.11g: ERP-OFDM at 2.4 GHz (clause 19)
	StandardA                 // 802.11a: OFDM at 5 GHz (clause 18)
)

var standardNames = [...]string{"802.11b", "802.11g", "802.11a"}

// String returns "802.11b", "802.11g" or "802.11a".
func (s Standard) String() string {
	if int(s) < len(standardNames) {
		return standardNames[s]
	}
	return fmt.Sprintf("standard%d", uint8(s))
}

// ParseStandard reads "802.11b", "802.11g" or "802.11a".
func ParseStandard(s string) (Standard, error) {
	for i, n := range standardNames {
		if strings.EqualFold(s, n) {
			return Standard(i), nil
		}
	}
	return 0, fmt.Errorf("standard %q is unknown, want one of %s", s, strings.Join(standardNames[:], ", "))
}

// Preamble is the PLCP preamble of DSSS/CCK frames.
type Preamble uint8

// The preambles.
const (
	PreambleLong  Preamble = iota // 144 µs and a 48 µs header at 1 Mb/s
	PreambleShort                 // 72 µs and a 24 µs header at 2 Mb/s
)

// String returns "long" or "short".
func (p Preamble) String() string {
	switch p {
	case PreambleLong:
		return "long"
	case PreambleShort:
		return "short"
	}
	return fmt.Sprintf("preamble%d", uint8(p))
}

// ParsePreamble reads "long" or "short".
func ParsePreamble(s string) (Preamble, error) {
	switch strings.ToLower(s) {
	case "long":
		return PreambleLong, nil
	case "short":
		return PreambleShort, nil
	}
	return 0, fmt.Errorf("preamble %q is unknown, want long or short", s)
}

// Frame lengths in bytes (802.11-2012 8.3).
const (
	llcSnap      vtime.Bytes = 8
	fcs          vtime.Bytes = 4
	legacyHeader vtime.Bytes = 24
	qosHeader    vtime.Bytes = 26
	ackBytes     vtime.Bytes = 14
	ctsBytes     vtime.Bytes = 14
	rtsBytes     vtime.Bytes = 20
	maxMSDU      vtime.Bytes = 2304
)

// MaxLen is the largest Frame.Len: the longest MSDU less LLC/SNAP.
const MaxLen = maxMSDU - llcSnap

// phy holds the timing of one interface.
type phy struct {
	std        Standard
	slot, sifs vtime.Duration
	// detect = aCCATime + aRxTxTurnaroundTime: a station that is to transmit at t
	// does not hear what began after t−detect.
	detect     vtime.Duration
	data       *mode // unicast data
	control    *mode // ACK, CTS, broadcast
	protect    *mode // CTS-to-self and RTS under protection; nil without
	short      bool  // short DSSS preamble
	header     vtime.Bytes
	ack, cts   vtime.Duration
	rts, ctsMy vtime.Duration // RTS, CTS-to-self
	ackTimeout vtime.Duration // from the end of the frame
	ctsTimeout vtime.Duration
	eifsExtra  vtime.Duration // EIFS − DIFS
}

func newPHY(m *MAC) (phy, error) {
	const us = vtime.Microsecond
	p := phy{std: m.Standard, short: m.Preamble == PreambleShort, header: legacyHeader}
	if m.QoS {
		p.header = qosHeader
	}
	switch m.Standard {
	case StandardB: // 802.11-2012 table 17-5
		p.slot, p.sifs, p.detect = 20*us, 10*us, (15+5)*us
	case StandardG: // 19.8.4
		p.slot, p.sifs, p.detect = 9*us, 10*us, (4+5)*us
		if m.LongSlot {
			p.slot, p.detect = 20*us, (15+5)*us
		}
	case StandardA: // table 18-17
		p.slot, p.sifs, p.detect = 9*us, 16*us, (4+2)*us
	default:
		return p, fmt.Errorf("%v is unknown, want one of %s", m.Standard, strings.Join(standardNames[:], ", "))
	}
	if m.Preamble > PreambleShort {
		return p, fmt.Errorf("preamble %d is unknown: want long or short", m.Preamble)
	}
	if m.LongSlot && m.Standard != StandardG {
		return p, fmt.Errorf("the long slot is an option of 802.11g, not of %v", m.Standard)
	}
	if m.Protection && m.Standard != StandardG {
		return p, fmt.Errorf("protection is an option of 802.11g, not of %v", m.Standard)
	}
	var err error
	pick := func(what string, r vtime.BitRate) *mode {
		md, e := modeOf(m.Standard, r)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w", what, e)
		}
		return md
	}
	basic := m.BasicRate
	if basic == 0 {
		basic = defaultBasicRate(m.Standard, m.Rate)
	}
	p.data, p.control = pick("rate", m.Rate), pick("basic rate", basic)
	eifs := m.EIFSRate
	if eifs == 0 {
		eifs = basic
	}
	eifsMode := pick("EIFS rate", eifs)
	if m.Protection {
		r := m.ProtectionRate
		if r == 0 {
			r = vtime.MbitPerSecond
		}
		p.protect = pick("protection rate", r)
	}
	switch {
	case err != nil:
		return p, err
	case basic > m.Rate:
		return p, fmt.Errorf("basic rate %v is above the data rate %v: a response is never faster than the frame it answers (802.11-2012 9.7.6.5)", basic, m.Rate)
	case p.protect != nil && !p.protect.dsss:
		return p, fmt.Errorf("protection rate %v is an OFDM rate: want 1, 2, 5.5 or 11 Mb/s, which 802.11b stations decode", m.ProtectionRate)
	}
	p.ack = p.txTime(p.control, ackBytes)
	p.cts = p.txTime(p.control, ctsBytes)
	p.rts, p.ctsMy = p.txTime(p.control, rtsBytes), p.cts
	rtsMode := p.control
	if p.protect != nil {
		rtsMode = p.protect
		p.rts, p.ctsMy, p.cts = p.txTime(rtsMode, rtsBytes), p.txTime(rtsMode, ctsBytes), p.txTime(rtsMode, ctsBytes)
	}
	p.ackTimeout = p.sifs + p.slot + p.rxStartDelay(p.control)
	p.ctsTimeout = p.sifs + p.slot + p.rxStartDelay(rtsMode)
	p.eifsExtra = p.sifs + p.txTime(eifsMode, ackBytes)
	return p, nil
}

// defaultBasicRate is the highest rate of the usual basic set that is not above
// the data rate: 1 and 2 Mb/s for DSSS and CCK, 6, 12 and 24 Mb/s for OFDM.
func defaultBasicRate(std Standard, rate vtime.BitRate) vtime.BitRate {
	set := []vtime.BitRate{24 * mbit, 12 * mbit, 6 * mbit}
	if m, err := modeOf(std, rate); err == nil && m.dsss {
		set = []vtime.BitRate{2 * mbit, 1 * mbit}
	}
	for _, r := range set {
		if r <= rate {
			return r
		}
	}
	return set[len(set)-1]
}

// aifs is AIFS[AC] = SIFS + AIFSN × slot (802.11-2012 9.3.2.3.6).
func (p *phy) aifs(n int) vtime.Duration { return p.sifs + vtime.Duration(n)*p.slot }

// plcp is the duration of preamble and PLCP header.
func (p *phy) plcp(m *mode) vtime.Duration {
	switch {
	case !m.dsss:
		return 20 * vtime.Microsecond // 8 short + 8 long training + 4 SIGNAL
	case p.short && m.rate != vtime.MbitPerSecond: // 1 Mb/s has the long one only
		return 96 * vtime.Microsecond
	}
	return 192 * vtime.Microsecond
}

// rxStartDelay is aPHY-RX-START-Delay, the time from a frame's begin to
// PHY-RXSTART (tables 17-5, 18-17).
func (p *phy) rxStartDelay(m *mode) vtime.Duration {
	if m.dsss {
		return p.plcp(m)
	}
	return 25 * vtime.Microsecond
}

// txTime is TXTIME of an MPDU of n bytes (802.11-2012 17.3.4, 18.4.3, 19.8.3.2).
func (p *phy) txTime(m *mode, n vtime.Bytes) vtime.Duration {
	if m.dsss {
		d := m.rate.TxTime(n)
		return p.plcp(m) + (d+vtime.Microsecond-1)/vtime.Microsecond*vtime.Microsecond
	}
	const service, tail = 16, 6
	bitsPerSymbol := int64(m.rate) * 4 / 1_000_000
	symbols := (service + 8*int64(n) + tail + bitsPerSymbol - 1) / bitsPerSymbol
	return 20*vtime.Microsecond + vtime.Duration(symbols)*4*vtime.Microsecond + p.extension(m)
}

// extension is the silent end of ERP-OFDM frames (802.11-2012 19.8.3.2).
func (p *phy) extension(m *mode) vtime.Duration {
	if p.std == StandardG && !m.dsss {
		return 6 * vtime.Microsecond
	}
	return 0
}

// mpdu is the length of the MPDU that carries an MSDU of n bytes without
// LLC/SNAP.
func (p *phy) mpdu(n vtime.Bytes) vtime.Bytes { return p.header + llcSnap + n + fcs }

// FrameTime returns the time on the air of one data frame that carries a packet
// of n bytes at the data rate, preamble included.
func (m MAC) FrameTime(n vtime.Bytes) (vtime.Duration, error) {
	p, err := newPHY(&m)
	if err != nil {
		return 0, err
	}
	return p.txTime(p.data, p.mpdu(n)), nil
}
