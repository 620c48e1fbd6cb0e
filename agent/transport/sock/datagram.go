//go:build linux

package sock

import (
	"encoding/binary"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The datagrams of a UDP flow. All integers are big-endian. The header is a part
// of the application's bytes, so that a datagram is as long as the application
// meant it to be; what follows is pattern.
//
//	0  magic "hbU" and version: 1, or 2 with messages
//	4  flow
//	8  sequence number of the datagram
//	with messages:
//	16 number of the message
//	20 offset in the message of the piece that this datagram carries
//	24 size of the message
//
// A message is cut into pieces of the flow's datagram size. A piece that is
// shorter than the header is sent as long as that.
const (
	datagramHeader = 16
	messageHeader  = 28

	datagramMagic = 0x68625501
	messageMagic  = 0x68625502
)

// mostSequence is more than a source ever sends: the place of a datagram in the
// pattern is then a number of 64 bits.
const mostSequence = 1 << 48

// datagramHead is a datagram's header.
type datagramHead struct {
	seq     int64
	message int
	offset  vtime.Bytes
	size    vtime.Bytes
}

// headerOf is the length of the header of the flow's datagrams.
func headerOf(f *proto.Flow) int {
	if f.Workload.HasMessages() {
		return messageHeader
	}
	return datagramHeader
}

// carries is how many bytes of its message the datagram carries.
func (h *datagramHead) carries(datagram int) vtime.Bytes {
	return min(vtime.Bytes(datagram), h.size-h.offset)
}

// fill writes the source's next datagram into buf, which has the flow's datagram
// size. It returns its length and how many of the application's bytes it carries.
func (s *udpSource) fill(buf []byte, pattern *workload.Pattern, now vtime.Time) (size int, carried vtime.Bytes) {
	header, magic := headerOf(&s.flow), uint32(datagramMagic)
	if header == messageHeader {
		k, offset, length := s.app.Message()
		magic = messageMagic
		binary.BigEndian.PutUint32(buf[16:], uint32(k))
		binary.BigEndian.PutUint32(buf[20:], uint32(offset))
		binary.BigEndian.PutUint32(buf[24:], uint32(length))
	}
	binary.BigEndian.PutUint32(buf, magic)
	binary.BigEndian.PutUint32(buf[4:], uint32(s.flow.ID))
	binary.BigEndian.PutUint64(buf[8:], uint64(s.seq))
	carried = min(vtime.Bytes(len(buf)), s.app.Piece(now))
	size = max(header, int(carried))
	copy(buf[header:size], pattern.At(s.seq*int64(len(buf)), size-header))
	return size, carried
}

// parseDatagram reads the header of a datagram of the flow and returns what
// follows; ok is false for anything else, and for a length that the flow's
// source does not send.
func parseDatagram(f *proto.Flow, data []byte) (h datagramHead, body []byte, ok bool) {
	header, magic := headerOf(f), uint32(datagramMagic)
	if header == messageHeader {
		magic = messageMagic
	}
	if len(data) < header || binary.BigEndian.Uint32(data) != magic || binary.BigEndian.Uint32(data[4:]) != uint32(f.ID) {
		return h, nil, false
	}
	if h.seq = int64(binary.BigEndian.Uint64(data[8:])); h.seq < 0 || h.seq > mostSequence {
		return h, nil, false
	}
	if header == messageHeader {
		h.message = int(binary.BigEndian.Uint32(data[16:]))
		h.offset, h.size = vtime.Bytes(binary.BigEndian.Uint32(data[20:])), vtime.Bytes(binary.BigEndian.Uint32(data[24:]))
		step := vtime.Bytes(datagram(f))
		if h.offset >= h.size || h.offset%step != 0 || len(data) != max(header, int(h.carries(int(step)))) {
			return h, nil, false
		}
	}
	return h, data[header:], true
}
