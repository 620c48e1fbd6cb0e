package hop

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// openFlow adds a flow that begins here.
func (n *Node) openFlow(now vtime.Time, key FlowKey, src Source, opt FlowOptions) error {
	size := opt.BlockSize
	if size == 0 {
		size = n.cfg.BlockSize
	}
	switch {
	case src == nil:
		return fmt.Errorf("hop: node %d: flow %d to %d has no source", n.cfg.ID, key.Flow, key.Dst)
	case key.Dst == n.cfg.ID || key.Dst == noNode:
		return fmt.Errorf("hop: node %d: flow %d cannot go to node %d", n.cfg.ID, key.Flow, key.Dst)
	case size < 1 || size > MaxBlockSize:
		return fmt.Errorf("hop: node %d: flow %d: block size %d is outside 1…%d", n.cfg.ID, key.Flow, size, MaxBlockSize)
	case n.lookup(key) != nil:
		return fmt.Errorf("hop: node %d: flow %d to %d is open already; a flow id is used once", n.cfg.ID, key.Flow, key.Dst)
	}
	f := n.newFlow(now, key, SourceRole)
	if f == nil {
		return fmt.Errorf("hop: node %d: flow %d: all %d flows (Config.MaxFlows) are in use; close one", n.cfg.ID, key.Flow, n.cfg.MaxFlows)
	}
	f.src, f.blockSize = src, int(size)
	n.pump(now, f)
	n.settle(now, f)
	return nil
}

// pull takes the next block from the flow's Source; false if there is none,
// the window is full, or memory is short. Sources take at most half of the
// memory limit, so that a node's own flows cannot stop it from relaying; one
// block per flow is always allowed.
func (n *Node) pull(now vtime.Time, f *flow) bool {
	if f.ended || f.dry || len(f.blocks) >= n.cfg.Window || f.nextID-f.base >= BlockID(n.cfg.Window) {
		return false
	}
	if len(f.blocks) > 0 && n.ownBytes+vtime.Bytes(f.blockSize) > n.cfg.MemoryLimit/2 {
		return false
	}
	b := n.newBlock(f, f.nextID)
	b.size = f.blockSize
	n.allocate(b, true)
	n.ownBuffer(b)
	size, last := f.src.Next(now, b.buf)
	f.ended, f.dry = last, !last && size == 0
	if size <= 0 || size > len(b.buf) {
		n.free(b)
		if size != 0 {
			f.ended = true
			n.app.Failed(now, f.key, fmt.Errorf("hop: node %d: flow %d: the source gave %d bytes for a block of %d; the flow ends",
				n.cfg.ID, f.key.Flow, size, f.blockSize))
		}
		return false
	}
	n.shrink(b, size)
	b.own = b.room
	n.ownBytes += b.own
	f.nextID++
	b.payload = n.cfg.Payload
	b.count = packets(size, b.payload)
	b.hash = blockHash(b.buf)
	b.last, b.sent = last, now
	b.micro = vtime.Bytes(size) <= n.cfg.microMax()
	b.rx, b.tx = rxComplete, txHeld
	if b.micro {
		f.stats.MicroBlocks++
	}
	return true
}

// shrink makes the block as large as what the Source gave; a much smaller
// block moves to a smaller buffer.
func (n *Node) shrink(b *block, size int) {
	old, room := b.mem, b.room
	b.size = size
	if classSize(bufferClass(size)) == room {
		old.bytes = old.bytes[:size]
		b.buf = old.bytes
		return
	}
	b.mem, b.buf, b.room = nil, nil, 0
	n.allocate(b, true)
	n.ownBuffer(b)
	copy(b.buf, old.bytes)
	n.memory -= room
	old.release()
}

// acknowledge frees a source's block that the destination has, or that the
// first hop has where nothing is repeated end to end.
func (n *Node) acknowledge(now vtime.Time, b *block) {
	f := b.f
	if b.active() || b.tx == txHeld {
		f.stats.BlocksSent++ // the BACK was lost, the block was not
	}
	if b.tx == txPolling && b.port.wire && b.next == f.key.Dst {
		n.measure(now, b) // the destination has answered before the BSYN came
	}
	n.free(b)
	f.stats.BlocksAcked++
}

// settle moves the flow's base and tells when all is done.
func (n *Node) settle(now vtime.Time, f *flow) {
	f.base = f.nextID
	if len(f.blocks) > 0 {
		f.base = f.blocks[0].id
	}
	if f.ended && len(f.blocks) == 0 && !f.finished {
		f.finished = true
		n.app.Finished(now, f.key)
	}
}
