package hop

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Version is the wire format's version; a packet of another one is refused.
const Version = 1

// HeaderLen and announceLen are the sizes in bytes of the header that every
// packet has and of a BSYN's announcement after it (DESIGN.md §2).
const (
	HeaderLen   = 40
	announceLen = 20
	e2eLen      = 12
)

// MaxPacket is the largest Hop packet: an announcement never has more than
// MaxPayload bytes after it, inline data included.
const MaxPacket = HeaderLen + MaxPayload

// msgType is the header's message type (paper §4: every frame carries one).
type msgType uint8

const (
	typeData    msgType = 1
	typeBSYN    msgType = 2
	typeBACK    msgType = 3
	typeVBSYN   msgType = 4
	typeVBACK   msgType = 5
	typeE2EBACK msgType = 6
)

// The header's flags.
const (
	flagLast    = 1 << 0 // BSYN, VBSYN: the flow's last block
	flagMicro   = 1 << 1 // BSYN, VBSYN, data: micro-block
	flagPoll    = 1 << 2 // BSYN of a micro-block: answer even if incomplete
	flagInline  = 1 << 3 // BSYN of a micro-block: the block's bytes follow
	flagVirtual = 1 << 4 // BACK: answers a VBSYN
	flagWait    = 1 << 5 // BACK: no grant yet, the request is noted
)

// allowedFlags are the flags that each type may carry, indexed by type.
var allowedFlags = [...]uint8{
	typeData:    flagMicro,
	typeBSYN:    flagLast | flagMicro | flagPoll | flagInline,
	typeBACK:    flagVirtual | flagWait,
	typeVBSYN:   flagLast | flagMicro,
	typeVBACK:   0,
	typeE2EBACK: 0,
}

// header is the fixed part of a packet.
type header struct {
	typ     msgType
	flags   uint8
	ttl     uint8
	key     FlowKey
	block   BlockID
	attempt uint16
	seq     uint16 // data: the packet's number in the block
	count   uint16 // the block's number of packets; 0 in VBACK and E2EBACK
	sent    vtime.Time
}

// announcement is what a BSYN or VBSYN says about its block.
type announcement struct {
	size    int    // bytes of the block
	payload int    // bytes of each packet but the last
	token   uint16 // the virtual retransmission that caused this transfer; 0: none
	base    BlockID
	hash    uint64
}

// message is what a packet says. That of a parsed one has data in the packet.
type message struct {
	header
	ann  announcement // BSYN, VBSYN
	cum  BlockID      // E2EBACK: every block below is complete at the destination
	sack uint64       // E2EBACK: bit i: block cum+i is, too
	data []byte       // data: bytes; BSYN with flagInline: the block; BACK: bitmap
	mem  *buffer      // of a block that data lie in; nil: in none that is known
}

