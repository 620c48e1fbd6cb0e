package hop

import "github.com/hopbed/hopbed/netem/vtime"

// The block cache (paper §3.2): a relay keeps blocks that it has passed on
// until the end-to-end BACK passes, so that a block lost behind it need not
// come from the source again. Memory is bounded by Config.MemoryLimit. When
// it is short, first the block that was passed on longest ago goes, then the
// relayed partial block whose sender has been silent longest. Neither loses
// anything: a passed block is held by the next hop and by its source, a
// partial one by its sender. Blocks that this node answers for stay.

// cache puts a block that was passed on at the cache's young end.
func (n *Node) cache(b *block) {
	b.cached = true
	b.prev, b.succ = n.newest, nil
	if n.newest != nil {
		n.newest.succ = b
	} else {
		n.oldest = b
	}
	n.newest = b
}

// uncache takes the block out of the cache's list, not out of memory.
func (n *Node) uncache(b *block) {
	if !b.cached {
		return
	}
	b.cached = false
	if b.prev != nil {
		b.prev.succ = b.succ
	} else {
		n.oldest = b.succ
	}
	if b.succ != nil {
		b.succ.prev = b.prev
	} else {
		n.newest = b.prev
	}
	b.prev, b.succ = nil, nil
}

// victim returns the next block to evict for b, or nil. A block whose VBSYN
// is out is needed just now, and goes after the others.
func (n *Node) victim(b *block) *block {
	for v := n.oldest; v != nil; v = v.succ {
		if v.tok == tokenNone {
			return v
		}
	}
	if n.oldest != nil {
		return n.oldest
	}
	var longest *block
	n.eachSuspended(b, func(w *block) {
		if longest == nil || w.lastHeard < longest.lastHeard {
			longest = w
		}
	})
	return longest
}

// eachSuspended calls do for every relayed partial block without a grant, but
// not for b.
func (n *Node) eachSuspended(b *block, do func(*block)) {
	for _, f := range n.flows {
		if f.role != Relay {
			continue
		}
		for _, w := range f.blocks {
			if w.rx == rxSuspended && (w.micro || w.stale) && w != b {
				do(w)
			}
		}
	}
}

// memoryFor is the limit that applies to a block. A relayed flow that holds
// no large block here, and the block that a destination needs next, may use as
// much again: two nodes full of each other's blocks would wait for ever.
func (n *Node) memoryFor(b *block) vtime.Bytes {
	if b.f.role == Relay && b.f.slots() == 0 || b.f.role == Destination && b.id == b.f.cum {
		return 2 * n.cfg.MemoryLimit
	}
	return n.cfg.MemoryLimit
}

// makeRoom evicts until need bytes more fit for b; false if they do not.
// Going beyond MemoryLimit, it evicts first, too.
func (n *Node) makeRoom(b *block, need vtime.Bytes) bool {
	for n.memory+need > n.cfg.MemoryLimit {
		v := n.victim(b)
		if v == nil {
			return n.memory+need <= n.memoryFor(b)
		}
		if v.cached {
			v.f.stats.Evicted++
		}
		n.free(v)
	}
	return true
}

// hasRoom reports whether makeRoom would succeed for the block.
func (n *Node) hasRoom(b *block) bool {
	need := n.memory + classSize(bufferClass(b.size)) - n.memoryFor(b)
	if need <= 0 {
		return true
	}
	for v := n.oldest; v != nil && need > 0; v = v.succ {
		need -= v.room
	}
	n.eachSuspended(b, func(w *block) { need -= w.room })
	return need <= 0
}
