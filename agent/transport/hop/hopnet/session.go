package hopnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// source is what a node remembers of another one that has sent to it.
type source struct {
	epoch uint64
	used  vtime.Time

	// The flows of this life that have begun here: bit i of bits is flow top − i.
	// Numbers grow by one with each flow of the source.
	any  bool
	top  hop.FlowID
	bits [seenFlows / 64]uint64
}

const (
	seenFlows   = 4096
	mostSources = 4096
)

// sourceOf returns the record of a source, made if need be.
func (n *Node) sourceOf(now vtime.Time, id NodeID) *source {
	s := n.sources[id]
	if s == nil {
		if len(n.sources) >= mostSources {
			n.forgetSource()
		}
		s = &source{}
		n.sources[id] = s
	}
	s.used = now
	return s
}

// forgetSource forgets the one that was heard longest ago.
func (n *Node) forgetSource() {
	var old NodeID
	at := vtime.Never
	for id, s := range n.sources {
		if s.used < at {
			old, at = id, s.used
		}
	}
	delete(n.sources, old)
}

// seen notes a flow and reports whether it was noted before, or is so old that
// nobody knows.
func (s *source) seen(id hop.FlowID) bool {
	d := int32(id - s.top)
	switch {
	case !s.any:
		s.any, s.top, s.bits = true, id, [seenFlows / 64]uint64{1}
		return false
	case d > 0:
		s.shift(int(d))
		s.top = id
		s.bits[0] |= 1
		return false
	case -d >= seenFlows:
		return true
	}
	k := -d
	if s.bits[k/64]>>(k%64)&1 != 0 {
		return true
	}
	s.bits[k/64] |= 1 << (k % 64)
	return false
}

// shift moves every bit d places up.
func (s *source) shift(d int) {
	words, rest := d/64, uint(d%64)
	for i := len(s.bits) - 1; i >= 0; i-- {
		var v uint64
		if j := i - words; j >= 0 {
			v = s.bits[j] << rest
			if rest > 0 && j > 0 {
				v |= s.bits[j-1] >> (64 - rest)
			}
		}
		s.bits[i] = v
	}
}

// lifeOf notes the epoch of a node's present life: what belongs to an earlier
// one fails.
func (n *Node) lifeOf(id NodeID, epoch uint64) {
	s := n.sourceOf(n.now(), id)
	if epoch <= s.epoch {
		return
	}
	*s = source{epoch: epoch, used: s.used}
	for _, x := range n.senders {
		if x.peer.Node != id {
			continue
		}
		// What has no epoch yet may still arrive; a block that was acknowledged
		// died with the node if the program there did not take it.
		if x.epoch != 0 && x.epoch < epoch || x.kind == kindBlock && x.acked && !x.confirmed {
			x.abort(ErrRestarted)
		}
	}
	for _, r := range n.receivers {
		if r.peer.Node == id && r.kind != 0 && r.epoch < epoch {
			r.fail(ErrRestarted)
			if !r.ended {
				r.dropped = true // what has come stays for its reader
			}
		}
	}
}

// begin takes the first block of a flow and returns what follows the preamble.
// It is called from within the state machine.
func (n *Node) begin(now vtime.Time, r *receiver, d hop.Delivery) []byte {
	src := n.sourceOf(now, r.peer.Node)
	var p preamble
	if d.Block != 0 {
		// Its beginning came to an earlier life of this node, or was forgotten.
		r.dropped = true
		r.stopped = true
		n.notify(r.peer, preamble{flow: r.key.Flow, code: codeUnknown})
		return nil
	}
	if err := p.parse(d.Data); err != nil {
		n.counts.BadFlows++
		n.log("flow %d from %v: %v", r.key.Flow, r.peer.Node, err)
		r.dropped, r.stopped = true, true
		return nil
	}
	if p.epoch < src.epoch {
		r.dropped, r.stopped = true, true // of an earlier life, held by a relay until now
		return nil
	}
	n.lifeOf(r.peer.Node, p.epoch)
	if src.seen(r.key.Flow) {
		r.dropped, r.stopped = true, true // a repetition, or of long ago
		n.notify(r.peer, preamble{flow: r.key.Flow, code: codeUnknown})
		return nil
	}
	r.kind, r.epoch, r.peer.Service = p.kind, p.epoch, p.service
	switch p.kind {
	case kindStream:
		n.beginStream(now, r)
	case kindAnswer:
		n.beginAnswer(r, &p)
	case kindNotice:
		r.stopped = true
		r.dropped = true
		n.onNotice(now, r.peer.Node, &p)
	}
	return d.Data[preambleLen:]
}

