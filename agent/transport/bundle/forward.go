package bundle

import "github.com/hopbed/hopbed/netem/vtime"

// nextBundle returns the bundle that is sent next, as it will be sent, if the
// session has room for it.
func (n *Node) nextBundle(now vtime.Time, s *Session) (*held, *Encoded) {
	if n.hold > now {
		return nil, nil
	}
	for {
		h := n.store.waiter()
		if h == nil {
			if h = n.create(now); h == nil {
				return nil, nil
			}
		}
		if now >= h.expires {
			n.stats.Expired++
			n.delete(now, h)
			continue
		}
		if !s.room(h.size) {
			return nil, nil
		}
		enc, ok := n.prepare(now, h)
		if !ok {
			n.stats.HopLimited++
			n.delete(now, h)
			continue
		}
		if uint64(enc.Len()) > s.peerTransfer {
			n.stats.Dropped++ // it can never be sent: this node does not fragment
			n.delete(now, h)
			continue
		}
		return h, enc
	}
}

// create makes the source's next bundle, nil when the application has none.
func (n *Node) create(now vtime.Time) *held {
	if !n.cfg.isSource() {
		return nil
	}
	payload := n.app.Next(now)
	if payload == nil {
		return nil
	}
	c := &n.cfg
	b := &Bundle{Flags: FlagNoFragment, CRC: CRC32C, Destination: c.Destination, Source: c.Source, Created: Timestamp{Seq: n.seq},
		Lifetime: uint64(c.Lifetime / vtime.Millisecond), Payload: payload, PayloadCRC: CRC32C}
	n.seq++
	if c.NoClock {
		b.SetAge(0)
	} else {
		b.Created.Time = max(1, n.dtnTime(now)) // 0 would say that there is no clock
	}
	b.SetHops(uint64(c.HopLimit), 0)
	h := n.newHeld(now, b, b.Encode().Len())
	n.stats.Created++
	n.store.add(h)
	return h
}

// prepare returns a stored bundle as this node sends it; false when its hop limit
// forbids that (RFC 9171 §4.4.3).
func (n *Node) prepare(now vtime.Time, h *held) (*Encoded, bool) {
	b := *h.bundle
	if limit, count, ok := b.Hops(); ok {
		if count >= limit {
			return nil, false
		}
		b.SetHops(limit, count+1)
	}
	b.SetPreviousNode(n.cfg.Self)
	if _, ok := b.Age(); ok {
		b.SetAge(h.age + uint64(now.Sub(h.arrived)/vtime.Millisecond))
	}
	return b.Encode(), true
}

// forwarded deletes a bundle that the next hop has acknowledged.
func (n *Node) forwarded(now vtime.Time, h *held) {
	n.stats.Forwarded++
	n.pause = n.cfg.RetryFirst
	n.delete(now, h)
}

// refused acts on a refusal of the next hop.
func (n *Node) refused(now vtime.Time, h *held, reason uint8) {
	n.stats.RefusedOut++
	switch reason {
	case RefuseCompleted:
		n.forwarded(now, h)
	case RefuseNotAcceptable, RefuseExtension:
		n.stats.Dropped++
		n.delete(now, h)
	case RefuseTerminating:
		n.store.back(h) // another session follows
	default:
		n.store.back(h)
		n.hold = now.Add(n.pause)
		n.pause = min(2*n.pause, n.cfg.RetryMost)
	}
}

// delete removes a bundle from the store, and goes on with what waited for the
// room.
func (n *Node) delete(now vtime.Time, h *held) {
	if h.disk {
		n.ops = append(n.ops, Op{Kind: Delete, Seq: h.bundle.Created.Seq})
	}
	n.store.remove(h)
	n.resume(now)
	n.advance(now)
}

// resume lets the previous hop go on where it waited for storage.
func (n *Node) resume(now vtime.Time) {
	if n.up != nil {
		n.up.resume(now)
	}
}
