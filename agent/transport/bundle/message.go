package bundle

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MessageType is the header of a message (RFC 9174 §4.5).
type MessageType uint8

// The messages of the convergence layer. The contact header, which has no
// header of its own, is a message here, too.
const (
	Contact     MessageType = 0
	XferSegment MessageType = 1
	XferAck     MessageType = 2
	XferRefuse  MessageType = 3
	Keepalive   MessageType = 4
	SessTerm    MessageType = 5
	MsgReject   MessageType = 6
	SessInit    MessageType = 7
)

// String names the type as the RFC does.
func (t MessageType) String() string {
	if int(t) < len(messageNames) {
		return messageNames[t]
	}
	return fmt.Sprintf("message type %d", uint8(t))
}

var messageNames = [...]string{"contact header", "XFER_SEGMENT", "XFER_ACK", "XFER_REFUSE", "KEEPALIVE", "SESS_TERM", "MSG_REJECT", "SESS_INIT"}

// The flags of XFER_SEGMENT and XFER_ACK (RFC 9174 §5.2.2).
const (
	FlagEnd   uint8 = 1
	FlagStart uint8 = 2
)

// flagReply is SESS_TERM's (RFC 9174 §6.1); flagCritical is an extension item's
// (§4.8).
const (
	flagReply    uint8 = 1
	flagCritical uint8 = 1
)

// Why a transfer is refused (RFC 9174 §5.2.4).
const (
	RefuseUnknown       uint8 = 0
	RefuseCompleted     uint8 = 1
	RefuseNoResources   uint8 = 2
	RefuseRetransmit    uint8 = 3
	RefuseNotAcceptable uint8 = 4
	RefuseExtension     uint8 = 5
	RefuseTerminating   uint8 = 6
)

// Why a session is terminated (RFC 9174 §6.1).
const (
	TermUnknown   uint8 = 0
	TermIdle      uint8 = 1
	TermVersion   uint8 = 2
	TermBusy      uint8 = 3
	TermContact   uint8 = 4
	TermResources uint8 = 5
)

// Why a message is rejected (RFC 9174 §5.1.2).
const (
	RejectType        uint8 = 1
	RejectUnsupported uint8 = 2
	RejectUnexpected  uint8 = 3
)

// The contact header (RFC 9174 §4.2).
const (
	magic        = "dtn!"
	tcpclVersion = 4
	contactLen   = len(magic) + 2
)

// Part is a piece of an encoded bundle: of one that is sent or, in virtual time,
// received, N octets of Of from Off on; of one that came as octets, Bytes.
type Part struct {
	Of     *Encoded
	Off, N int
	Bytes  []byte
}

// Message is one message of the convergence layer. Which fields mean anything
// depends on the type.
type Message struct {
	Type MessageType
	// Version is the contact header's.
	Version uint8
	// Flags are those of XFER_SEGMENT, XFER_ACK, SESS_TERM and the contact header.
	Flags uint8
	// Reason is that of XFER_REFUSE, SESS_TERM and MSG_REJECT; Rejected is the
	// header of the message that MSG_REJECT speaks of.
	Reason   uint8
	Rejected MessageType

	// Transfer is the id of the transfer; Acked what XFER_ACK acknowledges.
	Transfer, Acked uint64
	// Total is the length that the first segment's extension announces; 0: it
	// has none. BadExtension: it has an extension that must be understood and
	// was not.
	Total        uint64
	BadExtension bool
	Data         Part

	// The fields of SESS_INIT.
	Keepalive               uint16 // seconds
	SegmentMRU, TransferMRU uint64
	NodeID                  string
	hasLength               bool // Total was announced, whatever it is
}

// The transfer length extension (RFC 9174 §5.2.5.1).
const (
	extensionLength    = 1
	extensionHeader    = 5 // flags, type, length
	extensionLengthLen = extensionHeader + 8
)

// The bounds of a message that is accepted: RFC 9174 has none.
const (
	maxNodeID     = maxEID
	maxExtensions = 1 << 10
)

