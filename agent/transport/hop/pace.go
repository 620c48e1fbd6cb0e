package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Config.Gap: a node that has blocks of several flows leaves the air
// idle for a while after each txop. It is not in the paper.
//
// Without ARQ a sender never learns that its bursts destroy those of a sender
// hidden from it, and its contention window stays at its minimum: two nodes
// that always have data occupy a receiver between them for good, and whoever
// needs that receiver starves. A gap as long as a burst lets the others'
// bursts through whole. A node with one flow takes none: along one path
// backpressure and withholding keep the bursts apart.

// gapState is where a node is between two txops.
type gapState uint8

const (
	gapNone  gapState = iota
	gapDrain          // the txop is given, and stands in the MAC
	gapWait           // it has left; the timer ends the gap
)

// endTxop is called when a flow's turn in the round robin is over.
func (n *Node) endTxop(p *port) {
	p.credit = n.cfg.quantum()
	if n.cfg.Gap > 0 && !p.wire && n.crowded() {
		p.gap = gapDrain
	}
}

// paused reports whether no data may be given to the MAC now.
func (n *Node) paused(now vtime.Time, p *port) bool {
	switch p.gap {
	case gapDrain:
		if n.lookAt(now, p, Data); p.mac[Data].waiting() > 0 {
			return true
		}
		p.gap = gapWait
		n.dice = mix(n.dice)
		d := n.cfg.Gap/2 + vtime.Duration(n.dice%uint64(n.cfg.Gap)) // mean Gap
		n.timers.set(&p.gapTimer, now.Add(d))
		return true
	case gapWait:
		return p.gapTimer.pos != 0
	}
	return false
}

// crowded reports whether blocks of more than one flow are on their way here.
func (n *Node) crowded() bool {
	k := 0
	for _, f := range n.flows {
		for _, b := range f.blocks {
			if b.tx != txPassed && b.rx != rxRequested {
				k++
				break
			}
		}
		if k > 1 {
			return true
		}
	}
	return false
}
