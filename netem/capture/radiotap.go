package capture

import (
	"hash/crc32"

	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// The radiotap header (radiotap.org) of every frame on the air: TSFT, flags,
// rate, channel.
const (
	radiotapLen     = 22
	radiotapPresent = 1<<0 | 1<<1 | 1<<2 | 1<<3

	flagShortPreamble = 0x02
	flagFCS           = 0x10 // the FCS is at the frame's end

	channelCCK  = 0x0020
	channelOFDM = 0x0040
	channel2GHz = 0x0080
	channel5GHz = 0x0100
)

// The channel that a capture names: the model has one without a number.
const (
	channel1  = 2412 // MHz
	channel36 = 5180
)

// IEEE 802.11-2012 8.2.4.1: frame control of the frames of the medium, subtype
// and type in the first byte. Neither ToDS nor FromDS: the ad-hoc form, with the
// addresses of the link.
const (
	frameData    = 0x08
	frameQoSData = 0x88
	frameRTS     = 0xb4
	frameCTS     = 0xc4
	frameACK     = 0xd4

	retryBit = 0x08 // in the second byte

	noAck = 1 << 5 // QoS control, ack policy (8.2.4.5.4)
)

// userPriority of each access category (802.11-2012 table 9-1).
var userPriority = [wifi.NumAC]byte{wifi.BK: 1, wifi.BE: 0, wifi.VI: 5, wifi.VO: 6}

// bssid is that of the one independent BSS: no node has this address.
var bssid = tap.HardwareAddress{0x02, 'h', 'o', 'p', 0xff, 0xff}

var broadcast = tap.HardwareAddress{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// llcSnap precedes the EtherType (802.2, RFC 1042).
var llcSnap = [6]byte{0xaa, 0xaa, 0x03, 0, 0, 0}

const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
)

func hardware(node int) tap.HardwareAddress {
	if node == wifi.Broadcast {
		return broadcast
	}
	return tap.HardwareAddr(node)
}

// radio is what the headers need of a node's interface.
type radio struct {
	qos, short bool
	five       bool // 5 GHz
}

func newRadio(m *wifi.MAC) radio {
	return radio{qos: m.QoS, short: m.Preamble == wifi.PreambleShort, five: m.Standard == wifi.StandardA}
}

// dsss says whether a rate is one of DSSS or CCK; the other rates are OFDM's.
func dsss(r vtime.BitRate) bool {
	switch r {
	case 1 * vtime.MbitPerSecond, 2 * vtime.MbitPerSecond, 5500 * vtime.KbitPerSecond, 11 * vtime.MbitPerSecond:
		return true
	}
	return false
}

// plcp is the time from a frame's begin to the first bit of its MPDU
// (802.11-2012 17.2.2, 18.3.3).
func (r radio) plcp(rate vtime.BitRate) (d vtime.Duration, short bool) {
	switch {
	case !dsss(rate):
		return 20 * vtime.Microsecond, false
	case r.short && rate != vtime.MbitPerSecond:
		return 96 * vtime.Microsecond, true
	}
	return 192 * vtime.Microsecond, false
}

// appendRadiotap appends the header of a frame that began at start on the
// capture's clock. TSFT is the time of the MPDU's first bit.
func (r radio) appendRadiotap(b []byte, start vtime.Time, rate vtime.BitRate, fcs bool) []byte {
	lead, short := r.plcp(rate)
	flags := byte(0)
	if short {
		flags |= flagShortPreamble
	}
	if fcs {
		flags |= flagFCS
	}
	b = append(b, 0, 0, radiotapLen, 0)
	b = le.AppendUint32(b, radiotapPresent)
	b = le.AppendUint64(b, uint64(max(0, start.Add(lead))/1000))
	b = append(b, flags, byte(rate/(500*vtime.KbitPerSecond)))
	mhz, kind := uint16(channel1), uint16(channel2GHz)
	if r.five {
		mhz, kind = channel36, channel5GHz
	}
	if dsss(rate) {
		kind |= channelCCK
	} else {
		kind |= channelOFDM
	}
	b = le.AppendUint16(b, mhz)
	return le.AppendUint16(b, kind)
}

// appendHeader appends the MAC header of a transmission (802.11-2012 8.3).
func (r radio) appendHeader(b []byte, t *wifi.Transmission) []byte {
	to, from := hardware(t.Dst), hardware(t.Src)
	switch t.Kind {
	case wifi.KindData:
		second := byte(0)
		if t.Retry {
			second = retryBit
		}
		first := byte(frameData)
		if r.qos {
			first = frameQoSData
		}
		b = appendControl(b, first, second, t.Nav)
		b = append(b, to[:]...)
		b = append(b, from[:]...)
		b = append(b, bssid[:]...)
		b = le.AppendUint16(b, uint16(t.Seq<<4)) // 12 bits; fragment 0
		if r.qos {
			qos := userPriority[t.AC]
			if t.NoAck {
				qos |= noAck
			}
			b = append(b, qos, 0)
		}
		return append(b, llcSnap[:]...)
	case wifi.KindRts:
		b = appendControl(b, frameRTS, 0, t.Nav)
		b = append(b, to[:]...)
		return append(b, from[:]...)
	case wifi.KindAck:
		b = appendControl(b, frameACK, 0, t.Nav)
		return append(b, to[:]...)
	}
	b = appendControl(b, frameCTS, 0, t.Nav) // to the sender itself where Dst is Src
	return append(b, to[:]...)
}

// appendControl appends frame control and duration, in µs rounded up
// (802.11-2012 8.2.5).
func appendControl(b []byte, first, second byte, nav vtime.Duration) []byte {
	b = append(b, first, second)
	us := (nav + vtime.Microsecond - 1) / vtime.Microsecond
	return le.AppendUint16(b, uint16(min(us, 32767)))
}

const fcsLen = 4

// appendFCS appends the frame check sequence of b[from:] (802.11-2012 8.2.4.8:
// the CRC-32 of Ethernet, its first octet on the air first).
func appendFCS(b []byte, from int) []byte {
	return le.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
}
