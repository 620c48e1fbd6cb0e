package hopnet

import (
	"sync"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// Bytes wait in chunks: those of a stream's writer until they become a block,
// and whole blocks until they are read. The large ones are used again.
const (
	writeChunk = 128 << 10
	smallChunk = 4 << 10
)

var (
	writeChunks = sync.Pool{New: func() any { return new([writeChunk]byte) }}
	blockChunks = sync.Pool{New: func() any { return new([hop.MaxBlockSize]byte) }}
)

// newWriteChunk returns an empty chunk that takes n bytes, writeChunk at most.
func newWriteChunk(n int) []byte {
	if n <= smallChunk {
		return make([]byte, 0, smallChunk)
	}
	return writeChunks.Get().(*[writeChunk]byte)[:0]
}

// newBlockChunk returns a chunk of n bytes for a received block.
func newBlockChunk(n int) []byte {
	if n <= int(hop.MaxBlockSize)/2 {
		return make([]byte, n)
	}
	return blockChunks.Get().(*[hop.MaxBlockSize]byte)[:n]
}

// release gives a chunk back that nobody looks at any more. It must be whole:
// not a part of one.
func release(c []byte) {
	switch c = c[:cap(c)]; cap(c) {
	case writeChunk:
		writeChunks.Put((*[writeChunk]byte)(c))
	case int(hop.MaxBlockSize):
		blockChunks.Put((*[hop.MaxBlockSize]byte)(c))
	}
}
