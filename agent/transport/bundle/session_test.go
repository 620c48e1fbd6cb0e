package bundle

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	second = vtime.Time(vtime.Second)
	minute = 60 * second
)

// pair is a relay and a peer that a test plays: the node before it, or after it.
type pair struct {
	t   *testing.T
	n   *Node
	s   *Session
	now vtime.Time
	app *listApp
}

// listApp hands out payloads and keeps what is delivered.
type listApp struct {
	ready []Content
	open  bool // more may come
	got   []*Bundle
}

func (a *listApp) Next(vtime.Time) Content {
	if len(a.ready) == 0 {
		return nil
	}
	c := a.ready[0]
	a.ready = a.ready[1:]
	return c
}
func (a *listApp) Finished() bool                  { return !a.open && len(a.ready) == 0 }
func (a *listApp) Deliver(_ vtime.Time, b *Bundle) { a.got = append(a.got, b) }

// relayConfig is node 2's of the path 1, 2, 3.
func relayConfig() Config {
	c := DefaultConfig()
	c.Self, c.Prev, c.Next = IPN(2, 0), IPN(1, 0), IPN(3, 0)
	c.Source, c.Destination = IPN(1, 20000), IPN(3, 20000)
	c.Epoch, c.Limit = 821210400000, 100<<10
	return c
}

// upstream plays the node before a relay, up to the established session.
func upstream(t *testing.T, edit func(*Config)) *pair {
	t.Helper()
	c := relayConfig()
	if edit != nil {
		edit(&c)
	}
	p := &pair{t: t, app: &listApp{}}
	var err error
	if p.n, err = New(c, p.app); err != nil {
		t.Fatal(err)
	}
	p.s = p.n.Accept(0)
	p.say(Message{Type: Contact, Version: 4})
	p.say(Message{Type: SessInit, Keepalive: 30, SegmentMRU: 1 << 16, TransferMRU: 1 << 30, NodeID: "ipn:1.0"})
	p.hear("contact header", "SESS_INIT")
	return p
}

// downstream plays the node after the source, which has the given payloads.
func downstream(t *testing.T, payloads ...Content) *pair {
	t.Helper()
	c := relayConfig()
	c.Self, c.Prev, c.Next, c.SegmentSize = IPN(1, 0), EID{}, IPN(2, 0), 2048
	p := &pair{t: t, app: &listApp{ready: payloads, open: true}}
	var err error
	if p.n, err = New(c, p.app); err != nil {
		t.Fatal(err)
	}
	p.s = p.n.Connected(0)
	p.hear("contact header")
	p.say(Message{Type: Contact, Version: 4})
	p.hear("SESS_INIT")
	p.say(Message{Type: SessInit, Keepalive: 30, SegmentMRU: 1 << 16, TransferMRU: 1 << 20, NodeID: "ipn:2.0"})
	return p
}

func (p *pair) say(m Message) { p.s.Input(p.now, &m) }

// hear checks what the session says next, and returns the last message.
func (p *pair) hear(want ...string) (m Message) {
	p.t.Helper()
	for i, w := range want {
		var ok bool
		if m, ok = p.s.Poll(p.now); !ok || m.Type.String() != w {
			p.t.Fatalf("message %d is %v (%v), want %s", i, m.Type, ok, w)
		}
	}
	return m
}

// quiet checks that there is nothing to say.
func (p *pair) quiet() {
	p.t.Helper()
	if m, ok := p.s.Poll(p.now); ok {
		p.t.Fatalf("it says %+v", m)
	}
}

// over checks that the session is over because of something.
func (p *pair) over(why string) {
	p.t.Helper()
	yes, _, err := p.s.Over()
	if !yes || why != "" && (err == nil || !strings.Contains(err.Error(), why)) || why == "" && err != nil {
		p.t.Fatalf("over %v: %v, want %q", yes, err, why)
	}
}

// numbered is a bundle of the flow with a sequence number and so much payload.
func numbered(seq uint64, size int) *Bundle {
	b := sample(make([]byte, size))
	b.Created.Seq = seq
	return b
}

// send transfers a bundle in segments of 40,000 octets.
func (p *pair) send(id uint64, b *Bundle) {
	e := b.Encode()
	for off := 0; off < e.Len(); off += 40_000 {
		m := Message{Type: XferSegment, Transfer: id, Data: Part{Off: off, N: min(40_000, e.Len()-off)}}
		m.Data.Bytes, _ = e.Append(nil, off, m.Data.N)
		if off == 0 {
			m.Flags, m.Total, m.hasLength = FlagStart, uint64(e.Len()), true
		}
		if off+m.Data.N == e.Len() {
			m.Flags |= FlagEnd
		}
		p.say(m)
	}
}

