package hop

import (
	"math/bits"

	"github.com/hopbed/hopbed/netem/vtime"
)

// buffer is memory for the bytes of a block. Messages refer to it, and so does a block
// that is received by messages from a node of the same process: what its sender holds
// is what it would hold itself in the end.
type buffer struct {
	bytes  []byte
	refs   int    // blocks and messages that refer to it
	home   *Node  // keeps it for its next use
	hash   uint64 // of bytes, once it was lent
	hashed bool
}

// The buffer classes are powers of two from 1 KiB to MaxBlockSize.
const (
	minClassBits = 10
	numClasses   = 11
)

// bufferClass returns the class of a block of size bytes.
func bufferClass(size int) int {
	return max(bits.Len(uint(size-1)), minClassBits) - minClassBits
}

func classSize(class int) vtime.Bytes { return 1 << (class + minClassBits) }

// allocate sets memory aside for the block if the limit allows, evicting what may be
// evicted. force is for a source's own block, which is bounded elsewhere.
func (n *Node) allocate(b *block, force bool) bool {
	if b.room > 0 {
		return true
	}
	room := classSize(bufferClass(b.size))
	if !n.makeRoom(b, room) && !force {
		return false
	}
	b.room = room
	n.memory += room
	n.stats.MemoryPeak = max(n.stats.MemoryPeak, n.memory)
	return true
}

// ownBuffer gives the block, for which memory is set aside, a buffer to write to, with
// the packets that have come already.
func (n *Node) ownBuffer(b *block) {
	old, bytes := b.mem, b.buf
	class := bufferClass(b.size)
	if free := n.buffers[class]; len(free) > 0 {
		b.mem = free[len(free)-1]
		n.buffers[class] = free[:len(free)-1]
	} else {
		b.mem = &buffer{bytes: make([]byte, classSize(class)), home: n}
	}
	b.mem.refs, b.mem.hashed = 1, false
	b.mem.bytes = b.mem.bytes[:b.size]
	b.buf, b.shared = b.mem.bytes, false
	if old != nil {
		for i := b.have.next(0); i >= 0; i = b.have.next(i + 1) {
			copy(b.buf[b.offset(i):][:b.length(i)], bytes[b.offset(i):])
		}
		old.release()
	}
}

// lend returns the block's buffer for a message. The block is complete.
func (b *block) lend() *buffer {
	m := b.mem
	m.refs++
	m.hash, m.hashed = b.hash, true
	return m
}

// has reports whether data are packet i of the block in the buffer of another node that
// has the whole of it.
func (m *buffer) has(b *block, i int, data []byte) bool {
	return m != nil && m.hashed && len(m.bytes) == b.size && &m.bytes[b.offset(i)] == &data[0]
}

// put stores packet i of the block; mem is the buffer that data lie in, nil where they
// came as bytes.
func (n *Node) put(b *block, i int, data []byte, mem *buffer) {
	if mem.has(b, i, data) {
		if b.mem == mem {
			return
		}
		if b.mem == nil {
			mem.refs++
			b.mem, b.buf, b.shared = mem, mem.bytes, true
			return
		}
	}
	if b.mem == nil || b.shared {
		n.ownBuffer(b)
	}
	copy(b.buf[b.offset(i):], data)
}

// blockHash returns the hash of the block's bytes. That of a buffer that was lent is
// known: nobody writes to it.
func (b *block) blockHash() uint64 {
	if b.mem.hashed {
		return b.mem.hash
	}
	return blockHash(b.buf)
}

// dropBytes forgets the bytes of the block; memory stays set aside for it.
func (b *block) dropBytes() {
	if b.mem != nil {
		b.mem.release()
		b.mem, b.buf, b.shared = nil, nil, false
	}
}

// freeBuffer gives the block's memory back.
func (n *Node) freeBuffer(b *block) {
	b.dropBytes()
	n.memory -= b.room
	b.room = 0
}

// release is called when a block or message refers to the buffer no more. Nobody else
// doing so, it waits for its next use. Of a class a node keeps at most as many free
// buffers as fill a quarter of the memory limit.
func (m *buffer) release() {
	if m.refs--; m.refs > 0 {
		return
	}
	n, class := m.home, bufferClass(cap(m.bytes))
	if vtime.Bytes(len(n.buffers[class])+1)*classSize(class) <= n.cfg.MemoryLimit/4 {
		n.buffers[class] = append(n.buffers[class], m)
	}
}
