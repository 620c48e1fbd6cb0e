package bundle

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Node is one node's part in one flow: it receives bundles from the previous
// hop, stores them, and passes each on to the next hop until that has
// acknowledged all of it.
type Node struct {
	cfg Config
	app App

	up, down     *Session // nil: none
	upstreamDone bool     // the previous hop has ended its session: it has nothing more

	store store
	seen  ranges
	seq   uint64 // source: of the next bundle

	ops  []Op
	save *saving

	hold  vtime.Time // no transfer begins before; 0: none is held up
	pause vtime.Duration

	stats   Stats
	lastBad error // why the last bundle was not acceptable
}

// saving is a bundle that is being written to disk.
type saving struct {
	seq uint64
	h   *held
	by  *Session
}

// OpKind says what is to be done.
type OpKind uint8

// What a driver is told to do with files.
const (
	Save   OpKind = iota // write the bundle, durably, and call Saved
	Delete               // remove its file
)

// Op is an order to the driver of a node that stores on disk. Seq names the
// bundle.
type Op struct {
	Kind    OpKind
	Seq     uint64
	Encoded *Encoded // what is to be written
}

// New returns a node without connections. app may be nil at a relay.
func New(cfg Config, app App) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if app == nil && (cfg.isSource() || cfg.isDestination()) {
		return nil, fmt.Errorf("bundle: node %v has no application at the end of the flow", cfg.Self)
	}
	return &Node{cfg: cfg, app: app, pause: cfg.RetryFirst}, nil
}

// Accept begins the session of a connection that the previous hop has made. An
// earlier one is over: that node has given it up.
func (n *Node) Accept(now vtime.Time) *Session {
	if n.up != nil {
		n.up.Lost(now, &PeerError{"has made another connection"})
	}
	n.up, n.upstreamDone = newSession(n, now, false), false
	return n.up
}

// Connected begins the session of a connection that this node has made to the
// next hop.
func (n *Node) Connected(now vtime.Time) *Session {
	if n.down != nil {
		n.down.Lost(now, &PeerError{"was connected again"})
	}
	n.down = newSession(n, now, true)
	return n.down
}

// Up and Down return the sessions with the previous and the next hop, or nil.
func (n *Node) Up() *Session   { return n.up }
func (n *Node) Down() *Session { return n.down }

// Dial reports whether a connection to the next hop is wanted and there is none:
// sessions are kept while there may be anything to send.
func (n *Node) Dial() bool {
	if n.cfg.isDestination() || n.down != nil {
		return false
	}
	return n.store.count > 0 || n.cfg.isSource() && !n.app.Finished() || n.up != nil && n.up.Peer() && !n.upstreamDone
}

// Done reports whether the source's application has finished and the next hop
// has acknowledged everything.
func (n *Node) Done() bool { return n.cfg.isSource() && n.app.Finished() && n.store.count == 0 }

// Held returns the bundles that the node stores, their octets, and the most
// octets that it has ever stored.
func (n *Node) Held() (bundles int, bytes, most vtime.Bytes) {
	return n.store.count, n.store.bytes, n.store.most
}

// Stats returns the node's counters.
func (n *Node) Stats() Stats { return n.stats }

// LastBad returns why a bundle was refused as damaged, nil if none was.
func (n *Node) LastBad() error { return n.lastBad }

// Deadline is when Expire must be called, and every session polled.
func (n *Node) Deadline() vtime.Time {
	at := vtime.Never
	for _, s := range [...]*Session{n.up, n.down} {
		if s != nil {
			at = vtime.Min(at, s.deadline())
		}
	}
	if n.hold > 0 && n.down != nil {
		at = vtime.Min(at, n.hold)
	}
	return at
}

// Expire acts on deadlines that have come.
func (n *Node) Expire(now vtime.Time) {
	for _, s := range [...]*Session{n.up, n.down} {
		if s != nil {
			s.expire(now)
		}
	}
	if n.hold > 0 && now >= n.hold {
		n.hold = 0
	}
	n.advance(now)
}

// established is called when a session stands.
func (n *Node) established(now vtime.Time, s *Session) {
	n.stats.Sessions++
	n.advance(now)
}

// advance ends the session with the next hop when nothing will ever be sent any
// more.
func (n *Node) advance(now vtime.Time) {
	if n.down == nil || n.store.count > 0 {
		return
	}
	if n.Done() || !n.cfg.isSource() && n.upstreamDone && n.up == nil {
		n.down.Terminate(now, TermUnknown)
	}
}

// detach takes back what a session that has ended did not complete.
func (n *Node) detach(now vtime.Time, s *Session) {
	for _, t := range s.out {
		t.h.resend = true
		n.store.back(t.h)
	}
	s.out, s.unsent = nil, 0
	n.release(s.in.reserved)
	s.in, s.hasParked = incoming{}, false
	if n.up == s {
		n.up = nil
	}
	if n.down == s {
		n.down = nil
	}
	n.advance(now)
}

