package bundle

import (
	"errors"
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Why a session ended.
var (
	ErrIdle  = errors.New("the peer has been silent for twice the keepalive interval")
	ErrSetup = errors.New("the peer did not complete the set-up of the session")
	ErrStuck = errors.New("the peer did not complete the termination of the session")
)

// PeerError says that the peer broke the protocol, or will not have the session.
type PeerError struct{ Detail string }

// Error implements error.
func (e *PeerError) Error() string { return "bundle: the peer " + e.Detail }

type sessionState uint8

const (
	awaitContact sessionState = iota
	awaitInit
	established
	ending // a SESS_TERM was sent
	over   // the connection is to be closed when Poll has nothing more
)

// Session is one connection to a neighbour: the convergence layer's state
// machine. A driver hands in each message (Input), sends what Poll returns, in
// this order, and closes the connection when Over says so.
type Session struct {
	n      *Node
	active bool // this node made the connection
	state  sessionState

	begun, heard, spoke vtime.Time
	endBy               vtime.Time
	keepalive           vtime.Duration
	peerSegment         int
	peerTransfer        uint64
	control             []Message // go before segments

	termSent, termHeard bool
	err                 error
	abort               bool

	// Sending.
	out    []*transfer // not yet acknowledged, in their order; the last may be unfinished
	nextID uint64
	unsent vtime.Bytes

	// Receiving.
	in        incoming
	parked    Message // waits for storage
	hasParked bool
	saving    bool // the last segment's bundle is being written to disk
	refused   uint64
	refusal   uint8
	refusing  bool // refused and refusal are the transfer of which segments may still come
}

// maxControl is how many answers may wait until no more input is taken: a peer
// that only talks is not listened to.
const maxControl = 64

func newSession(n *Node, now vtime.Time, active bool) *Session {
	s := &Session{n: n, active: active, begun: now, heard: now, spoke: now, endBy: vtime.Never}
	if active {
		s.say(Message{Type: Contact, Version: tcpclVersion})
	}
	return s
}

// say puts a message into the queue of those that go before segments.
func (s *Session) say(m Message) { s.control = append(s.control, m) }

// Established reports whether bundles can be exchanged.
func (s *Session) Established() bool { return s.state == established }

// Closed reports whether the session is over, for which see Over.
func (s *Session) Closed() bool { return s.state == over }

// Peer reports whether the set-up was completed at any time.
func (s *Session) Peer() bool { return s.peerSegment > 0 }

// Reading reports whether the session takes input. While it does not, because
// its storage is full, a bundle is being written, or its own answers are not
// taken, the driver reads nothing: then TCP stops the peer. What the last Input
// was given must stay valid until then.
func (s *Session) Reading() bool {
	return s.state != over && !s.hasParked && !s.saving && len(s.control) < maxControl
}

// Heard says that octets came from the peer: a long segment on a slow link is a
// sign of life, too.
func (s *Session) Heard(now vtime.Time) { s.heard = now }

// Over reports whether the connection is to be closed: at once and with a reset
// (abort), or when Poll has nothing more. The error is nil after an orderly
// termination.
func (s *Session) Over() (yes, abort bool, err error) {
	return s.state == over && (s.abort || len(s.control) == 0), s.abort, s.err
}

// Lost says that the connection has ended.
func (s *Session) Lost(now vtime.Time, err error) {
	s.control = nil
	s.finish(now, err, true)
}

// finish ends the session. What it has not completed goes back to the node.
func (s *Session) finish(now vtime.Time, err error, abort bool) {
	if s.state == over {
		return
	}
	s.state, s.err, s.abort = over, err, abort
	s.n.detach(now, s)
}

// fail ends the session because of the peer, whom reason and detail tell why.
func (s *Session) fail(now vtime.Time, m Message, detail string) {
	s.say(m)
	s.finish(now, &PeerError{detail}, false)
}

// Broken says that the peer sent what is no message: the parser's error.
func (s *Session) Broken(now vtime.Time, err error) {
	if s.state == over {
		return
	}
	if t, ok := errors.AsType[*TypeError](err); ok && s.state != awaitContact {
		s.fail(now, Message{Type: MsgReject, Reason: RejectType, Rejected: t.Type}, "sent a message of unknown type: "+err.Error())
		return
	}
	// A damaged contact header ends the connection without a word (RFC 9174 §6.1),
	// and after a damaged message nothing that is said would be understood.
	s.finish(now, &PeerError{"sent what is no message: " + err.Error()}, false)
}

// Terminate asks the peer to end the session when the transfers under way are
// complete.
func (s *Session) Terminate(now vtime.Time, reason uint8) {
	if s.state != established {
		return
	}
	s.say(Message{Type: SessTerm, Reason: reason})
	s.termSent, s.state, s.endBy = true, ending, now.Add(s.n.cfg.SetupWithin)
	s.settle(now)
}

// settle closes an ending session in which nothing is under way any more.
func (s *Session) settle(now vtime.Time) {
	if s.state == ending && s.termHeard && len(s.out) == 0 && !s.in.open && !s.saving && !s.hasParked {
		s.finish(now, nil, false)
	}
}

// Input takes one message.
func (s *Session) Input(now vtime.Time, m *Message) {
	s.heard = now
	switch s.state {
	case awaitContact:
		s.contact(now, m)
	case awaitInit:
		switch m.Type {
		case SessInit:
			s.init(now, m)
		case SessTerm:
			s.finish(now, &PeerError{fmt.Sprintf("will not have the session (SESS_TERM, reason %d)", m.Reason)}, false)
		default:
			s.fail(now, Message{Type: MsgReject, Reason: RejectUnexpected, Rejected: m.Type}, fmt.Sprintf("sent %v before SESS_INIT", m.Type))
		}
	case established, ending:
		s.message(now, m)
	}
}

// contact takes the peer's contact header (RFC 9174 §4.3).
func (s *Session) contact(now vtime.Time, m *Message) {
	if m.Type != Contact {
		s.finish(now, &PeerError{"sent no contact header"}, false)
		return
	}
	if !s.active {
		s.say(Message{Type: Contact, Version: tcpclVersion})
	}
	if m.Version != tcpclVersion {
		detail := fmt.Sprintf("speaks version %d of the convergence layer, this node version %d", m.Version, tcpclVersion)
		if s.active {
			s.finish(now, &PeerError{detail}, false)
		} else {
			s.fail(now, Message{Type: SessTerm, Reason: TermVersion}, detail)
		}
		return
	}
	s.state = awaitInit
	if s.active {
		s.sayInit()
	}
}

func (s *Session) sayInit() {
	c := &s.n.cfg
	s.say(Message{Type: SessInit, Keepalive: uint16(c.Keepalive / vtime.Second), SegmentMRU: uint64(c.SegmentSize),
		TransferMRU: uint64(c.Limit), NodeID: c.Self.String()})
}

// init takes the peer's SESS_INIT (RFC 9174 §4.6, §4.7).
func (s *Session) init(now vtime.Time, m *Message) {
	c := &s.n.cfg
	if !s.active {
		s.sayInit()
	}
	want := c.Prev
	if s.active {
		want = c.Next
	}
	refuse := func(detail string) { s.fail(now, Message{Type: SessTerm, Reason: TermContact}, detail) }
	switch id, err := ParseEID(m.NodeID); {
	case err != nil || id != want:
		refuse(fmt.Sprintf("is the node %q, want %v", m.NodeID, want))
		return
	case m.SegmentMRU < minSegment:
		refuse(fmt.Sprintf("accepts segments of %d bytes only, want %d at least", m.SegmentMRU, minSegment))
		return
	case m.BadExtension:
		refuse("asks for an extension of the session that this node does not know")
		return
	}
	s.peerSegment, s.peerTransfer = int(min(m.SegmentMRU, uint64(c.SegmentSize))), m.TransferMRU
	s.keepalive = min(c.Keepalive, vtime.Duration(m.Keepalive)*vtime.Second)
	s.state = established
	s.n.established(now, s)
}

// message takes a message of an established session.
func (s *Session) message(now vtime.Time, m *Message) {
	switch m.Type {
	case XferSegment:
		s.segment(now, m)
	case XferAck:
		s.acked(now, m)
	case XferRefuse:
		s.refusedByPeer(now, m)
	case Keepalive:
	case SessTerm:
		s.term(now, m)
	case MsgReject:
		s.finish(now, &PeerError{fmt.Sprintf("rejects %v (reason %d)", m.Rejected, m.Reason)}, false)
		return
	default:
		s.say(Message{Type: MsgReject, Reason: RejectUnexpected, Rejected: m.Type})
	}
	s.settle(now)
}

func (s *Session) term(now vtime.Time, m *Message) {
	s.termHeard = true
	if !s.termSent {
		s.say(Message{Type: SessTerm, Flags: m.Flags | flagReply, Reason: m.Reason})
		s.termSent, s.state, s.endBy = true, ending, now.Add(s.n.cfg.SetupWithin)
	}
	if !s.active {
		s.n.upstreamDone = true
	}
}

// Poll returns the next message to send; ok is false when there is none now.
// Messages are sent completely and in this order.
func (s *Session) Poll(now vtime.Time) (m Message, ok bool) {
	if len(s.control) == 0 && (s.state == established || s.state == ending) {
		if m, ok = s.nextSegment(now); ok {
			s.spoke = now
			return m, true
		}
		// The search for a bundle may have found that there will be none, which is said.
	}
	if len(s.control) == 0 {
		return m, false
	}
	m, s.control, s.spoke = s.control[0], s.control[1:], now
	return m, true
}

// deadline is when expire has something to do.
func (s *Session) deadline() vtime.Time {
	switch s.state {
	case over:
		return vtime.Never
	case awaitContact, awaitInit:
		return s.begun.Add(s.n.cfg.SetupWithin)
	}
	at := s.endBy
	if s.keepalive > 0 {
		at = vtime.Min(at, s.spoke.Add(s.keepalive))
		if s.Reading() {
			at = vtime.Min(at, s.heard.Add(2*s.keepalive))
		}
	}
	return at
}

// expire acts on what is due.
func (s *Session) expire(now vtime.Time) {
	switch s.state {
	case over:
	case awaitContact, awaitInit:
		if now >= s.begun.Add(s.n.cfg.SetupWithin) {
			s.finish(now, ErrSetup, true)
		}
	default:
		if now >= s.endBy {
			s.finish(now, ErrStuck, true)
		} else if s.keepalive > 0 && s.Reading() && now >= s.heard.Add(2*s.keepalive) {
			s.n.stats.IdleTimeouts++
			s.say(Message{Type: SessTerm, Reason: TermIdle})
			s.finish(now, ErrIdle, true)
		} else if s.keepalive > 0 && now >= s.spoke.Add(s.keepalive) {
			// Whatever waits to be said is a sign of life as good as a KEEPALIVE.
			if s.spoke = now; len(s.control) == 0 {
				s.say(Message{Type: Keepalive})
			}
		}
	}
}