// WireLen returns the message's length in octets.
func (m *Message) WireLen() int {
	switch m.Type {
	case Contact:
		return contactLen
	case XferSegment:
		n := 1 + 1 + 8 + 8 + m.Data.N
		if m.Flags&FlagStart != 0 {
			if n += 4; m.announces() {
				n += extensionLengthLen
			}
		}
		return n
	case XferAck:
		return 1 + 1 + 8 + 8
	case XferRefuse:
		return 1 + 1 + 8
	case SessTerm, MsgReject:
		return 3
	case SessInit:
		return 1 + 2 + 8 + 8 + 2 + len(m.NodeID) + 4
	}
	return 1
}

// announces says whether the first segment has the transfer length extension,
// which a transfer of one segment need not have.
func (m *Message) announces() bool { return m.Total > 0 && m.Flags&FlagEnd == 0 }

// Append appends the message's octets. Errors are those of the content.
func (m *Message) Append(dst []byte) ([]byte, error) {
	be := binary.BigEndian
	if m.Type == Contact {
		return append(append(dst, magic...), m.Version, m.Flags), nil
	}
	dst = append(dst, byte(m.Type))
	switch m.Type {
	case XferSegment:
		dst = be.AppendUint64(append(dst, m.Flags), m.Transfer)
		if m.Flags&FlagStart != 0 {
			if m.announces() {
				dst = be.AppendUint32(dst, extensionLengthLen)
				dst = be.AppendUint16(append(dst, 0), extensionLength)
				dst = be.AppendUint64(be.AppendUint16(dst, 8), m.Total)
			} else {
				dst = be.AppendUint32(dst, 0)
			}
		}
		dst = be.AppendUint64(dst, uint64(m.Data.N))
		if m.Data.Of == nil {
			return append(dst, m.Data.Bytes...), nil
		}
		return m.Data.Of.Append(dst, m.Data.Off, m.Data.N)
	case XferAck:
		dst = be.AppendUint64(append(dst, m.Flags), m.Transfer)
		dst = be.AppendUint64(dst, m.Acked)
	case XferRefuse:
		dst = be.AppendUint64(append(dst, m.Reason), m.Transfer)
	case SessTerm:
		dst = append(dst, m.Flags, m.Reason)
	case MsgReject:
		dst = append(dst, m.Reason, byte(m.Rejected))
	case SessInit:
		dst = be.AppendUint16(dst, m.Keepalive)
		dst = be.AppendUint64(be.AppendUint64(dst, m.SegmentMRU), m.TransferMRU)
		dst = append(be.AppendUint16(dst, uint16(len(m.NodeID))), m.NodeID...)
		dst = be.AppendUint32(dst, 0)
	}
	return dst, nil
}

// TypeError says that a message has a type that nobody knows.
type TypeError struct{ Type MessageType }

// Error implements error.
func (e *TypeError) Error() string { return fmt.Sprintf("bundle: %v is unknown", e.Type) }

// errMore says that a message is not complete yet.
var errMore = errors.New("more is needed")

// field reads the fields of a message one after the other.
type field struct {
	b    []byte
	at   int
	fail error
}

func (f *field) bytes(n int) []byte {
	if f.fail != nil {
		return nil
	}
	if n > len(f.b)-f.at {
		f.fail = errMore
		return nil
	}
	f.at += n
	return f.b[f.at-n : f.at]
}

func (f *field) uint(size int) (v uint64) {
	for _, b := range f.bytes(size) {
		v = v<<8 | uint64(b)
	}
	return v
}

// length reads a length and bounds it.
func (f *field) length(size int, most uint64, what string) int {
	n := f.uint(size)
	if f.fail == nil && n > most {
		f.fail = fmt.Errorf("bundle: %s of %d bytes: at most %d", what, n, most)
	}
	if f.fail != nil {
		return 0
	}
	return int(n)
}

