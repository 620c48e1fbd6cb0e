package hop

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// afterItsData checks that no BSYN is given to the MAC while data of its block
// stand in the data queue.
func (w *world) afterItsData(x *testNode, p Packet) {
	if msgType(p.Buf[1]) != typeBSYN {
		return
	}
	for _, d := range x.queues[Data] {
		if string(d.buf[4:20]) == string(p.Buf[4:20]) && d.to == p.To { // the same flow and block
			w.t.Fatalf("%v: node %d: a BSYN overtakes the data that it announces the end of", w.now, x.id)
		}
	}
}

// invariants checks what must hold after every event: the paper's limits of
// backpressure and withholding, and the bounds of this package.
func (w *world) invariants(x *testNode) {
	n := x.n
	granted := 0
	for _, f := range n.flows {
		if f.role == Relay && !n.cfg.NoBackpressure {
			if k := f.slots(); k > n.cfg.H {
				w.t.Fatalf("%v: node %d holds or reserves %d blocks of flow %v, H is %d", w.now, x.id, k, f.key, n.cfg.H)
			}
		}
		if bytes, blocks := f.micro(); f.role == Relay && (bytes > n.cfg.MicroWindow || blocks > MaxWindow) {
			w.t.Fatalf("%v: node %d holds %d micro-blocks, %d B, of flow %v", w.now, x.id, blocks, bytes, f.key)
		}
		for i, b := range f.blocks {
			if b.rx == rxGranted && !b.micro {
				granted++
			}
			if i > 0 && f.blocks[i-1].id >= b.id {
				w.t.Fatalf("%v: node %d: blocks of flow %v out of order", w.now, x.id, f.key)
			}
			if b.buf != nil && b.rx != rxComplete && len(b.buf) != b.size {
				w.t.Fatalf("%v: node %d: buffer of %d B for a block of %d", w.now, x.id, len(b.buf), b.size)
			}
		}
		if len(f.blocks) > 2*MaxWindow+maxRequests {
			w.t.Fatalf("%v: node %d: %d blocks of flow %v", w.now, x.id, len(f.blocks), f.key)
		}
	}
	if granted > 1 && !n.cfg.NoWithholding {
		w.t.Fatalf("%v: node %d has %d granted large blocks", w.now, x.id, granted)
	}
	if n.memory > 2*n.cfg.MemoryLimit+vtime.Bytes(len(n.flows))*MaxBlockSize {
		w.t.Fatalf("%v: node %d uses %d B", w.now, x.id, n.memory)
	}
	for _, p := range n.ports {
		if p == nil {
			continue
		}
		most := n.cfg.QueueAhead
		if p.wire {
			most = mostAhead + mostSpared
		}
		for c := range p.mac {
			if k := p.mac[c].waiting(); k > most {
				w.t.Fatalf("%v: node %d, port %d: %d packets ahead, at most %d", w.now, x.id, p.id, k, most)
			}
		}
		if p.wire {
			y := w.wires[x.id][p.id-1]
			if got, own := p.mac[Data].waiting(), y.own(); got != own && w.opt.feedback == exactDone && !y.crowded && n.stats.DrainsTimedOut == 0 && p.mac[Data].sawDone {
				w.t.Fatalf("%v: node %d, port %d: believes that %d packets wait in a queue of %d, of which %d are its own", w.now, x.id, p.id, got, len(y.queue), own)
			}
		}
		if !p.idle() && !p.active {
			w.t.Fatalf("%v: node %d forgets port %d", w.now, x.id, p.id)
		}
	}
}

// summary describes the nodes' state, for a test that fails.
func (w *world) summary() string {
	s := ""
	for _, x := range w.nodes {
		if x.n == nil {
			continue
		}
		s += fmt.Sprintf("node %d: waiting %d granted %v mem %d stats %+v\n", x.id, len(x.n.waiting), x.n.granted != nil, x.n.memory, x.n.Stats())
		for _, p := range x.n.ports {
			if p != nil {
				s += fmt.Sprintf("  port %d: control %d micro %d ring %d draining %d mac %+v ahead %+v\n", p.id, p.control.len(), p.micro.len(), p.ring.len(), p.draining.len(), p.mac, p.ahead)
			}
		}
		for _, f := range x.n.flows {
			st, _ := x.n.FlowStats(f.key)
			s += fmt.Sprintf("  flow %+v cum %d next %d base %d\n", st, f.cum, f.nextID, f.base)
			for _, b := range f.blocks {
				s += fmt.Sprintf("    block %d rx %d tx %d attempt %d have %d/%d next %d tok %d/%d stale %v timers %v %v %v\n",
					b.id, b.rx, b.tx, b.attempt, b.nhave, b.count, b.next, b.tok, b.tokAttempt, b.stale, b.rxTimer.pos, b.txTimer.pos, b.vtTimer.pos)
			}
		}
	}
	return s
}