func TestSessionSetUpRefuses(t *testing.T) {
	contact := Message{Type: Contact, Version: 4}
	init := Message{Type: SessInit, Keepalive: 30, SegmentMRU: 1 << 16, TransferMRU: 1 << 20, NodeID: "ipn:1.0"}
	edit := func(f func(m *Message)) Message {
		m := init
		f(&m)
		return m
	}
	for name, c := range map[string]struct {
		said  []Message
		heard []string
		why   string
	}{
		"another version":  {[]Message{{Type: Contact, Version: 3}}, []string{"contact header", "SESS_TERM"}, "version 3"},
		"another node":     {[]Message{contact, edit(func(m *Message) { m.NodeID = "ipn:9.0" })}, []string{"contact header", "SESS_INIT", "SESS_TERM"}, "is the node \"ipn:9.0\""},
		"no node":          {[]Message{contact, edit(func(m *Message) { m.NodeID = "" })}, []string{"contact header", "SESS_INIT", "SESS_TERM"}, "want ipn:1.0"},
		"tiny segments":    {[]Message{contact, edit(func(m *Message) { m.SegmentMRU = 1 })}, []string{"contact header", "SESS_INIT", "SESS_TERM"}, "segments of 1 bytes"},
		"an extension":     {[]Message{contact, edit(func(m *Message) { m.BadExtension = true })}, []string{"contact header", "SESS_INIT", "SESS_TERM"}, "extension"},
		"data before init": {[]Message{contact, {Type: XferSegment, Flags: FlagStart | FlagEnd}}, []string{"contact header", "MSG_REJECT"}, "before SESS_INIT"},
		"no header":        {[]Message{init}, nil, "no contact header"},
		"a refusal":        {[]Message{contact, {Type: SessTerm, Reason: TermBusy}}, []string{"contact header"}, "reason 3"},
	} {
		n, err := New(relayConfig(), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &pair{t: t, n: n, s: n.Accept(0)}
		p.quiet() // the node that was connected waits for the other's header
		for _, m := range c.said {
			p.say(m)
		}
		p.hear(c.heard...)
		p.over(c.why)
		if n.Up() != nil {
			t.Errorf("%s: the session goes on", name)
		}
	}
}

func TestSessionSetUpTakesTooLong(t *testing.T) {
	n, _ := New(relayConfig(), nil)
	p := &pair{t: t, n: n, s: n.Accept(0)}
	if at := n.Deadline(); at != 30*second {
		t.Errorf("the deadline is %v", at)
	}
	n.Expire(30 * second)
	p.over("did not complete the set-up")
}

// TestKeepalive: the smaller interval of both counts, and twice of it is the most
// silence.
func TestKeepalive(t *testing.T) {
	p := upstream(t, nil) // 10 s here, 30 s there
	p.now = 10 * second
	if at := p.n.Deadline(); at != p.now {
		t.Errorf("the first KEEPALIVE is due at %v", at)
	}
	p.n.Expire(p.now)
	p.hear("KEEPALIVE")
	p.say(Message{Type: Keepalive})
	for p.now = 20 * second; p.now < 30*second; p.now += second {
		p.n.Expire(p.now)
	}
	p.hear("KEEPALIVE")
	p.s.Heard(29 * second) // a part of a long segment
	p.now = 48 * second
	p.n.Expire(p.now)
	if p.s.Closed() {
		t.Fatal("the session is over although something was heard")
	}
	p.now = 49 * second
	p.n.Expire(p.now)
	yes, abort, err := p.s.Over()
	if !yes || !abort || !errors.Is(err, ErrIdle) {
		t.Errorf("over %v, abort %v, %v", yes, abort, err)
	}
	if m := p.hear("KEEPALIVE", "SESS_TERM"); m.Reason != TermIdle {
		t.Errorf("%+v", m)
	}
}

func TestNoKeepalive(t *testing.T) {
	p := upstream(t, func(c *Config) { c.Keepalive = 0 })
	if at := p.n.Deadline(); at != vtime.Never {
		t.Errorf("a deadline at %v", at)
	}
}

// TestTermination: transfers under way are completed, no new ones begin, and a
// source that has everything acknowledged ends its session.
func TestTermination(t *testing.T) {
	p := downstream(t, Bytes(make([]byte, 5000)), Bytes(make([]byte, 10)))
	m := p.hear("XFER_SEGMENT")
	p.say(Message{Type: SessTerm, Reason: TermResources})
	if r := p.hear("SESS_TERM"); r.Flags != flagReply || r.Reason != TermResources {
		t.Errorf("%+v", r)
	}
	p.hear("XFER_SEGMENT", "XFER_SEGMENT")
	p.quiet()
	p.say(Message{Type: XferAck, Flags: FlagEnd, Transfer: m.Transfer, Acked: m.Total})
	p.over("")
	if !p.n.Dial() {
		t.Error("no new connection is wanted although there is a bundle left")
	}

	p = downstream(t, Bytes(make([]byte, 10)))
	p.app.open = false
	m = p.hear("XFER_SEGMENT")
	p.say(Message{Type: XferAck, Flags: FlagStart | FlagEnd, Transfer: m.Transfer, Acked: uint64(m.Data.N)})
	if r := p.hear("SESS_TERM"); r.Flags != 0 || !p.n.Done() {
		t.Errorf("%+v", r)
	}
	p.n.Expire(30 * second)
	p.over("did not complete the termination")

	u := upstream(t, nil)
	u.say(Message{Type: SessTerm})
	u.hear("SESS_TERM")
	u.over("")
}

// TestTalker: a peer that says a lot and hears nothing is not listened to.
func TestTalker(t *testing.T) {
	p := upstream(t, nil)
	for k := 0; p.s.Reading(); k++ {
		p.say(Message{Type: SessInit})
		if k > maxControl {
			t.Fatal("it is listened to for ever")
		}
	}
	if len(p.s.control) > maxControl {
		t.Errorf("%d answers wait", len(p.s.control))
	}
}

func TestBrokenStreams(t *testing.T) {
	p := upstream(t, nil)
	p.s.Broken(0, &TypeError{Type: 99})
	if m := p.hear("MSG_REJECT"); m.Reason != RejectType || m.Rejected != 99 {
		t.Errorf("%+v", m)
	}
	p.over("unknown type")
	p = upstream(t, nil)
	p.s.Broken(0, errors.New("too long"))
	p.quiet()
	p.over("too long")
	p = upstream(t, nil)
	p.say(Message{Type: MsgReject, Reason: RejectUnexpected, Rejected: XferAck})
	p.over("rejects XFER_ACK")
}

// FuzzSession: whatever a peer says, a relay neither panics nor stores more than its
// limit, and in the end nothing stays set aside.
func FuzzSession(f *testing.F) {
	var hello, stream []byte
	for _, m := range []Message{{Type: Contact, Version: 4}, {Type: SessInit, Keepalive: 30, SegmentMRU: 1 << 16, TransferMRU: 1 << 20, NodeID: "ipn:1.0"}} {
		hello, _ = m.Append(hello)
	}
	for seq := range uint64(3) {
		e := numbered(seq, 300).Encode()
		for off := 0; off < e.Len(); off += 200 {
			m := Message{Type: XferSegment, Transfer: seq, Data: Part{Of: e, Off: off, N: min(200, e.Len()-off)}}
			if off == 0 {
				m.Flags, m.Total = FlagStart, uint64(e.Len())
			}
			if off+200 >= e.Len() {
				m.Flags |= FlagEnd
			}
			stream, _ = m.Append(stream)
		}
	}
	f.Add(stream, false)
	f.Add(stream[:500], true)
	for _, m := range messages()[1:] {
		b, _ := m.Append(nil)
		f.Add(append(b, stream...), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, disk bool) {
		c := relayConfig()
		c.SegmentSize, c.Limit, c.Disk = 4096, 16<<10, disk
		n, err := New(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, p, now := n.Accept(0), NewParser(c.SegmentSize), vtime.Time(0)
		for _, b := range [][]byte{hello, data} {
			for len(b) > 0 && s.Reading() {
				k := copy(p.Space(), b)
				p.Filled(k)
				b = b[k:]
				for s.Reading() {
					m, ok, err := p.Next()
					if err != nil {
						s.Broken(now, err)
					}
					if !ok || err != nil {
						break
					}
					s.Input(now, &m)
					for op, ok := n.Op(); ok; op, ok = n.Op() {
						if op.Kind == Save {
							n.Saved(now, op.Seq, nil, nil)
						}
					}
					for _, ok := s.Poll(now); ok; _, ok = s.Poll(now) {
					}
					if n.store.charged > c.Limit+perBundle {
						t.Fatalf("%v are charged of %v", n.store.charged, c.Limit)
					}
				}
			}
		}
		s.Lost(now, errors.New("the end"))
		if held, bytes, _ := n.Held(); n.store.charged != bytes+vtime.Bytes(held)*perBundle {
			t.Fatalf("%v are charged for %d bundles of %v", n.store.charged, held, bytes)
		}
	})
}
