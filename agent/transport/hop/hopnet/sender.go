package hopnet

import (
	"fmt"
	"net"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// sender is a flow that begins here; hop.Source. The Node's lock protects it.
type sender struct {
	n    *Node
	key  hop.FlowKey
	kind kind
	peer Addr

	first   [preambleLen]byte
	begun   bool     // the preamble has been taken
	chunks  [][]byte // not yet taken by the state machine
	off     int      // of the first chunk
	size    int      // bytes in chunks
	ending  bool     // nothing will be added: the last block may go
	dry     bool     // the state machine waits for Wake
	foreign bool     // the chunks are the caller's

	acked     bool // everything is acknowledged by the destination's node
	confirmed bool // block: the program there has taken it
	gone      bool // it is not in Node.senders any more
	err       error
	changed   waiting
	epoch     uint64     // of the destination's life that the flow belongs to; 0: any
	last      vtime.Time // when it was opened, or an acknowledgement came
	orphan    bool       // nobody looks after it any more: notices, closed streams
	bare      bool       // a preamble and nothing else
}

// What flows without an owner may take.
const (
	mostNotices = 1024
	noticeLife  = 10 * vtime.Minute
)

// open begins a flow with its preamble. The lock is held; it is not called from
// within the state machine.
func (n *Node) open(now vtime.Time, to Addr, p preamble, fill func(*sender)) (*sender, error) {
	if n.closed {
		return nil, net.ErrClosed
	}
	id := n.flowTo(to.Node)
	p.epoch = n.epoch
	s := &sender{n: n, kind: p.kind, peer: to, last: now,
		key: hop.FlowKey{Src: hop.NodeID(n.cfg.ID), Dst: hop.NodeID(to.Node), Flow: id}}
	p.put(s.first[:])
	if fill != nil {
		fill(s)
	}
	n.senders[s.key] = s // before: the state machine asks for the first block at once
	if err := n.hop.OpenFlow(now, id, s.key.Dst, s, hop.FlowOptions{}); err != nil {
		delete(n.senders, s.key)
		return nil, err
	}
	return s, nil
}

// reachable reports why a node cannot be sent to. A route may come yet while a
// configured peer has not answered.
func (n *Node) reachable(dst NodeID) error {
	switch {
	case n.closed:
		return net.ErrClosed
	case !dst.Valid() || dst == n.cfg.ID:
		return fmt.Errorf("%v is not another node", dst)
	case len(n.senders) >= n.cfg.Streams:
		return ErrTooMany
	}
	if _, ok := n.nextHop(dst); ok {
		return nil
	}
	for _, p := range n.peers.list {
		if p.fixed && p.id == 0 {
			return nil
		}
	}
	return ErrNoRoute
}

// Next fills a block with what there is; hop.Source.
func (s *sender) Next(_ vtime.Time, buf []byte) (n int, last bool) {
	if !s.begun {
		s.begun = true
		n = copy(buf, s.first[:])
	}
	for n < len(buf) && len(s.chunks) > 0 {
		c := s.chunks[0]
		k := copy(buf[n:], c[s.off:])
		n += k
		s.size -= k
		if s.off += k; s.off < len(c) {
			break
		}
		s.drop()
	}
	if s.ending && s.size == 0 && n < len(buf) {
		buf[n] = endMark
		n, last = n+1, true
	}
	s.dry = n == 0
	if n > 0 {
		s.changed.wake()
	}
	return n, last
}

// drop takes the first chunk out.
func (s *sender) drop() {
	if !s.foreign {
		release(s.chunks[0])
	}
	s.chunks[0] = nil
	s.chunks, s.off = s.chunks[1:], 0
	if len(s.chunks) == 0 {
		s.chunks = nil
	}
}

// stir has the state machine ask again after it found nothing.
func (s *sender) stir(now vtime.Time) {
	if s.dry && !s.gone {
		s.dry = false
		s.n.hop.Wake(now, s.key.Flow, s.key.Dst)
		s.n.settle(now)
	}
}

// finish says that nothing more will be written.
func (s *sender) finish(now vtime.Time) {
	if !s.ending {
		s.ending = true
		s.stir(now)
	}
}

// abort ends the flow for a reason, and forgets it.
func (s *sender) abort(reason error) {
	s.fail(reason)
	s.retire()
}

// fail tells whoever waits.
func (s *sender) fail(reason error) {
	if s.err == nil {
		s.err = reason
	}
	for len(s.chunks) > 0 {
		s.drop()
	}
	s.size = 0
	s.changed.wake()
}

// retire takes the flow out of the tables, as soon as the state machine may be
// called.
func (s *sender) retire() {
	if s.gone {
		return
	}
	s.gone = true
	n := s.n
	n.later = append(n.later, func(now vtime.Time) {
		n.hop.CloseFlow(now, s.key, true)
		delete(n.senders, s.key)
		if s.bare {
			n.bare--
		}
		if len(n.senders) == 0 && n.idle != nil {
			close(n.idle)
			n.idle = nil
		}
	})
}

// notify tells a node about a flow: reliably, and nobody waits for it.
func (n *Node) notify(to Addr, p preamble) {
	p.kind = kindNotice
	n.unattended(to, p)
}

// unattended sends a flow that is nothing but its preamble.
func (n *Node) unattended(to Addr, p preamble) {
	p.service = to.Service
	n.later = append(n.later, func(now vtime.Time) {
		if n.bare >= mostNotices {
			n.counts.NoticesDropped++
			return
		}
		if s, err := n.open(now, to, p, func(s *sender) { s.ending = true }); err == nil {
			s.bare, s.orphan = true, true
			n.bare++
		} else {
			n.counts.NoticesDropped++
		}
	})
}

// sweepSenders gives up flows without an owner that nobody acknowledges.
func (n *Node) sweepSenders(now vtime.Time) {
	for _, s := range n.senders {
		limit := vtime.FromStd(n.cfg.Custody)
		if s.bare {
			limit = noticeLife
		}
		if f, ok := n.hop.FlowStats(s.key); ok {
			s.last = vtime.Max(s.last, f.Used)
		}
		if s.orphan && now.Sub(s.last) > limit {
			n.log("what is left of flow %d to %v is given up: no acknowledgement for %v", s.key.Flow, s.peer, limit.Std())
			s.abort(ErrReset)
		}
	}
	n.afterwards(now)
}
