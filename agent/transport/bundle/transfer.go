package bundle

import (
	"github.com/hopbed/hopbed/netem/vtime"
)

// transfer is a bundle on its way to the next hop.
type transfer struct {
	id          uint64
	h           *held
	enc         *Encoded
	sent, acked int
}

// nextSegment returns the next segment of the transfer that is being sent, or
// the first one of a new transfer (RFC 9174 §5.2.2).
func (s *Session) nextSegment(now vtime.Time) (m Message, ok bool) {
	t := s.sending()
	if t == nil {
		if s.state != established || !s.active {
			return m, false
		}
		if t = s.begin(now); t == nil {
			return m, false
		}
	}
	n := min(t.enc.Len()-t.sent, s.peerSegment)
	m = Message{Type: XferSegment, Transfer: t.id, Data: Part{Of: t.enc, Off: t.sent, N: n}}
	if t.sent == 0 {
		m.Flags, m.Total, m.hasLength = FlagStart, uint64(t.enc.Len()), true
	}
	if t.sent += n; t.sent == t.enc.Len() {
		m.Flags |= FlagEnd
	}
	return m, true
}

// sending returns the transfer of which segments are left to send.
func (s *Session) sending() *transfer {
	if k := len(s.out); k > 0 && s.out[k-1].sent < s.out[k-1].enc.Len() {
		return s.out[k-1]
	}
	return nil
}

// begin begins a transfer if one may begin.
func (s *Session) begin(now vtime.Time) *transfer {
	if len(s.out) >= s.n.cfg.Transfers {
		return nil
	}
	h, enc := s.n.nextBundle(now, s)
	if h == nil {
		return nil
	}
	if h.resend {
		s.n.stats.Resent++
	}
	h.state = inFlight
	t := &transfer{id: s.nextID, h: h, enc: enc}
	s.nextID++
	s.out = append(s.out, t)
	s.unsent += vtime.Bytes(enc.Len())
	return t
}

// room reports whether a transfer of so many octets may begin.
func (s *Session) room(size int) bool {
	return len(s.out) == 0 || s.unsent+vtime.Bytes(size) <= s.n.cfg.Unacked
}

// find returns the transfer with an id and its index.
func (s *Session) find(id uint64) (int, *transfer) {
	for i, t := range s.out {
		if t.id == id {
			return i, t
		}
	}
	return 0, nil
}

// drop takes a transfer out of those that are under way.
func (s *Session) drop(i int) {
	s.unsent -= vtime.Bytes(s.out[i].enc.Len())
	s.out = append(s.out[:i], s.out[i+1:]...)
}

// acked takes an acknowledgement. The one of the last segment says that the
// next hop has stored the bundle: it is deleted here.
func (s *Session) acked(now vtime.Time, m *Message) {
	i, t := s.find(m.Transfer)
	last := m.Flags&FlagEnd != 0
	if t == nil || m.Acked > uint64(t.sent) || m.Acked < uint64(t.acked) || last != (m.Acked == uint64(t.enc.Len())) {
		s.say(Message{Type: MsgReject, Reason: RejectUnexpected, Rejected: m.Type})
		return
	}
	t.acked = int(m.Acked)
	if last {
		s.drop(i)
		s.n.forwarded(now, t.h)
	}
}

// refusedByPeer takes a refusal (RFC 9174 §5.2.4). Segments that are left are
// not sent.
func (s *Session) refusedByPeer(now vtime.Time, m *Message) {
	i, t := s.find(m.Transfer)
	if t == nil {
		return // it has crossed with the last acknowledgement, or came twice
	}
	s.drop(i)
	s.n.refused(now, t.h, m.Reason)
}

// incoming is the transfer that is being received.
type incoming struct {
	open      bool
	id        uint64
	total     uint64 // announced
	announced bool
	got       int
	reserved  int // of the node's storage
	buf       []byte
	of        *Encoded // in virtual time
}

