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

// TestTransfer: every segment is acknowledged, the last when the bundle is stored.
func TestTransfer(t *testing.T) {
	p := upstream(t, nil)
	p.send(4, numbered(0, 90_000))
	for i, want := range []uint64{40_000, 80_000, uint64(numbered(0, 90_000).Encode().Len())} {
		if m := p.hear("XFER_ACK"); m.Acked != want || m.Transfer != 4 || m.Flags&FlagStart != 0 != (i == 0) || m.Flags&FlagEnd != 0 != (i == 2) {
			t.Errorf("acknowledgement %d: %+v", i, m)
		}
	}
	if n, bytes, _ := p.n.Held(); n != 1 || bytes < 90_000 {
		t.Errorf("%d bundles, %v", n, bytes)
	}
	if !p.n.Dial() {
		t.Error("no connection to the next hop is wanted")
	}
	// It comes again: the transfer is refused with its first segment, and what was
	// on its way of it.
	p.send(5, numbered(0, 90_000))
	for range 3 {
		if m := p.hear("XFER_REFUSE"); m.Reason != RefuseCompleted || m.Transfer != 5 {
			t.Errorf("%+v", m)
		}
	}
	if s := p.n.Stats(); s.Duplicates != 1 || s.RefusedIn != 1 || s.Received != 1 {
		t.Errorf("%+v", s)
	}
	p.quiet()
}

// TestDiskBeforeAcknowledgement: nothing is read, acknowledged or sent before the
// bundle is on disk; a disk without room is a refusal.
func TestDiskBeforeAcknowledgement(t *testing.T) {
	for _, fails := range []bool{false, true} {
		p := upstream(t, func(c *Config) { c.Disk = true })
		p.send(0, numbered(3, 1000))
		p.quiet()
		op, ok := p.n.Op()
		if !ok || op.Kind != Save || op.Seq != 3 || p.s.Reading() {
			t.Fatalf("%+v, reading %v", op, p.s.Reading())
		}
		var err error
		if fails {
			err = errors.New("no space left")
		}
		p.n.Saved(0, 3, Zeros(1000), err)
		if !p.s.Reading() {
			t.Fatal("it reads no more")
		}
		if fails {
			if m := p.hear("XFER_REFUSE"); m.Reason != RefuseNoResources {
				t.Errorf("%+v", m)
			}
		} else {
			p.hear("XFER_ACK")
		}
		if n, _, _ := p.n.Held(); n != 1 != fails {
			t.Errorf("fails %v: %d bundles held", fails, n)
		}
	}
}

// TestFullStorageStopsReading until something was passed on.
func TestFullStorageStopsReading(t *testing.T) {
	p := upstream(t, func(c *Config) { c.Limit = 50 << 10 })
	p.send(0, numbered(0, 30_000))
	p.hear("XFER_ACK")
	p.send(1, numbered(1, 30_000))
	p.quiet()
	if p.s.Reading() {
		t.Fatal("it reads on")
	}
	p.now = 10 * minute
	p.n.Expire(p.now)
	if p.s.Closed() {
		t.Fatal("the session ended because of a silence that is our own")
	}
	p.hear("KEEPALIVE")
	// The next hop takes the first one.
	d := &pair{t: t, n: p.n, s: p.n.Connected(p.now), now: p.now}
	d.hear("contact header")
	d.say(Message{Type: Contact, Version: 4})
	d.hear("SESS_INIT")
	d.say(Message{Type: SessInit, SegmentMRU: 1 << 16, TransferMRU: 1 << 20, NodeID: "ipn:3.0"})
	m := d.hear("XFER_SEGMENT")
	d.say(Message{Type: XferAck, Flags: FlagStart | FlagEnd, Transfer: m.Transfer, Acked: uint64(m.Data.N)})
	if !p.s.Reading() {
		t.Fatal("it does not read on")
	}
	p.hear("XFER_ACK")
	if n, _, _ := p.n.Held(); n != 1 {
		t.Errorf("%d bundles held", n)
	}
}

