package bundle

import (
	"strings"
	"testing"
)

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