// Errors of parse. They are constants of the package so that a flood of bad
// packets allocates nothing.
var (
	errShort   = errors.New("hop: packet is shorter than a header")
	errVersion = errors.New("hop: unknown version")
	errType    = errors.New("hop: unknown message type")
	errFlags   = errors.New("hop: flag not allowed in this message type")
	errLength  = errors.New("hop: length field differs from the packet's length")
	errCRC     = errors.New("hop: CRC32C does not match")
	errField   = errors.New("hop: field out of range")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is CRC32C (RFC 3720 §12.1) over the packet without its own field.
func checksum(pkt []byte) uint32 {
	return crc32.Update(crc32.Checksum(pkt[:36], castagnoli), castagnoli, pkt[HeaderLen:])
}

// bodyLen is the length of what follows the header.
func (m *message) bodyLen() int {
	switch m.typ {
	case typeBSYN, typeVBSYN:
		return announceLen + len(m.data)
	case typeE2EBACK:
		return e2eLen
	}
	return len(m.data)
}

// put lays the message out in pkt, which has its length.
func (m *message) put(pkt []byte) {
	body := pkt[HeaderLen:]
	switch m.typ {
	case typeBSYN, typeVBSYN:
		putAnnouncement(body, &m.ann)
		body = body[announceLen:]
	case typeE2EBACK:
		putE2E(body, m.cum, m.sack)
	}
	copy(body, m.data)
	seal(pkt, &m.header)
}

// seal writes the header into pkt, whose payload is in place, and its CRC.
func seal(pkt []byte, h *header) {
	be := binary.BigEndian
	pkt[0], pkt[1], pkt[2], pkt[3] = Version, byte(h.typ), h.flags, h.ttl
	be.PutUint32(pkt[4:], uint32(h.key.Src))
	be.PutUint32(pkt[8:], uint32(h.key.Dst))
	be.PutUint32(pkt[12:], uint32(h.key.Flow))
	be.PutUint32(pkt[16:], uint32(h.block))
	be.PutUint16(pkt[20:], h.attempt)
	be.PutUint16(pkt[22:], h.seq)
	be.PutUint16(pkt[24:], h.count)
	be.PutUint16(pkt[26:], uint16(len(pkt)-HeaderLen))
	be.PutUint64(pkt[28:], uint64(h.sent))
	be.PutUint32(pkt[36:], checksum(pkt))
}

// putAnnouncement writes a into b, which has announceLen bytes.
func putAnnouncement(b []byte, a *announcement) {
	be := binary.BigEndian
	be.PutUint32(b, uint32(a.size))
	be.PutUint16(b[4:], uint16(a.payload))
	be.PutUint16(b[6:], a.token)
	be.PutUint32(b[8:], uint32(a.base))
	be.PutUint64(b[12:], a.hash)
}

// putE2E writes an end-to-end BACK's body into b, which has e2eLen bytes.
func putE2E(b []byte, cum BlockID, sack uint64) {
	binary.BigEndian.PutUint32(b, uint32(cum))
	binary.BigEndian.PutUint64(b[4:], sack)
}

// packets returns how many packets of payload bytes make size bytes.
func packets(size, payload int) int { return (size + payload - 1) / payload }

// parse reads a packet strictly: whatever is not exactly what this version
// sends is an error. m is overwritten.
func parse(m *message, pkt []byte) error {
	if len(pkt) < HeaderLen {
		return errShort
	}
	be := binary.BigEndian
	if pkt[0] != Version {
		return errVersion
	}
	typ := msgType(pkt[1])
	if typ < typeData || typ > typeE2EBACK {
		return errType
	}
	if int(be.Uint16(pkt[26:])) != len(pkt)-HeaderLen || len(pkt) > MaxPacket {
		return errLength
	}
	if be.Uint32(pkt[36:]) != checksum(pkt) {
		return errCRC
	}
	*m = message{header: header{
		typ: typ, flags: pkt[2], ttl: pkt[3],
		key:     FlowKey{Src: NodeID(be.Uint32(pkt[4:])), Dst: NodeID(be.Uint32(pkt[8:])), Flow: FlowID(be.Uint32(pkt[12:]))},
		block:   BlockID(be.Uint32(pkt[16:])),
		attempt: be.Uint16(pkt[20:]), seq: be.Uint16(pkt[22:]), count: be.Uint16(pkt[24:]),
		sent: vtime.Time(be.Uint64(pkt[28:])),
	}}
	if err := parseBody(m, pkt[HeaderLen:]); err != nil {
		return err
	}
	return m.check()
}

// parseBody reads what follows the header.
func parseBody(m *message, b []byte) error {
	be := binary.BigEndian
	switch m.typ {
	case typeData, typeBACK:
		m.data = b
	case typeBSYN, typeVBSYN:
		if len(b) < announceLen {
			return errLength
		}
		a := &m.ann
		a.size, a.payload = int(be.Uint32(b)), int(be.Uint16(b[4:]))
		a.token, a.base, a.hash = be.Uint16(b[6:]), BlockID(be.Uint32(b[8:])), be.Uint64(b[12:])
		m.data = b[announceLen:]
	case typeVBACK:
		if len(b) != 0 {
			return errLength
		}
	case typeE2EBACK:
		if len(b) != e2eLen {
			return errLength
		}
		m.cum, m.sack = BlockID(be.Uint32(b)), be.Uint64(b[4:])
	}
	return nil
}

// check refuses a message whose fields do not fit each other.
func (m *message) check() error {
	if m.flags&^allowedFlags[m.typ] != 0 {
		return errFlags
	}
	if m.ttl == 0 || m.key.Src == m.key.Dst || m.typ != typeData && m.seq != 0 {
		return errField
	}
	switch m.typ {
	case typeData:
		if len(m.data) == 0 || m.seq >= m.count {
			return errField
		}
	case typeBSYN, typeVBSYN:
		a := &m.ann
		if a.size < 1 || a.size > int(MaxBlockSize) || a.payload < MinPayload || a.payload > MaxPayload ||
			int(m.count) != packets(a.size, a.payload) || m.block < a.base || m.block-a.base >= MaxWindow {
			return errField
		}
		return m.checkAnnounced()
	case typeBACK:
		if m.count == 0 || len(m.data) != (int(m.count)+7)/8 {
			return errLength
		}
		if pad := m.count & 7; pad != 0 && m.data[len(m.data)-1]>>pad != 0 {
			return errField // bits of packets that do not exist
		}
	case typeVBACK, typeE2EBACK:
		if m.count != 0 {
			return errLength
		}
		if m.typ == typeE2EBACK && m.sack&1 != 0 {
			return errField // block cum is the first that is missing
		}
	}
	return nil
}

// checkAnnounced checks what follows an announcement against its flags.
func (m *message) checkAnnounced() error {
	micro, inline := m.flags&flagMicro != 0, m.flags&flagInline != 0
	switch {
	case !micro && m.flags&(flagPoll|flagInline) != 0:
		return errFlags
	case micro && m.ann.size > int(maxMicro):
		return errField
	case !inline && len(m.data) != 0, inline && (m.count != 1 || len(m.data) != m.ann.size):
		return errLength
	}
	return nil
}
