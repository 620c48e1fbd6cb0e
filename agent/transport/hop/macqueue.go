package hop

import "github.com/hopbed/hopbed/netem/vtime"

// macQueue is what the node knows of one of a port's FIFO queues. Packets
// are numbered from 1 in the order in which they are given to the MAC.
//
// Two sources are combined, because a driver may have only one: TxDone, which
// counts departures, and Free, from which the occupancy follows once the
// largest free space seen is taken for the queue's size. Either can only
// prove that packets have left; whichever proves more is believed. Thus a
// lost TxDone is repaired by the next look at Free, and other traffic in the
// queue makes the Free rule late, never early.
type macQueue struct {
	given    uint64 // packets given to the MAC
	left     uint64 // packets known to have left it: sent or dropped
	size     int    // largest free space seen
	sawDone  bool   // the driver calls TxDone
	progress vtime.Time
}

// waiting is the number of our packets that may still be in the queue.
func (q *macQueue) waiting() int { return int(q.given - q.left) }

// done takes k departures.
func (q *macQueue) done(now vtime.Time, k int) {
	if k <= 0 {
		return
	}
	q.sawDone = true
	q.advance(now, min(q.left+uint64(k), q.given))
}

// look takes the queue's free space.
func (q *macQueue) look(now vtime.Time, free int) {
	q.size = max(q.size, free)
	if occupied := uint64(q.size - max(free, 0)); occupied < q.given {
		q.advance(now, q.given-occupied)
	}
}

// unstick gives up waiting when nothing has left for the timeout: the counts
// are wrong then, and must not stop a flow. It reports whether it did.
func (q *macQueue) unstick(now vtime.Time, timeout vtime.Duration) bool {
	if q.waiting() == 0 || now.Sub(q.progress) < timeout {
		return false
	}
	q.advance(now, q.given)
	return true
}

func (q *macQueue) advance(now vtime.Time, left uint64) {
	if left > q.left {
		q.left, q.progress = left, now
	}
}

// give counts a packet handed to the MAC.
func (q *macQueue) give(now vtime.Time) {
	if q.waiting() == 0 {
		q.progress = now
	}
	q.given++
}

// room reports whether a packet of the class may be given to the MAC: its
// queue takes one, and no more than QueueAhead of ours stand in it. On a wire
// see ahead; control may use the places that data leave.
func (n *Node) room(now vtime.Time, p *port, c Class) bool {
	free := n.lookAt(now, p, c)
	if p.wire {
		return p.wireRoom(free, c)
	}
	return free > 0 && p.mac[c].waiting() < n.cfg.QueueAhead
}

// lookAt reads a queue's free space and draws the conclusions.
func (n *Node) lookAt(now vtime.Time, p *port, c Class) int {
	free, q := n.radio.Free(p.id, c), p.queue(c)
	switch {
	case p.wire && free >= Unlimited:
		q.size = free // it says nothing about departures
	case p.wire && q.sawDone:
		// Others' packets share a wire's queue, so its free space proves little,
		// and a wire that is down keeps its queue for as long as it is down: the
		// driver's count is believed, unless the queue is empty all the same.
		if q.size = max(q.size, free); free == q.size {
			q.unstick(now, lookRepair)
		}
		return free
	default:
		before := q.left
		q.look(now, free)
		if p.wire && q.left != before {
			p.departed(now, &n.cfg)
		}
	}
	if q.unstick(now, n.cfg.DrainTimeout) {
		if !p.wire {
			q.size = max(free, 0)
		}
		n.stats.DrainsTimedOut++
	}
	return free
}

// Intervals of looking at the queues again without being told. With TxDone
// they are a repair of lost counts only.
const (
	lookInterval = 2 * vtime.Millisecond
	lookRepair   = 50 * vtime.Millisecond
)

// lookAgain arms the timer that looks at the port's queues, if packets wait
// for them.
func (n *Node) lookAgain(now vtime.Time, p *port) {
	if p.look.pos != 0 || p.idle() {
		return
	}
	c := Data
	if p.control.len() > 0 || p.micro.len() > 0 {
		c = Control
	}
	d := lookInterval
	if p.queue(c).sawDone {
		d = lookRepair
	}
	n.timers.set(&p.look, now.Add(d))
}

// drain releases the blocks whose round has left the MAC: a BSYN goes in the
// voice queue and would overtake the background data whose end it announces,
// so that the bitmap in the answer would miss what is still queued.
func (n *Node) drain(now vtime.Time, p *port) {
	p.draining.remove(func(x **block) bool {
		b := *x
		if p.queue(b.class()).left < b.drainMark {
			return false
		}
		n.drained(now, b)
		return true
	})
}

// announcing reports whether the block's last BSYN or VBSYN is still in the
// MAC.
func (n *Node) announcing(now vtime.Time, b *block) bool {
	if b.bsynPort == nil {
		return false
	}
	n.lookAt(now, b.bsynPort, Control)
	return b.bsynPort.queue(Control).left < b.bsynMark
}

// mark notes that the block's BSYN or VBSYN is given to the port next.
func (b *block) mark(p *port) { b.bsynPort, b.bsynMark = p, p.queue(Control).given+1 }

// class is the MAC queue that the block's data take.
func (b *block) class() Class {
	if b.micro {
		return Control
	}
	return Data
}
