package wifi

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Queue holds the EDCA parameters of one access category (802.11-2012
// 8.4.2.31) and the bounds of its transmit queue.
type Queue struct {
	// AIFSN is the number of slots after SIFS that the medium must be idle: at
	// least 1; 2 gives the DIFS of legacy stations.
	AIFSN int
	// CWmin and CWmax bound the contention window, in slots: 2^k−1.
	CWmin, CWmax int
	// TXOP is the transmit opportunity limit: frames follow each other by SIFS as
	// long as the next exchange ends within it. 0 = one frame per access.
	TXOP vtime.Duration
	// Ack is the acknowledgement policy of unicast frames.
	Ack AckPolicy
	// Limit is the most frames that wait, the one being transmitted included.
	Limit int
	// LimitBytes bounds the sum of their MSDU lengths. 0 = no bound.
	LimitBytes vtime.Bytes
}

// MAC is the configuration of one node's 802.11 interface.
type MAC struct {
	Standard Standard
	// Rate is the data rate of unicast frames; BasicRate that of ACK, CTS, RTS and
	// of broadcast frames: 0 = the highest of 1 and 2 (OFDM: 6, 12, 24) Mb/s that
	// does not exceed Rate.
	Rate, BasicRate vtime.BitRate
	// EIFSRate is the rate of the ACK that EIFS makes room for: the lowest
	// mandatory rate (802.11-2012 9.3.7). 0 = BasicRate.
	EIFSRate vtime.BitRate
	// Preamble is the PLCP preamble of DSSS/CCK frames; OFDM has one only.
	Preamble Preamble
	// Protection sends a CTS-to-self before each OFDM frame of an 802.11g station
	// (802.11-2012 9.23.1), at ProtectionRate (a DSSS rate; 0 = 1 Mb/s).
	Protection     bool
	ProtectionRate vtime.BitRate
	// LongSlot selects the 20 µs slot in 802.11g (an 802.11b station is present).
	LongSlot bool
	// QoS selects QoS data frames (26-byte header) and EDCA's countdown. Without
	// it frames have the legacy 24-byte header and the backoff counts as DCF's
	// does (DESIGN.md, "Backoff").
	QoS bool
	// Retries is the retry limit: the number of retransmissions after the first
	// attempt. A frame is dropped after Retries+1 failed attempts.
	Retries int
	// RTSThreshold: unicast MPDUs longer than this are preceded by RTS/CTS.
	// 0 = never.
	RTSThreshold vtime.Bytes
	Queues       [NumAC]Queue
}

// DefaultMAC returns the defaults of a station: the standard's timing with the
// EDCA parameters and retry limit of a MadWifi ad-hoc station (madwifi-0.9.4,
// net80211/ieee80211_proto.c, phyParamForAC): BK 7/4/10/0, BE 3/4/10/0,
// VI 2/3/4/94, VO 2/2/3/47 as AIFSN / log CWmin / log CWmax / txop in units of
// 32 µs, and for 802.11b BK 7/5/10/0, BE 3/5/10/0, VI 2/4/5/188, VO 2/3/4/102.
func DefaultMAC(std Standard) MAC {
	const unit = 32 * vtime.Microsecond
	q := func(aifsn, logMin, logMax int, txop vtime.Duration) Queue {
		return Queue{AIFSN: aifsn, CWmin: 1<<logMin - 1, CWmax: 1<<logMax - 1, TXOP: txop * unit, Limit: DefaultQueueLimit}
	}
	m := MAC{Standard: std, Preamble: PreambleLong, QoS: true, Retries: 7}
	switch std {
	case StandardB:
		m.Rate, m.BasicRate, m.EIFSRate = 11*vtime.MbitPerSecond, 2*vtime.MbitPerSecond, 1*vtime.MbitPerSecond
		m.Queues = [NumAC]Queue{BK: q(7, 5, 10, 0), BE: q(3, 5, 10, 0), VI: q(2, 4, 5, 188), VO: q(2, 3, 4, 102)}
	default:
		m.Rate, m.BasicRate, m.EIFSRate = 54*vtime.MbitPerSecond, 24*vtime.MbitPerSecond, 6*vtime.MbitPerSecond
		m.Queues = [NumAC]Queue{BK: q(7, 4, 10, 0), BE: q(3, 4, 10, 0), VI: q(2, 3, 4, 94), VO: q(2, 2, 3, 47)}
	}
	return m
}

// DefaultQueueLimit is the frames per queue of DefaultMAC: above the 30 frames
// of the longest burst (8160 µs at 54 Mb/s without ACK), so that a txop can be
// filled.
const DefaultQueueLimit = 100

// LegacyDCF turns the interface into a station without QoS: 24-byte headers,
// DCF's countdown, and every queue with AIFSN 2 (DIFS), the standard's CWmin and
// CWmax and no txop.
func (m MAC) LegacyDCF() MAC {
	m.QoS = false
	cwmin := 15
	if m.Standard == StandardB {
		cwmin = 31
	}
	for i := range m.Queues {
		q := &m.Queues[i]
		q.AIFSN, q.CWmin, q.CWmax, q.TXOP = 2, cwmin, 1023, 0
	}
	return m
}

// Validate reports the first setting that the medium cannot honour.
func (m *MAC) Validate() error {
	if _, err := newPHY(m); err != nil {
		return err
	}
	if m.Retries < 0 || m.Retries > 255 {
		return fmt.Errorf("retry limit %d is out of range: want 0…255 retransmissions", m.Retries)
	}
	if m.RTSThreshold < 0 {
		return fmt.Errorf("RTS threshold %d B is negative: want bytes, 0 = off", m.RTSThreshold)
	}
	for i := range m.Queues {
		q := &m.Queues[i]
		ac := AC(i)
		switch {
		case q.AIFSN < 1 || q.AIFSN > 15:
			return fmt.Errorf("queue %v: AIFSN %d is out of range: want 1…15", ac, q.AIFSN)
		case q.CWmin < 0 || q.CWmin&(q.CWmin+1) != 0 || q.CWmax > 32767 || q.CWmax&(q.CWmax+1) != 0 || q.CWmax < q.CWmin:
			return fmt.Errorf("queue %v: contention window %d…%d: want CWmin ≤ CWmax ≤ 32767, each a power of two minus one", ac, q.CWmin, q.CWmax)
		case q.TXOP < 0:
			return fmt.Errorf("queue %v: txop limit %v is negative", ac, q.TXOP)
		case q.Ack > AckNone:
			return fmt.Errorf("queue %v: acknowledgement policy %v is unknown", ac, q.Ack)
		case q.Limit < 1:
			return fmt.Errorf("queue %v: limit of %d packets: want at least 1", ac, q.Limit)
		case q.LimitBytes < 0:
			return fmt.Errorf("queue %v: limit of %d bytes is negative: 0 = no bound", ac, q.LimitBytes)
		}
	}
	return nil
}
