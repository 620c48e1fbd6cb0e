package hopnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// What this package puts into Hop's flows, and between neighbours beside them.
// DESIGN.md has the figures. All integers are big endian.

// kind is what a flow carries.
type kind uint8

const (
	kindStream kind = 1 // opens a stream: the dialer's bytes follow
	kindAnswer kind = 2 // answers one: the acceptor's bytes follow, or it is refused
	kindBlock  kind = 3 // a block: its bytes follow
	kindNotice kind = 4 // tells of another flow; nothing follows
)

// code is what an answer or notice says.
type code uint16

const (
	codeOK        code = 0 // answer: accepted; notice of a block: the program has it
	codeNoService code = 1 // nobody listens
	codeBusy      code = 2 // the listener has enough that it has not taken
	codeStop      code = 3 // the reader reads no more
	codeAbort     code = 4 // the writer has given up
	codeUnknown   code = 5 // the beginning of the flow is not known here
)

// preamble is the beginning of every flow.
type preamble struct {
	kind    kind
	service Service
	epoch   uint64     // of the node that sends the flow: grows from life to life
	flow    hop.FlowID // answer, notice: the flow that is meant
	code    code
	mine    bool // notice: the flow is one of the notice's sender, else of its receiver
}

const (
	preambleLen   = 24
	preambleMagic = 0x686f706e // "hopn"
	sessionFormat = 1

	// endMark is the last byte of every flow. Hop tells the end of a flow with its
	// last block, and a block has a byte at least.
	endMark = 0
)

// MaxBlock is the largest block of SendBlock in bytes.
const MaxBlock = int(hop.MaxBlockSize) - preambleLen - 1

var errHole = fmt.Errorf("%w: a part of the stream is missing", ErrReset)

var errPreamble = errors.New("the beginning of a flow makes no sense")

func (p *preamble) put(b []byte) {
	be := binary.BigEndian
	be.PutUint32(b, preambleMagic)
	b[4], b[5] = sessionFormat, byte(p.kind)
	be.PutUint16(b[6:], uint16(p.service))
	be.PutUint64(b[8:], p.epoch)
	be.PutUint32(b[16:], uint32(p.flow))
	be.PutUint16(b[20:], uint16(p.code))
	b[22], b[23] = 0, 0
	if p.mine {
		b[23] = 1
	}
}

func (p *preamble) parse(b []byte) error {
	be := binary.BigEndian
	if len(b) < preambleLen || be.Uint32(b) != preambleMagic || b[4] != sessionFormat || b[22] != 0 || b[23] > 1 {
		return errPreamble
	}
	*p = preamble{kind: kind(b[5]), service: Service(be.Uint16(b[6:])), epoch: be.Uint64(b[8:]),
		flow: hop.FlowID(be.Uint32(b[16:])), code: code(be.Uint16(b[20:])), mine: b[23] == 1}
	if p.kind < kindStream || p.kind > kindNotice || p.code > codeUnknown {
		return errPreamble
	}
	return nil
}

// intro is how two neighbours get to know each other: a datagram of its own,
// told from Hop's packets by its first byte.
type intro struct {
	id     NodeID
	epoch  uint64
	cookie uint64 // for the receiver: shows, when it comes back, that the address is its
	echo   uint64 // the receiver's cookie; 0: not known yet
}

const (
	introLen   = 36 // never more than what causes one: a Hop packet has 40 bytes
	introMagic = 0xb5
	introAsks  = 1 << 0 // the receiver shall answer
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (m *intro) put(b []byte, asks bool) {
	be := binary.BigEndian
	b[0], b[1], b[2], b[3] = introMagic, sessionFormat, 0, 0
	if asks {
		b[2] = introAsks
	}
	be.PutUint32(b[4:], uint32(m.id))
	be.PutUint64(b[8:], m.epoch)
	be.PutUint64(b[16:], m.cookie)
	be.PutUint64(b[24:], m.echo)
	be.PutUint32(b[32:], crc32.Checksum(b[:32], castagnoli))
}

// isIntro tells an introduction from a packet of Hop, whose first byte is its
// version.
func isIntro(b []byte) bool { return len(b) > 0 && b[0] == introMagic }

func (m *intro) parse(b []byte) (asks, ok bool) {
	be := binary.BigEndian
	if len(b) != introLen || b[1] != sessionFormat || b[2]&^introAsks != 0 || b[3] != 0 || be.Uint32(b[32:]) != crc32.Checksum(b[:32], castagnoli) {
		return false, false
	}
	*m = intro{id: NodeID(be.Uint32(b[4:])), epoch: be.Uint64(b[8:]), cookie: be.Uint64(b[16:]), echo: be.Uint64(b[24:])}
	return b[2]&introAsks != 0, m.id.Valid()
}