// reserve sets storage aside; false when there is not enough.
func (n *Node) reserve(bytes int) bool {
	if n.cfg.isDestination() || bytes <= 0 {
		return true
	}
	if n.store.charged > 0 && n.store.charged+vtime.Bytes(bytes) > n.cfg.Limit {
		return false
	}
	n.store.charged += vtime.Bytes(bytes)
	return true
}

func (n *Node) release(bytes int) {
	if !n.cfg.isDestination() {
		n.store.charged -= vtime.Bytes(bytes)
	}
}

// unwanted says why a bundle is not taken from a peer, from its primary block.
func (n *Node) unwanted(s *Session, b *Bundle) (reason uint8, no bool) {
	switch {
	case s.active, b.Source != n.cfg.Source, b.Destination != n.cfg.Destination, b.Flags&(FlagFragment|FlagAdminRecord) != 0, n.seen.full(b.Created.Seq):
		return RefuseNotAcceptable, true
	case n.save != nil && n.save.seq == b.Created.Seq:
		return RefuseRetransmit, true // not known yet whether it will be stored
	case n.seen.has(b.Created.Seq):
		n.stats.Duplicates++
		return RefuseCompleted, true
	}
	return 0, false
}

// verdict is what becomes of a bundle that has come.
type verdict uint8

const (
	accepted verdict = iota
	writing          // Saved will tell
	declined
)

// receive takes a bundle that has come whole.
func (n *Node) receive(now vtime.Time, s *Session, b *Bundle, size int) (verdict, uint8) {
	if reason, no := n.unwanted(s, b); no {
		return declined, reason
	}
	if !b.strip() {
		return declined, RefuseNotAcceptable
	}
	h := n.newHeld(now, b, size)
	n.stats.Received++
	seq := b.Created.Seq
	switch {
	case now >= h.expires:
		n.stats.Expired++
	case n.cfg.isDestination():
		n.stats.Delivered++
		n.seen.add(seq)
		n.app.Deliver(now, b)
	case n.cfg.Disk:
		n.store.add(h)
		h.state, h.disk = inFlight, true // not to be sent before it is written
		n.save = &saving{seq: seq, h: h, by: s}
		n.ops = append(n.ops, Op{Kind: Save, Seq: seq, Encoded: b.Encode()})
		return writing, 0
	default:
		n.seen.add(seq)
		n.store.add(h)
	}
	return accepted, 0
}

// strip removes the blocks that a node that does not understand them discards;
// false when it has to delete the bundle (RFC 9171 §5.6).
func (b *Bundle) strip() bool {
	kept := make([]Block, 0, len(b.Blocks))
	for _, x := range b.Blocks {
		switch {
		case known(x.Type):
		case x.Flags&BlockFlagDeleteBundle != 0:
			return false
		case x.Flags&BlockFlagDiscard != 0:
			continue
		}
		kept = append(kept, x)
	}
	b.Blocks = kept
	return true
}

func (n *Node) newHeld(now vtime.Time, b *Bundle, size int) *held {
	h := &held{bundle: b, size: size, arrived: now, expires: vtime.Never}
	h.age, _ = b.Age()
	const forever = uint64(1) << 40 // milliseconds, 35 years
	left := min(b.Lifetime, forever)
	if born, at := b.Created.Time, n.dtnTime(now); born == 0 {
		left -= min(left, h.age)
	} else if born > at {
		left += min(born-at, forever)
	} else {
		left -= min(left, at-born)
	}
	if left < forever {
		h.expires = now.Add(vtime.Duration(left) * vtime.Millisecond)
	}
	return h
}

// dtnTime is a moment as DTN time, in milliseconds.
func (n *Node) dtnTime(now vtime.Time) uint64 {
	return n.cfg.Epoch + uint64(now)/uint64(vtime.Millisecond)
}

// Op returns what the driver has to do with files next.
func (n *Node) Op() (op Op, ok bool) {
	if len(n.ops) == 0 {
		return op, false
	}
	op, n.ops = n.ops[0], n.ops[1:]
	return op, true
}

// Saved answers an Op of kind Save: the bundle is on disk, and payload, if not
// nil, reads its payload from there, or it is not, because of err.
func (n *Node) Saved(now vtime.Time, seq uint64, payload Content, err error) {
	if n.save == nil || n.save.seq != seq {
		return
	}
	w := n.save
	n.save = nil
	if err != nil {
		w.h.disk = false
		n.store.remove(w.h)
	} else {
		n.seen.add(seq)
		if payload != nil {
			w.h.bundle = w.h.bundle.Detached()
			w.h.bundle.Payload = payload
		}
		n.store.back(w.h)
	}
	w.by.saved(now, err == nil)
	n.resume(now)
}

// Restore puts a bundle that was found on disk into the store, oldest first,
// before there are any connections.
func (n *Node) Restore(now vtime.Time, b *Bundle, size int) {
	if n.seen.has(b.Created.Seq) {
		return
	}
	n.stats.Restored++
	n.seen.add(b.Created.Seq)
	h := n.newHeld(now, b, size)
	h.disk, h.resend = true, true
	n.store.add(h)
}
