package wifi

import (
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Medium runs the MACs of all nodes over one channel.
type Medium struct {
	eng *des.Engine
}

// NewMedium returns the medium of the channel's nodes. macs has one entry per
// node, or one entry for all.
func NewMedium(eng *des.Engine, seed uint64, ch *Channel, macs []MAC, sink Sink) (*Medium, error) {
	panic("wip")
}

// NewFrame returns an empty frame from the pool; Data keeps the capacity of its
// last use with length 0.
func (m *Medium) NewFrame() *Frame { panic("wip") }

// FreeFrame returns to the pool a frame that was not enqueued.
func (m *Medium) FreeFrame(f *Frame) { panic("wip") }

// Enqueue hands f to the queue f.AC of node f.Src at the engine's Now and takes
// it over. False: the queue was full; the frame is counted as Overflow and back
// in the pool, and Sink.Done is not called.
func (m *Medium) Enqueue(f *Frame) bool { panic("wip") }

// Queue returns the state of one transmit queue.
func (m *Medium) Queue(node int, ac AC) QueueState { panic("wip") }

// NextVisible returns a lower bound of the time of the next Deliver or Done,
// provided nothing is enqueued and no node switched before it.
func (m *Medium) NextVisible() vtime.Time { panic("wip") }

// Stats returns the counters of a node, brought up to Now. They stay the
// medium's: copy them to keep them.
func (m *Medium) Stats(node int) *NodeStats { panic("wip") }

// ResetStats sets the counters of all nodes to zero (the end of a warm-up).
func (m *Medium) ResetStats() { panic("wip") }

// SetLoss drops a share p of the frames from → to after the receiver's MAC has
// taken and acknowledged them. It returns an error when p is not in 0…1 or a
// node does not exist.
func (m *Medium) SetLoss(from, to int, p vtime.Fraction) error { panic("wip") }

// SetNodeUp switches a node's interface. Going down empties its queues
// (NodeDown) and truncates what it transmits.
func (m *Medium) SetNodeUp(node int, up bool) { panic("wip") }
