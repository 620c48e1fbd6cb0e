package hopnet

import (
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// receiver is a flow that ends here. The Node's lock protects it.
type receiver struct {
	n    *Node
	key  hop.FlowKey
	kind kind // 0: its first block has not come
	peer Addr

	chunks  [][]byte // delivered and not read
	unread  int      // bytes in them
	ended   bool     // the last block has come
	dropped bool     // what comes is thrown away
	stopped bool     // the source was told to stop
	holding hop.Holding
	want    hop.BlockID // the next block
	err     error
	changed waiting
	epoch   uint64 // of the source's life
	touched vtime.Time
}

// What is remembered of flows that have ended, so that a repetition is known as
// one by the state machine. Later repetitions are known by their number (source).
const (
	rememberEnded = 1024
	rememberFor   = 10 * vtime.Minute
)

// app is what hop tells a Node; hop.App. The lock is held.
type app Node

// Accept takes a flow, if there is room.
func (a *app) Accept(now vtime.Time, key hop.FlowKey) bool {
	n := (*Node)(a)
	switch {
	case n.receivers[key] != nil:
		return true
	case n.cfg.Allow != nil && !n.cfg.Allow(NodeID(key.Src)):
		return false
	case len(n.receivers)-len(n.ended) >= n.cfg.Streams && !n.makeRoom():
		return false // it is asked again when the flow is announced again
	}
	n.receivers[key] = &receiver{n: n, key: key, peer: Addr{Node: NodeID(key.Src)}, touched: now}
	return true
}

// makeRoom forgets the flow that was announced longest ago and of which no block
// has come: if somebody means it, it is announced again.
func (n *Node) makeRoom() bool {
	var old *receiver
	for _, r := range n.receivers {
		if r.kind == 0 && !r.dropped && (old == nil || r.touched < old.touched) {
			old = r
		}
	}
	if old == nil {
		return false
	}
	delete(n.receivers, old.key)
	n.later = append(n.later, func(now vtime.Time) {
		if n.receivers[old.key] == nil {
			n.hop.CloseFlow(now, old.key, true)
		}
	})
	return true
}

// Deliver takes a block.
func (a *app) Deliver(now vtime.Time, d hop.Delivery) {
	n := (*Node)(a)
	r := n.receivers[d.Flow]
	if r == nil {
		return // a flow that was forgotten in this very call
	}
	r.touched = now
	if d.Block != r.want && r.kind != 0 && !r.dropped {
		// The state machine skips what the source says is acknowledged. If it never
		// came here, somebody else has acknowledged it.
		n.counts.BadFlows++
		n.log("flow %d from %v: block %d follows block %d", r.key.Flow, r.peer.Node, d.Block, r.want-1)
		r.fail(errHole)
		r.stop()
		r.drop()
	}
	r.want = d.Block + 1
	data := d.Data
	if r.kind == 0 && !r.dropped {
		if data = n.begin(now, r, d); r.dropped {
			return
		}
	}
	if d.Last {
		k := len(data) - 1
		if k < 0 || data[k] != endMark {
			n.counts.BadFlows++
			r.fail(errPreamble)
			r.drop()
			return
		}
		data, r.ended = data[:k], true
	}
	switch {
	case r.dropped:
		r.stop()
	case r.kind == kindBlock:
		n.deliverBlock(r, d, data)
	default:
		r.take(data)
	}
	r.changed.wake()
}

// take keeps a stream's bytes for its reader.
func (r *receiver) take(data []byte) {
	if len(data) > 0 {
		c := newBlockChunk(len(data))
		copy(c, data)
		r.chunks = append(r.chunks, c)
		r.count(len(data))
	}
	switch {
	case r.ended:
	case r.unread >= r.n.cfg.ReadBuffer:
		r.hold(hop.HoldAll)
	default:
		r.hold(hop.HoldAsOthers)
	}
}

// longed is called when a reader waits and nothing has come: it gets a block, even
// if all other streams together hold, or come to hold, as much as may be.
func (r *receiver) longed() {
	if !r.ended {
		r.hold(hop.HoldNothing)
	}
}

// count notes bytes that wait for a reader, or were read.
func (r *receiver) count(k int) {
	n := r.n
	r.unread += k
	n.unread += k
	switch {
	case !n.brim && n.unread >= n.cfg.UnreadLimit:
		n.brim = true
		n.hop.HoldLarge(r.touched, true) // at once: the next block is granted just now
	case n.brim && n.unread <= n.cfg.UnreadLimit*3/4:
		n.brim = false
		n.later = append(n.later, func(now vtime.Time) { n.hop.HoldLarge(now, n.brim) })
	}
}

// hold sets what the state machine takes of the flow.
func (r *receiver) hold(h hop.Holding) {
	if n := r.n; r.holding != h {
		r.holding = h
		if h == hop.HoldAll {
			n.hop.Hold(r.touched, r.key, h) // at once: the next block is granted just now
			return
		}
		n.later = append(n.later, func(now vtime.Time) { n.hop.Hold(now, r.key, r.holding) })
	}
}

// next takes the oldest chunk out; nil if there is none.
func (r *receiver) next() []byte {
	if len(r.chunks) == 0 {
		return nil
	}
	c := r.chunks[0]
	r.chunks[0] = nil
	r.chunks = r.chunks[1:]
	r.count(-len(c))
	if r.holding == hop.HoldAll && r.unread < r.n.cfg.ReadBuffer {
		r.hold(hop.HoldAsOthers)
	}
	return c
}

// drop throws away what has come and what comes. It must come: relays would keep
// it otherwise.
func (r *receiver) drop() {
	r.dropped = true
	for c := r.next(); c != nil; c = r.next() {
		release(c)
	}
	r.hold(hop.HoldNothing)
}

// stop tells the source, once, that nobody reads.
func (r *receiver) stop() {
	if r.stopped || r.ended {
		return
	}
	r.stopped = true
	r.n.notify(r.peer, preamble{flow: r.key.Flow, code: codeStop})
}

// fail ends the flow for its reader: after what has come, it finds the reason.
func (r *receiver) fail(reason error) {
	if r.err == nil && !r.ended {
		r.err = reason
	}
	r.hold(hop.HoldNothing)
	r.changed.wake()
}

// Finished notes the end of a flow; hop.App.
func (a *app) Finished(now vtime.Time, key hop.FlowKey) {
	n := (*Node)(a)
	if s := n.senders[key]; s != nil {
		s.acked, s.last = true, now
		s.changed.wake()
		if s.kind != kindBlock {
			s.retire()
		}
		return
	}
	if r := n.receivers[key]; r != nil {
		n.ended = append(n.ended, key)
		if len(n.ended) > rememberEnded {
			old := n.ended[0]
			n.ended = n.ended[1:]
			n.later = append(n.later, func(now vtime.Time) { n.forgetReceiver(now, old) })
		}
	}
}

// Failed is told of blocks whose hash does not match; they come again. hop.App.
func (a *app) Failed(_ vtime.Time, _ hop.FlowKey, err error) { (*Node)(a).log("%v", err) }

// forgetReceiver takes a flow out of the tables. It is not called from within
// the state machine.
func (n *Node) forgetReceiver(now vtime.Time, key hop.FlowKey) {
	n.hop.CloseFlow(now, key, true)
	delete(n.receivers, key)
}
