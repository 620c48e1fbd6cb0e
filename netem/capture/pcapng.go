package capture

import (
	"encoding/binary"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The pcapng file format (draft-ietf-opsawg-pcapng, sections 3 and 4), little
// endian: every block is type, length, body, options, length, all padded to
// 32 bits. Written by hand, because the pacing thread of a live run encodes into
// buffers of its own and must not allocate.

// Block types.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockNames      = 4
	blockStatistics = 5
	blockPacket     = 6
)

// Options; their meaning depends on the block.
const (
	optEnd     = 0
	optComment = 1

	optApplication = 4 // section: shb_userappl

	optName        = 2 // interface: if_name
	optDescription = 3 // if_description
	optSpeed       = 8 // if_speed, bit/s
	optResolution  = 9 // if_tsresol

	optFlags = 2 // packet: epb_flags

	optStart    = 2 // statistics: isb_starttime
	optStop     = 3 // isb_endtime
	optReceived = 4 // isb_ifrecv
	optDropped  = 5 // isb_ifdrop
)

// The direction of a packet (epb_flags, bits 0 and 1).
const (
	directionUnknown = 0
	inbound          = 1
	outbound         = 2
)

// Link-layer types (tcpdump.org/linktypes.html).
const (
	linkRaw      = 101 // LINKTYPE_RAW: begins with the IP header
	linkRadiotap = 127 // LINKTYPE_IEEE802_11_RADIOTAP
)

var le = binary.LittleEndian

// beginBlock appends type and an empty length; endBlock fills it in.
func beginBlock(b []byte, kind uint32) (out []byte, at int) {
	at = len(b)
	b = le.AppendUint32(b, kind)
	return le.AppendUint32(b, 0), at
}

func endBlock(b []byte, at int) []byte {
	n := uint32(len(b) - at + 4)
	le.PutUint32(b[at+4:], n)
	return le.AppendUint32(b, n)
}

// pad appends zeros up to a multiple of 4 bytes of n.
func pad(b []byte, n int) []byte {
	return append(b, "\x00\x00\x00"[:-n&3]...)
}

func appendOption(b []byte, code uint16, n int) []byte {
	b = le.AppendUint16(b, code)
	return le.AppendUint16(b, uint16(n))
}

// maxText bounds a text option: its length has 16 bits, and nobody reads more.
const maxText = 1024

func appendText(b []byte, code uint16, text string) []byte {
	if text == "" {
		return b
	}
	text = text[:min(len(text), maxText)]
	b = appendOption(b, code, len(text))
	b = append(b, text...)
	return pad(b, len(text))
}

func appendUint64(b []byte, code uint16, v uint64) []byte {
	b = appendOption(b, code, 8)
	return le.AppendUint64(b, v)
}

// appendMoment appends a time option: the high word comes first.
func appendMoment(b []byte, code uint16, t vtime.Time) []byte {
	b = appendOption(b, code, 8)
	return appendTime(b, t)
}

func appendTime(b []byte, t vtime.Time) []byte {
	b = le.AppendUint32(b, uint32(uint64(t)>>32))
	return le.AppendUint32(b, uint32(t))
}

// appendSection appends the section header block (section 4.1).
func appendSection(b []byte, application, comment string) []byte {
	b, at := beginBlock(b, blockSection)
	b = le.AppendUint32(b, 0x1a2b3c4d)
	b = le.AppendUint16(b, 1) // version 1.0
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, ^uint64(0)) // length of the section: not given
	b = appendText(b, optApplication, application)
	b = appendText(b, optComment, comment)
	b = appendOption(b, optEnd, 0)
	return endBlock(b, at)
}

// appendInterface appends an interface description block (section 4.2) with
// time stamps in nanoseconds.
func appendInterface(b []byte, i *iface) []byte {
	b, at := beginBlock(b, blockInterface)
	b = le.AppendUint16(b, i.link)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, uint32(i.snap))
	b = appendText(b, optName, i.name)
	b = appendText(b, optDescription, i.description)
	if i.speed > 0 {
		b = appendUint64(b, optSpeed, uint64(i.speed))
	}
	b = appendOption(b, optResolution, 1)
	b = append(b, 9, 0, 0, 0) // 10⁻⁹ s
	b = appendOption(b, optEnd, 0)
	return endBlock(b, at)
}

// appendName appends a record of a name resolution block (section 4.5).
func appendName(b []byte, addr [4]byte, name string) []byte {
	const ipv4 = 1
	n := len(addr) + len(name) + 1
	b = appendOption(b, ipv4, n)
	b = append(b, addr[:]...)
	b = append(b, name...)
	b = append(b, 0)
	return pad(b, n)
}

// beginPacket appends the head of an enhanced packet block (section 4.3). The
// packet follows, then endPacket.
func beginPacket(b []byte, iface int, at vtime.Time) (out []byte, block int) {
	b, block = beginBlock(b, blockPacket)
	b = le.AppendUint32(b, uint32(iface))
	b = appendTime(b, at)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0), block // the two lengths
}

const packetHeader = 28 // of an enhanced packet block, up to the packet

// endPacket completes the block after its packet, which had original bytes.
func endPacket(b []byte, block, original int, direction uint32, comment, place string) []byte {
	n := len(b) - block - packetHeader
	le.PutUint32(b[block+20:], uint32(n))
	le.PutUint32(b[block+24:], uint32(original))
	b = pad(b, n)
	if direction != directionUnknown {
		b = appendOption(b, optFlags, 4)
		b = le.AppendUint32(b, direction)
	}
	if comment != "" {
		n := len(comment) + len(place)
		b = appendOption(b, optComment, n)
		b = append(b, comment...)
		b = append(b, place...)
		b = pad(b, n)
	}
	if direction != directionUnknown || comment != "" {
		b = appendOption(b, optEnd, 0)
	}
	return endBlock(b, block)
}

// appendStatistics appends an interface statistics block (section 4.6).
func appendStatistics(b []byte, index int, i *iface, from, to vtime.Time) []byte {
	b, at := beginBlock(b, blockStatistics)
	b = le.AppendUint32(b, uint32(index))
	b = appendTime(b, to)
	b = appendMoment(b, optStart, from)
	b = appendMoment(b, optStop, to)
	b = appendUint64(b, optReceived, i.seen)
	b = appendUint64(b, optDropped, i.dropped)
	b = appendOption(b, optEnd, 0)
	return endBlock(b, at)
}