// TestUnacceptable: each transfer is refused, for the reason of RFC 9174, and
// nothing is stored.
func TestUnacceptable(t *testing.T) {
	edit := func(f func(b *Bundle)) *Bundle {
		b := numbered(1, 100)
		f(b)
		return b
	}
	for name, b := range map[string]*Bundle{
		"of another source":        edit(func(b *Bundle) { b.Source = IPN(9, 1) }),
		"to another flow":          edit(func(b *Bundle) { b.Destination.Service++ }),
		"a fragment":               edit(func(b *Bundle) { b.Flags, b.TotalLength = FlagFragment, 1000 }),
		"an administrative record": edit(func(b *Bundle) { b.Flags |= FlagAdminRecord }),
		"with a block to delete it for": edit(func(b *Bundle) {
			b.Blocks = append(b.Blocks, Block{Type: 77, Number: 9, Flags: BlockFlagDeleteBundle, Data: []byte{0}})
		}),
	} {
		p := upstream(t, nil)
		p.send(0, b)
		if m := p.hear("XFER_REFUSE"); m.Reason != RefuseNotAcceptable {
			t.Errorf("%s: %+v", name, m)
		}
		if n, bytes, _ := p.n.Held(); n != 0 || bytes != 0 || p.n.store.charged != 0 {
			t.Errorf("%s: %d held, %v charged", name, n, p.n.store.charged)
		}
	}
	p := upstream(t, nil)
	segment := func(flags uint8, id, total uint64, data string) {
		p.say(Message{Type: XferSegment, Flags: flags, Transfer: id, Total: total, hasLength: total > 0, Data: Part{N: len(data), Bytes: []byte(data)}})
	}
	refused := func(name string, reason uint8) {
		t.Helper()
		if m := p.hear("XFER_REFUSE"); m.Reason != reason {
			t.Errorf("%s: %+v", name, m)
		}
	}
	segment(FlagStart, 0, 1<<40, "x")
	refused("above the transfer MRU", RefuseNotAcceptable)
	segment(FlagStart, 1, 4, "12345")
	refused("more than announced", RefuseNotAcceptable)
	segment(FlagStart, 2, 10, "123")
	p.hear("XFER_ACK")
	segment(FlagEnd, 2, 0, "45")
	refused("less than announced", RefuseNotAcceptable)
	segment(FlagStart|FlagEnd, 3, 0, "no bundle")
	refused("no bundle", RefuseNotAcceptable)
	if p.n.LastBad() == nil {
		t.Error("why is not known")
	}
	p.say(Message{Type: XferSegment, Flags: FlagStart, Transfer: 4, BadExtension: true})
	refused("an unknown extension", RefuseExtension)
	segment(0, 99, 0, "x")
	if m := p.hear("MSG_REJECT"); m.Reason != RejectUnexpected || m.Rejected != XferSegment {
		t.Errorf("%+v", m)
	}
	if p.n.store.charged != 0 {
		t.Errorf("%v are still set aside", p.n.store.charged)
	}
	segment(FlagStart, 5, 100, "x")
	p.hear("XFER_ACK")
	segment(FlagStart, 6, 100, "x")
	p.hear("MSG_REJECT")
	p.over("within another")
}

// TestUnknownBlocks: one that a node may not keep is left out, others stay.
func TestUnknownBlocks(t *testing.T) {
	p := upstream(t, nil)
	b := numbered(1, 10)
	b.Blocks = append(b.Blocks, Block{Type: 77, Number: 9, Flags: BlockFlagDiscard, Data: []byte{0}}, Block{Type: 78, Number: 10, Data: []byte{1}})
	p.send(0, b)
	p.hear("XFER_ACK")
	kept := p.n.store.items[0].bundle
	if kept.block(77) != nil || kept.block(78) == nil {
		t.Errorf("%+v", kept.Blocks)
	}
}

