package board

import (
	"fmt"
	"sync/atomic"
)

// NumAC is the number of access categories of a radio, in the order background,
// best effort, video, voice (802.11-2020 §10.23.2.1, lowest priority first).
const NumAC = 4

// MaxNodes bounds a board: 64 bytes × 4 queues × 65,536 nodes are 16 MiB.
const MaxNodes = 1 << 16

// The memory is a header of one cell followed by NumAC cells per node. Every
// field is a 32-bit word in the host's byte order: 64-bit atomics are emulated
// with a lock inside one process on 32-bit machines, so they would not be
// atomic between processes. Counters wrap; only differences mean something.
const (
	cellSize = 64 // one cache line, so that two queues never share one
	magic    = 0x62706f68
	version  = 1
)

// cell is one queue of one node.
type cell struct {
	arrived  atomic.Uint32 // frames that the emulator took from the device for this queue
	left     atomic.Uint32 // frames that left the queue: sent, given up or refused
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
	_       [cellSize - 12]byte
}

// State is a snapshot of one queue. The fields are read one after the other, so
// they may belong to moments a few instructions apart; in the order used,
// Queued is never too small for Arrived.
type State struct {
	Arrived  uint32 // frames taken from the device for this queue; wraps
	Left     uint32 // frames that left the queue, overflow included; wraps
	Overflow uint32 // frames refused because the queue was full; wraps
	Queued   int    // frames that wait, the one in transmission included
	Limit    int    // frames that the queue holds
}

// Free is the number of frames that the queue takes now.
func (s State) Free() int { return max(0, s.Limit-s.Queued) }

func (c *cell) state() State {
	// arrived before queued: the emulator raises queued first, so a frame is
	// never counted as arrived and yet missing from the queue.
	s := State{Arrived: c.arrived.Load(), Left: c.left.Load(), Overflow: c.overflow.Load()}
	s.Queued = int(c.queued.Load())
	s.Limit = int(c.limit.Load())
	return s
}

func size(nodes int) int { return cellSize * (1 + nodes*NumAC) }

func checkNode(node, nodes int) error {
	if node < 0 || node >= nodes {
		return fmt.Errorf("queue board: node %d does not exist (the board has %d nodes)", node, nodes)
	}
	return nil
}
