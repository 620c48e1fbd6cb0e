package bundle

import (
	"errors"
	"testing"
)

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
