package wifi

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Broadcast is the destination of frames for every node in range.
const Broadcast = -1

// Frame is one MSDU on its way through the medium. Frames come from
// Medium.NewFrame; Enqueue takes them over, whatever it returns.
type Frame struct {
	// Src and Dst are node indices; Dst may be Broadcast.
	Src, Dst int
	AC       AC
	// Len is the length of the MSDU without LLC/SNAP: the IP packet's length. The
	// MAC adds LLC/SNAP (8), its header and the FCS (4).
	Len vtime.Bytes
	// Data holds the packet in live runs. Its capacity stays with the frame when
	// the frame returns to the pool.
	Data []byte
	// Payload is the caller's own object in model runs. It is dropped when the
	// frame returns to the pool.
	Payload any

	// Enqueued is when Enqueue took the frame; Attempts counts the
	// exchanges begun for it (an RTS that stays unanswered is one).
	Enqueued vtime.Time
	Attempts int

	air      vtime.Duration // time on the air
	seq      uint32
	failures int    // towards the retry limit; internal collisions included
	sent     bool   // its data was on the air before
	next     *Frame // pool or queue
	pooled   bool
}

// Outcome says what became of a frame at its sender.
type Outcome uint8

// The outcomes. Sink.Done reports all but Overflow, which Enqueue's result
// reports; all index NodeStats' counters.
const (
	Acked      Outcome = iota // its ACK arrived
	Sent                      // sent where no ACK is asked: no-ACK queue or broadcast
	RetryLimit                // dropped after Retries+1 failed attempts
	NodeDown                  // dropped because its node went down
	Overflow                  // refused: the queue was full
	NumOutcome
)

var outcomeNames = [NumOutcome]string{"acked", "sent", "retry-limit", "node-down", "overflow"}

// String returns the outcome's name as stored with results.
func (o Outcome) String() string {
	if o < NumOutcome {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome%d", uint8(o))
}

// Sink takes what leaves the medium. Both calls happen inside an event (or
// inside SetNodeUp); they may call Enqueue. The frame is valid until the call
// returns, and must not be changed.
type Sink interface {
	// Deliver hands a received frame up at node: FCS right, not a duplicate.
	Deliver(now vtime.Time, node int, f *Frame)
	// Done reports that the frame has left its sender's queue.
	Done(now vtime.Time, f *Frame, o Outcome)
}

// QueueState is a snapshot of one transmit queue.
type QueueState struct {
	Packets     int         // waiting or in transmission
	Bytes       vtime.Bytes // their MSDU lengths
	FreePackets int         // room left by the packet limit
}