// beginStream gives a new stream to its listener, and answers it.
func (n *Node) beginStream(now vtime.Time, r *receiver) {
	l := n.listeners[r.peer.Service]
	answer := preamble{kind: kindAnswer, service: r.peer.Service, flow: r.key.Flow}
	switch {
	case l == nil:
		answer.code = codeNoService
	case len(l.conns) >= mostWaiting:
		answer.code = codeBusy
	}
	if answer.code != codeOK {
		r.dropped, r.stopped = true, true
		n.unattended(r.peer, answer)
		return
	}
	c := &Conn{n: n, local: Addr{n.cfg.ID, r.peer.Service}, remote: Addr{Node: r.peer.Node}, r: r, answered: true}
	l.conns = append(l.conns, c)
	l.changed.wake()
	n.later = append(n.later, func(now vtime.Time) {
		var err error
		if c.s, err = n.open(now, r.peer, answer, func(s *sender) { s.epoch = r.epoch }); err != nil {
			c.s = &sender{n: n, gone: true, ending: true, err: err}
			r.fail(err)
		}
	})
}

// beginAnswer gives the answer to whoever dialled.
func (n *Node) beginAnswer(r *receiver, p *preamble) {
	c := n.dialling[p.flow]
	if c == nil || c.remote.Node != r.peer.Node {
		r.dropped = true
		if p.code == codeOK {
			r.stop() // whoever dialled has given up
		}
		return
	}
	delete(n.dialling, p.flow)
	if p.code != codeOK {
		r.dropped, r.stopped = true, true
		c.refuse(p.code.err())
		return
	}
	c.r, c.answered, c.s.epoch = r, true, r.epoch
	c.changed.wake()
}

// err is the reason that a code stands for.
func (c code) err() error {
	switch c {
	case codeNoService:
		return fmt.Errorf("%w: nobody listens to the service", ErrRefused)
	case codeBusy:
		return fmt.Errorf("%w: the listener has enough that it has not taken", ErrRefused)
	case codeStop:
		return fmt.Errorf("%w: it reads no more", ErrReset)
	case codeUnknown:
		return ErrRestarted
	}
	return ErrReset
}

// onNotice takes what another node says about a flow.
func (n *Node) onNotice(now vtime.Time, from NodeID, p *preamble) {
	if p.mine { // the other end's flow: it has given it up
		if r := n.receivers[hop.FlowKey{Src: hop.NodeID(from), Dst: hop.NodeID(n.cfg.ID), Flow: p.flow}]; r != nil && !r.ended {
			r.fail(ErrReset)
			r.dropped, r.stopped = true, true
		}
		return
	}
	s := n.senders[hop.FlowKey{Src: hop.NodeID(n.cfg.ID), Dst: hop.NodeID(from), Flow: p.flow}]
	switch {
	case s == nil || s.gone:
	case s.kind == kindBlock && p.code == codeOK:
		s.confirmed = true
		s.changed.wake()
		s.retire()
	case p.code == codeOK: // it says nothing about streams
	default:
		if c := n.dialling[s.key.Flow]; c != nil {
			delete(n.dialling, s.key.Flow)
			c.refuse(p.code.err())
			return
		}
		s.abort(p.code.err())
	}
}
