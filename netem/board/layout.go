package board

import (
	"fmt"
	"sync/atomic"
)

// NumAC is the number of access categories of a radio, in the order background,
// best effort, video, voice (802.11-2020 §10.23.2.1, lowest priority first).
const NumAC = 4

// MaxNodes and MaxPipes bound a board: 64 bytes × 4 queues × 65,536 nodes are
// 16 MiB, 64 bytes × 2 directions × 65,536 pipes 8 MiB.
const (
	MaxNodes = 1 << 16
	MaxPipes = 1 << 16
)

// PipeQueue is the number of the queue of a node's pipe interface.
func PipeQueue(slot int) int { return NumAC + slot }

// Unlimited is the limit of a queue that nothing bounds, or in which nothing
// ever waits.
const Unlimited = 1 << 30

// The memory is a header of one cell followed by NumAC cells per node, the
// queues of the radios, and by two cells per pipe, one for each direction. Every
// field is a 32-bit word in the host's byte order: 64-bit atomics are emulated
// with a lock inside one process on 32-bit machines, so they would not be
// atomic between processes. Counters wrap; only differences mean something.
const (
	cellSize = 64 // one cache line, so that two queues never share one
	magic    = 0x62706f68
	version  = 2
)

// cell is one queue: of a node's radio, or of one direction of a pipe.
type cell struct {
	arrived  atomic.Uint32 // frames that the emulator took from the device for this queue
	left     atomic.Uint32 // frames that left the queue: sent, given up, refused or lost on entry
	queued   atomic.Uint32 // frames that wait now, the one in transmission included
	limit    atomic.Uint32 // frames that the queue holds
	overflow atomic.Uint32 // frames refused because the queue was full
	watch    atomic.Uint32 // 0: nobody waits; n+1: wake the agent when queued ≤ n
	_        [cellSize - 24]byte
}

// header describes the memory to a process that maps it.
type header struct {
	magic   atomic.Uint32
	version atomic.Uint32
	nodes   atomic.Uint32
	pipes   atomic.Uint32
	_       [cellSize - 16]byte
}

// State is a snapshot of one queue. The fields are read one after the other, so
// they may belong to moments a few instructions apart; in the order used,
// Queued is never too small for Arrived.
type State struct {
	Arrived  uint32 // frames taken from the device for this queue; wraps
	Left     uint32 // frames that left the queue, overflow and losses on entry included; wraps
	Overflow uint32 // frames refused because the queue was full; wraps
	Queued   int    // frames that wait, the one in transmission included
	Limit    int    // frames that the queue holds
}

// Free is the number of frames that the queue takes now.
func (s State) Free() int { return max(0, s.Limit-s.Queued) }

func (c *cell) arrive(n, refused, queued int) {
	c.queued.Store(uint32(queued)) // before arrived: see state
	if refused > 0 {
		c.overflow.Add(uint32(refused))
		c.left.Add(uint32(refused))
	}
	c.arrived.Add(uint32(n))
}

// leave reports whether the agent waits for a queue as short as this; its wish
// is then used up.
func (c *cell) leave(n, queued int) bool {
	c.queued.Store(uint32(queued))
	c.left.Add(uint32(n))
	w := c.watch.Load()
	return w != 0 && uint32(queued) < w && c.watch.CompareAndSwap(w, 0)
}

func (c *cell) state() State {
	// arrived before queued: the emulator raises queued first, so a frame is
	// never counted as arrived and yet missing from the queue.
	s := State{Arrived: c.arrived.Load(), Left: c.left.Load(), Overflow: c.overflow.Load()}
	s.Queued = int(c.queued.Load())
	s.Limit = int(c.limit.Load())
	return s
}

func size(nodes, pipes int) int { return cellSize * (1 + nodes*NumAC + 2*pipes) }

func checkNode(node, nodes int) error {
	if node < 0 || node >= nodes {
		return fmt.Errorf("queue board: node %d does not exist (the board has %d nodes)", node, nodes)
	}
	return nil
}
