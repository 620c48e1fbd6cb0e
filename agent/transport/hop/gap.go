package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Long gaps (paper §3.6). Where the links of a path are rarely up together, blocks
// travel by themselves: next hops are kept, BSYNs and tokens are repeated for ever.
// End-to-end BACKs do not: they are sent once, into a link that is down as a rule, and
// every token that asks again brings the answer one hop further only. Two rules that
// the paper does not have (Config.E2EStall) make the way back as good as the way there:
//
//   - An announcement tells what its sender knows to be acknowledged end to end (base).
//     Who knows more says so again (tellAgain). So acknowledgements advance one hop
//     upstream in each contact in which a block or a token goes downstream.
//   - A source whose window is full, or that has ended, has nothing to announce, and
//     would learn of nothing until its end-to-end timer, which a gap has made long, runs
//     out. It asks by a token for its oldest block every E2EStall, or E2EInitial (stall).
//
// Neither happens where end-to-end BACKs arrive.

// knownBase is the lowest block of the flow that is not known to be acknowledged end
// to end, as far as this node can tell in the announcement of b.
func (n *Node) knownBase(b *block) BlockID {
	if b.f.role == SourceRole {
		return n.announcedBase(b)
	}
	return max(b.base, b.f.cum)
}

// learnBase takes an announcement's word for what is acknowledged end to end, where
// end-to-end BACKs pass by this node: the way back may be another. Copies of such blocks
// are of no use to anybody. A first announcement may say anything, later ones are
// believed up to a window (as at the destination, see follow). Without end-to-end
// acknowledgements the base says no such thing (see announcedBase).
func (n *Node) learnBase(f *flow, base BlockID) {
	if n.cfg.NoVirtual || f.role != Relay || base <= f.cum || f.met && base-f.cum > MaxWindow {
		f.met = true
		return
	}
	f.met = true
	f.merge(base, 0)
	for i := len(f.blocks) - 1; i >= 0; i-- {
		if b := f.blocks[i]; b.cached && b.id < base && b.tok == tokenNone {
			n.free(b)
		}
	}
}

// tellAgain repeats the flow's end-to-end BACK towards a neighbour that has just shown,
// by the base of its announcement, that it does not know all of it: what was said may
// have met a link that was down. Not before what was said last has had its time.
func (n *Node) tellAgain(now vtime.Time, f *flow, base BlockID) {
	if n.cfg.NoVirtual || n.cfg.E2EStall == 0 || base >= f.cum || !f.met && f.role == Destination {
		return
	}
	if f.e2eTold && now.Sub(f.e2eAt) < n.cfg.BSYNCeil {
		return
	}
	if !f.e2eTold {
		f.e2eBlock, f.e2eTTL = f.cum-1, n.cfg.VirtualTTL
	}
	n.oweE2E(f, f.e2eBlock, f.e2eSent, f.e2eTTL)
}

// stall arms the timer of the oldest block of a source that can send nothing before it
// hears of the destination: its window is full, or it has ended.
func (n *Node) stall(now vtime.Time, f *flow) {
	if n.cfg.NoVirtual || n.cfg.E2EStall == 0 || f.dry || len(f.blocks) == 0 {
		return
	}
	for _, b := range f.blocks {
		if b.tx != txPassed || b.tok == tokenOut {
			return // it is under way, or asks already
		}
	}
	wait := n.cfg.E2EStall
	if f.ended {
		wait = max(wait, n.cfg.E2EInitial) // nobody waits for room
	}
	oldest := f.blocks[0]
	if at := now.Add(wait); oldest.vtTimer.pos == 0 || oldest.vtTimer.at > at {
		n.timers.set(&oldest.vtTimer, at)
	}
}