// segment takes a segment (RFC 9174 §5.2.2, §5.2.3).
func (s *Session) segment(now vtime.Time, m *Message) {
	in := &s.in
	switch start := m.Flags&FlagStart != 0; {
	case start && in.open:
		s.fail(now, Message{Type: MsgReject, Reason: RejectUnexpected, Rejected: m.Type}, "began a transfer within another one")
		return
	case start:
		s.refusing = false
		if reason, no := s.unwanted(m); no {
			s.refuse(m, reason)
			return
		}
	case s.refusing && m.Transfer == s.refused:
		s.refuse(m, s.refusal) // it was on its way when the transfer was refused
		return
	case !in.open || m.Transfer != in.id:
		s.say(Message{Type: MsgReject, Reason: RejectUnexpected, Rejected: m.Type})
		return
	}
	total, announced := in.total, in.announced
	if !in.open {
		total, announced = m.Total, m.hasLength
	}
	size, need := uint64(in.got)+uint64(m.Data.N), uint64(0)
	if need = size; announced {
		need = total
	}
	if need > uint64(s.n.cfg.Limit) || size > need {
		s.refuse(m, RefuseNotAcceptable)
		return
	}
	if !s.n.reserve(int(need) - in.reserved) {
		s.parked, s.hasParked = *m, true // resume goes on here
		return
	}
	in.reserved = int(need)
	if !in.open {
		in.open, in.id, in.total, in.announced = true, m.Transfer, total, announced
	}
	if !in.take(m.Data) {
		s.refuse(m, RefuseNotAcceptable)
		return
	}
	if m.Flags&FlagEnd == 0 {
		s.ack(m)
		return
	}
	s.complete(now, m)
}

// unwanted says why a transfer that begins is refused.
func (s *Session) unwanted(m *Message) (reason uint8, no bool) {
	if s.state == ending {
		return RefuseTerminating, true
	}
	if m.BadExtension {
		return RefuseExtension, true
	}
	b, ok := m.Data.peek()
	if !ok {
		return 0, false // the first segment is too short to tell
	}
	return s.n.unwanted(s, b)
}

// peek returns a bundle with the fields of the primary block at least.
func (p *Part) peek() (*Bundle, bool) {
	if p.Of != nil {
		return p.Of.bundle, true
	}
	return peek(p.Bytes)
}

// take adds a segment's data to the transfer.
func (in *incoming) take(p Part) bool {
	if p.Of != nil {
		if p.Off != in.got || in.of != nil && in.of != p.Of {
			return false
		}
		in.of = p.Of
	} else {
		if in.buf == nil {
			in.buf = make([]byte, 0, min(in.reserved, firstBuffer))
		}
		in.buf = append(in.buf, p.Bytes...)
	}
	in.got += p.N
	return true
}

// firstBuffer is the most memory that is taken because a peer announces a
// transfer, in bytes: the rest grows with what comes.
const firstBuffer = 1 << 20

// bundle returns the received bundle.
func (in *incoming) bundle() (*Bundle, error) {
	if in.of != nil {
		b := *in.of.bundle
		return &b, nil
	}
	return Decode(in.buf)
}

// complete takes the bundle of a transfer whose last segment has come.
func (s *Session) complete(now vtime.Time, m *Message) {
	in := &s.in
	if in.announced && uint64(in.got) != in.total || in.of != nil && in.of.Len() != in.got {
		s.refuse(m, RefuseNotAcceptable)
		return
	}
	b, err := in.bundle()
	if err != nil {
		s.n.lastBad = err
		s.refuse(m, RefuseNotAcceptable)
		return
	}
	size := in.got
	s.n.release(in.reserved)
	in.reserved = 0
	switch v, reason := s.n.receive(now, s, b, size); v {
	case accepted:
		s.ack(m)
	case writing:
		s.saving = true
		s.parked = Message{Flags: m.Flags, Transfer: m.Transfer} // to be acknowledged
	case declined:
		s.refuse(m, reason)
	}
}

// ack acknowledges a segment; of the last one the bundle is stored.
func (s *Session) ack(m *Message) {
	s.say(Message{Type: XferAck, Flags: m.Flags, Transfer: m.Transfer, Acked: uint64(s.in.got)})
	if m.Flags&FlagEnd != 0 {
		s.in = incoming{}
	}
}

// refuse refuses the transfer of a segment; others of its segments may still
// come.
func (s *Session) refuse(m *Message, reason uint8) {
	s.n.release(s.in.reserved)
	s.in = incoming{}
	if !s.refusing {
		s.n.stats.RefusedIn++
	}
	s.say(Message{Type: XferRefuse, Reason: reason, Transfer: m.Transfer})
	s.refused, s.refusal, s.refusing = m.Transfer, reason, m.Flags&FlagEnd == 0
}

// resume goes on with a segment that waited for storage.
func (s *Session) resume(now vtime.Time) {
	if !s.hasParked || s.state == over {
		return
	}
	m := s.parked
	s.parked, s.hasParked = Message{}, false
	if s.segment(now, &m); !s.hasParked {
		s.heard = now // while nothing was read, nothing could be heard
		s.settle(now)
	}
}

// saved goes on after the bundle was written to disk, or was not.
func (s *Session) saved(now vtime.Time, ok bool) {
	m := s.parked
	s.parked, s.saving, s.heard = Message{}, false, now
	if s.state == over {
		return
	}
	if ok {
		s.ack(&m)
	} else {
		s.refuse(&m, RefuseNoResources)
	}
	s.settle(now)
}
