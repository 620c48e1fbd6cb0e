package hopnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	// sendRun bounds the packets that are sent between two looks at what has
	// arrived.
	sendRun = 256
	// retryAfter is the pause when the kernel's buffer is full.
	retryAfter = vtime.Millisecond
	sweepEvery = 10 * vtime.Second
)

// run is the node's goroutine: it takes what arrives, and does what is due. What
// a program wants is done by its own goroutines, under the same lock.
func (n *Node) run() {
	take := n.take // one value, made once
	for {
		err := n.sock.Wait()
		due := errors.Is(err, os.ErrDeadlineExceeded)
		if due {
			err = n.sock.Poll() // a long run of packets to send must not keep others waiting
		}
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return
		}
		if due {
			n.armed = vtime.Never
		}
		switch {
		case err == nil:
			n.sock.All(take)
		case errors.Is(err, net.ErrClosed): // n.closed comes with it
		default:
			n.mu.Unlock()
			n.end(fmt.Errorf("the socket failed: %w", err))
			return
		}
		n.settle(n.now())
		n.mu.Unlock()
	}
}

// take takes one datagram. The lock is held.
func (n *Node) take(from netip.AddrPort, data []byte) {
	n.counts.Received++
	now := n.now()
	if isIntro(data) {
		n.onIntro(now, from, data)
		return
	}
	p := n.peers.byAddr[from]
	if p == nil || p.id == 0 {
		n.stranger(now, from)
		return
	}
	p.heard = now
	n.from = p
	if source, ok := announces(data); ok && source != p.id && source != n.cfg.ID && !n.cfg.NoLearning {
		// Only what the state machine accepts is believed.
		before := n.hop.Stats().Received
		n.hop.Receive(now, hop.NodeID(p.id), data)
		if n.hop.Stats().Received != before {
			n.routes.learn(source, p.id)
		}
		return
	}
	n.hop.Receive(now, hop.NodeID(p.id), data)
}

// announces finds the source of an announcement (BSYN, VBSYN) in a packet; see
// hop/DESIGN.md §2.
func announces(b []byte) (NodeID, bool) {
	if len(b) < hop.HeaderLen || b[1] != 2 && b[1] != 4 {
		return 0, false
	}
	return NodeID(b[4])<<24 | NodeID(b[5])<<16 | NodeID(b[6])<<8 | NodeID(b[7]), true
}

// settle does everything that is due, sends what may be sent and has the loop
// wake up for the rest. Whoever has changed something calls it, with the lock.
func (n *Node) settle(now vtime.Time) {
	if n.closed {
		return
	}
	if n.hop.Deadline() <= now {
		n.hop.Expire(now)
	}
	n.afterwards(now)
	if now >= n.sweepAt {
		n.sweep(now)
		n.sweepAt = now.Add(sweepEvery)
	}
	more := n.send(now)
	next := vtime.Min(n.hop.Deadline(), vtime.Min(n.askAt, n.sweepAt))
	if n.full {
		next = vtime.Min(next, n.retry)
	}
	if more {
		next = now
	}
	n.wakeAt(next)
}

// afterwards does what the state machine's calls have put off.
func (n *Node) afterwards(now vtime.Time) {
	for len(n.later) > 0 {
		work := n.later
		n.later = nil
		for _, f := range work {
			f(now)
		}
	}
}

// wakeAt ends the loop's Wait at a time, or earlier: a Wait that ends too early
// costs less than to move its deadline with every packet.
func (n *Node) wakeAt(at vtime.Time) {
	if at >= n.armed {
		return
	}
	n.armed = at
	var t time.Time
	if at != vtime.Never {
		t = n.base.Add(time.Duration(int64(at) - n.nano))
	}
	_ = n.sock.SetDeadline(t) // it fails when the socket is closed, which Wait tells
}

// send gives the kernel what the state machine has to send, sendRun packets at
// most; true if there may be more.
func (n *Node) send(now vtime.Time) (more bool) {
	if n.full && now < n.retry {
		return false
	}
	n.full = false
	if n.sock.Pending() > 0 && !n.flush(now) {
		return false
	}
	if now >= n.askAt {
		n.askAt = n.ask(now)
	}
	for range sendRun {
		slot := n.slot()
		if slot == nil {
			return false // the kernel is full
		}
		p, ok := n.hop.PollInto(now, slot)
		if !ok {
			if n.sock.Pending() == 0 {
				return false
			}
			if !n.flush(now) {
				return false
			}
			continue // departures make room
		}
		to := n.peers.byID[NodeID(p.To)]
		if to == nil {
			n.hop.TxDone(now, p.Port, p.Class, 1) // it was forgotten meanwhile
			continue
		}
		tos := uint8(0)
		if to.radio {
			tos = dscps[p.Class] << 2
		}
		n.put(to.addr, p.Port, p.Class, tos, len(p.Buf))
	}
	return n.sock.Pending() == 0 || n.flush(now)
}

// The DSCPs of a radio's queues: CS1 leads to the background queue, CS6 to the
// voice queue (paper §4).
var dscps = [hop.NumClasses]uint8{hop.Data: 8, hop.Control: 48}

// slot is the place of the next datagram; nil when the kernel takes none now.
func (n *Node) slot() []byte {
	s := n.sock.Slot()
	if s == nil && n.flush(n.now()) {
		s = n.sock.Slot()
	}
	return s
}

// put adds the datagram in the slot to the batch.
func (n *Node) put(to netip.AddrPort, p hop.Port, c hop.Class, tos uint8, size int) {
	n.sock.Put(to, tos, size)
	n.batch = append(n.batch, packetOf{p, c})
	if p == hop.RadioPort {
		n.given[c]++
	}
}

// flush hands the batch to the kernel; false if some of it stays.
func (n *Node) flush(now vtime.Time) bool {
	left, full, err := n.sock.Flush()
	if err != nil {
		return false // the next Wait ends with it, too
	}
	wire := 0
	for _, p := range n.batch[:left] {
		switch p.port {
		case wirePort:
			wire++ // what the kernel has taken has left the queue
		case hop.RadioPort:
			n.given[p.class]--
		}
	}
	n.batch = append(n.batch[:0], n.batch[left:]...)
	if wire > 0 {
		n.hop.TxDone(now, wirePort, hop.Data, wire)
	}
	if full {
		n.full, n.retry = true, now.Add(retryAfter)
	}
	return !full
}

// sweep forgets what is over, and what nothing is heard of.
func (n *Node) sweep(now vtime.Time) {
	for len(n.ended) > 0 {
		r := n.receivers[n.ended[0]]
		if r != nil && len(n.ended) <= rememberEnded && now.Sub(r.touched) < rememberFor {
			break
		}
		n.forgetReceiver(now, n.ended[0])
		n.ended = n.ended[1:]
	}
	for _, key := range n.hop.Flows(nil) {
		s, _ := n.hop.FlowStats(key)
		idle := now.Sub(s.Used)
		switch {
		case s.Role == hop.Relay && idle > vtime.FromStd(n.cfg.Custody):
			n.log("blocks of flow %d from %v to %v are given up: nothing was heard of it for %v", key.Flow, NodeID(key.Src), NodeID(key.Dst), idle.Std().Round(time.Second))
			n.hop.CloseFlow(now, key, true)
		case s.Role == hop.Destination && idle > rememberFor:
			if r := n.receivers[key]; r == nil || r.dropped {
				n.forgetReceiver(now, key)
			}
		}
	}
	n.sweepSenders(now)
}