// TestAcknowledgementsThatCannotBe are rejected, and change nothing.
func TestAcknowledgementsThatCannotBe(t *testing.T) {
	p := downstream(t, Bytes(make([]byte, 5000)))
	m := p.hear("XFER_SEGMENT")
	total := m.Total
	for _, a := range []Message{
		{Transfer: 7, Acked: 10},
		{Transfer: m.Transfer, Acked: total, Flags: FlagEnd},
		{Transfer: m.Transfer, Acked: 1 << 60},
		{Transfer: m.Transfer, Acked: 2048, Flags: FlagEnd},
	} {
		a.Type = XferAck
		p.say(a)
		if r := p.hear("MSG_REJECT"); r.Rejected != XferAck {
			t.Errorf("%+v: %+v", a, r)
		}
	}
	p.hear("XFER_SEGMENT", "XFER_SEGMENT")
	p.quiet()
	p.say(Message{Type: XferAck, Transfer: m.Transfer, Acked: total}) // without END
	p.hear("MSG_REJECT")
	if n, _, _ := p.n.Held(); n != 1 {
		t.Fatal("the bundle is gone")
	}
	p.say(Message{Type: XferAck, Transfer: m.Transfer, Acked: total, Flags: FlagEnd})
	if n, _, _ := p.n.Held(); n != 0 || p.n.Stats().Forwarded != 1 {
		t.Errorf("%d held, %+v", n, p.n.Stats())
	}
}

// TestRefusals: what the next hop refuses is kept, sent later, or given up.
func TestRefusals(t *testing.T) {
	for reason, c := range map[uint8]struct{ held, forwarded, dropped int }{
		RefuseUnknown: {held: 1}, RefuseNoResources: {held: 1}, RefuseRetransmit: {held: 1}, RefuseTerminating: {held: 1},
		RefuseCompleted: {forwarded: 1}, RefuseNotAcceptable: {dropped: 1}, RefuseExtension: {dropped: 1},
	} {
		p := downstream(t, Bytes(make([]byte, 5000)))
		m := p.hear("XFER_SEGMENT")
		p.say(Message{Type: XferRefuse, Transfer: m.Transfer, Reason: reason})
		n, _, _ := p.n.Held()
		if s := p.n.Stats(); n != c.held || int(s.Forwarded) != c.forwarded || int(s.Dropped) != c.dropped {
			t.Errorf("reason %d: %d held, %+v", reason, n, s)
		}
		if c.held == 0 || reason == RefuseTerminating {
			continue
		}
		p.quiet()
		for pause := second; p.n.hold > 0 && p.now < minute; pause = min(2*pause, 30*second) {
			if p.n.hold != p.now+pause || p.n.Deadline() > p.n.hold {
				t.Errorf("reason %d: the next try at %v, now %v, want a pause of %v", reason, p.n.hold, p.now, pause)
			}
			p.now += pause
			p.say(Message{Type: Keepalive})
			p.n.Expire(p.now)
			m, ok := p.s.Poll(p.now)
			for ok && m.Type == Keepalive {
				m, ok = p.s.Poll(p.now)
			}
			if !ok || m.Flags != FlagStart {
				t.Fatalf("reason %d: %+v at %v", reason, m, p.now)
			}
			p.say(Message{Type: XferRefuse, Transfer: m.Transfer, Reason: reason})
		}
	}
}