// parse reads the message at the beginning of b and returns its length. contact
// says that it is the contact header; segmentMRU bounds a segment's data. The
// error is errMore while the message is not complete, a *TypeError for a type
// that is unknown, and final for all else. Data.Bytes and nothing else of the
// message is a part of b.
func (m *Message) parse(b []byte, contact bool, segmentMRU int) (int, error) {
	*m = Message{}
	f := field{b: b}
	if contact {
		if n := min(len(b), len(magic)); string(b[:n]) != magic[:n] {
			return 0, fmt.Errorf("bundle: the connection begins with %q, want %q (TCPCL)", b[:n], magic)
		}
		f.bytes(len(magic))
		m.Version, m.Flags = uint8(f.uint(1)), uint8(f.uint(1))
		return f.at, f.fail
	}
	m.Type = MessageType(f.uint(1))
	if f.fail != nil {
		return 0, f.fail
	}
	switch m.Type {
	case XferSegment:
		m.parseSegment(&f, segmentMRU)
	case XferAck:
		m.Flags, m.Transfer, m.Acked = uint8(f.uint(1)), f.uint(8), f.uint(8)
	case XferRefuse:
		m.Reason, m.Transfer = uint8(f.uint(1)), f.uint(8)
	case Keepalive:
	case SessTerm:
		m.Flags, m.Reason = uint8(f.uint(1)), uint8(f.uint(1))
	case MsgReject:
		m.Reason, m.Rejected = uint8(f.uint(1)), MessageType(f.uint(1))
	case SessInit:
		m.Keepalive, m.SegmentMRU, m.TransferMRU = uint16(f.uint(2)), f.uint(8), f.uint(8)
		m.NodeID = string(f.bytes(f.length(2, maxNodeID, "SESS_INIT with a node id")))
		m.parseExtensions(&f, "SESS_INIT", false)
	default:
		return 0, &TypeError{m.Type}
	}
	return f.at, f.fail
}

func (m *Message) parseSegment(f *field, segmentMRU int) {
	m.Flags, m.Transfer = uint8(f.uint(1)), f.uint(8)
	if m.Flags&FlagStart != 0 {
		m.parseExtensions(f, "XFER_SEGMENT", true)
	}
	n := f.length(8, uint64(segmentMRU), "XFER_SEGMENT with data")
	m.Data = Part{N: n, Bytes: f.bytes(n)}
}

// parseExtensions reads the extension items of a session or of a transfer.
func (m *Message) parseExtensions(f *field, what string, transfer bool) {
	items := field{b: f.bytes(f.length(4, maxExtensions, what+" with extensions"))}
	for f.fail == nil && items.at < len(items.b) {
		flags, typ := uint8(items.uint(1)), items.uint(2)
		value := field{b: items.bytes(int(items.uint(2)))}
		switch {
		case items.fail != nil:
			f.fail = fmt.Errorf("bundle: %s: an extension item is longer than the list of them", what)
		case transfer && typ == extensionLength:
			m.BadExtension = m.BadExtension || m.hasLength || len(value.b) != 8
			m.Total, m.hasLength = value.uint(8), true
		default:
			m.BadExtension = m.BadExtension || flags&flagCritical != 0
		}
	}
}

// Parser cuts a stream of octets into messages.
type Parser struct {
	buf        []byte
	at, held   int // buf[at:held] is not parsed yet
	contact    bool
	segmentMRU int
}

// overhead is the most that a message is longer than its data: XFER_SEGMENT with
// all extensions that are accepted.
const overhead = 64 + maxExtensions

// NewParser returns a parser of one direction of a connection, which accepts
// segments with at most segmentMRU octets of data and never buffers more than
// that and a little.
func NewParser(segmentMRU int) *Parser {
	return &Parser{buf: make([]byte, max(segmentMRU, maxNodeID)+overhead), contact: true, segmentMRU: segmentMRU}
}

// Space returns where to put what comes next. What Next returned before is
// overwritten.
func (p *Parser) Space() []byte {
	if p.at > 0 {
		p.held = copy(p.buf, p.buf[p.at:p.held])
		p.at = 0
	}
	return p.buf[p.held:]
}

// Filled says that n octets were put into Space.
func (p *Parser) Filled(n int) { p.held += n }

// Next returns the next message; ok is false while it is not complete. After an
// error there is nothing more to be had. The message's data are valid until
// Space is called.
func (p *Parser) Next() (m Message, ok bool, err error) {
	n, err := m.parse(p.buf[p.at:p.held], p.contact, p.segmentMRU)
	if err == errMore {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	p.at += n
	p.contact = false
	return m, true, nil
}