// TestPipelining: as many transfers are under way as the configuration says.
func TestPipelining(t *testing.T) {
	p := downstream(t, Bytes(make([]byte, 10)), Bytes(make([]byte, 10)), Bytes(make([]byte, 10)))
	p.n.cfg.Transfers = 2
	a := p.hear("XFER_SEGMENT")
	b := p.hear("XFER_SEGMENT")
	p.quiet()
	// The later one may be acknowledged first.
	p.say(Message{Type: XferAck, Flags: FlagStart | FlagEnd, Transfer: b.Transfer, Acked: uint64(b.Data.N)})
	c := p.hear("XFER_SEGMENT")
	if a.Transfer == b.Transfer || b.Transfer == c.Transfer {
		t.Error("transfer ids are not unique")
	}
	p.n.cfg.Transfers, p.n.cfg.Unacked = 100, 300
	p.app.ready = append(p.app.ready, Bytes(make([]byte, 100)))
	p.quiet()
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

// TestLifetimeAndHops: a bundle is not sent after its life, nor beyond its hops.
func TestLifetimeAndHops(t *testing.T) {
	connect := func(p *pair) *pair {
		d := &pair{t: t, n: p.n, s: p.n.Connected(p.now), now: p.now}
		d.hear("contact header")
		d.say(Message{Type: Contact, Version: 4})
		d.hear("SESS_INIT")
		d.say(Message{Type: SessInit, SegmentMRU: 1 << 16, TransferMRU: 1 << 20, NodeID: "ipn:3.0"})
		return d
	}
	old := numbered(1, 10)
	old.Lifetime = 5000 // it was made at the run's begin
	aged := numbered(2, 10)
	aged.Created.Time, aged.Lifetime = 0, 5000 // and is 1.5 s old
	far := numbered(3, 10)
	far.SetHops(4, 4)
	fresh := numbered(4, 10)
	fresh.Created.Time = 0
	p := upstream(t, nil)
	for i, b := range []*Bundle{old, aged, far, fresh} {
		p.send(uint64(i), b)
		p.hear("XFER_ACK")
	}
	p.now = 5 * second
	d := connect(p)
	m := d.hear("XFER_SEGMENT")
	sent := m.Data.Of.Bundle()
	if sent.Created.Seq != 4 {
		t.Fatalf("bundle %d is sent", sent.Created.Seq)
	}
	if age, _ := sent.Age(); age != 1500+5000 {
		t.Errorf("its age is %d ms", age)
	}
	if _, count, _ := sent.Hops(); count != 2 {
		t.Errorf("%d hops", count)
	}
	if prev, _ := sent.PreviousNode(); prev != IPN(2, 0) {
		t.Errorf("the previous node is %v", prev)
	}
	if s := p.n.Stats(); s.Expired != 2 || s.HopLimited != 1 {
		t.Errorf("%+v", s)
	}
	// One that has expired already is acknowledged and not kept.
	p.send(9, old)
	p.now = minute
	gone := numbered(10, 10)
	gone.Lifetime = 1000
	p.send(10, gone)
	if n, _, _ := p.n.Held(); n != 1 || p.n.Stats().Expired != 3 {
		t.Errorf("%d held, %+v", n, p.n.Stats())
	}
}

// TestTooLarge: a bundle that the next hop cannot take is given up.
func TestTooLarge(t *testing.T) {
	p := downstream(t, Zeros(2<<20), Zeros(10))
	if m := p.hear("XFER_SEGMENT"); m.Data.Of.Bundle().Created.Seq != 1 || p.n.Stats().Dropped != 1 {
		t.Errorf("%+v, %+v", m, p.n.Stats())
	}
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

func TestRanges(t *testing.T) {
	var r ranges
	for _, v := range []uint64{5, 3, 4, 9, 0, ^uint64(0), 8, 1, 4} {
		r.add(v)
	}
	for v, want := range map[uint64]bool{0: true, 1: true, 2: false, 3: true, 4: true, 5: true, 6: false, 7: false, 8: true, 9: true, 10: false, ^uint64(0): true} {
		if r.has(v) != want {
			t.Errorf("%d: %v", v, r.has(v))
		}
	}
	if len(r.list) != 4 {
		t.Errorf("%v", r.list)
	}
	for v := uint64(100); len(r.list) < maxRanges; v += 2 {
		r.add(v)
	}
	if !r.full(1_000_000) || r.full(101) || r.full(10) || r.full(4) {
		t.Error("what has room in a full set is not known")
	}
}

func TestConfig(t *testing.T) {
	for name, f := range map[string]func(c *Config){
		"SegmentSize": func(c *Config) { c.SegmentSize = 1 }, "Limit": func(c *Config) { c.Limit = 1 }, "Transfers": func(c *Config) { c.Transfers = 0 },
		"whole seconds": func(c *Config) { c.Keepalive = 1 }, "null endpoint": func(c *Config) { c.Source = EID{} },
		"neighbour": func(c *Config) { c.Prev, c.Next = EID{}, EID{} }, "HopLimit": func(c *Config) { c.HopLimit = 256 }, "Lifetime": func(c *Config) { c.Lifetime = 0 },
	} {
		c := relayConfig()
		f(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := relayConfig()
	c.Next = EID{}
	if _, err := New(c, nil); err == nil {
		t.Error("a destination without application")
	}
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
