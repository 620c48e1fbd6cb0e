package hop

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

// NodeID names a node on the wire, end to end and hop by hop.
type NodeID uint32

// FlowID names a flow of its source. A source must not use an id again
// towards the same destination: the destination would take the new flow's
// blocks for repetitions.
type FlowID uint32

// BlockID numbers the blocks of a flow from 0.
type BlockID uint32

// FlowKey is a flow's identity in the network.
type FlowKey struct {
	Src, Dst NodeID
	Flow     FlowID
}

// Class is the way a packet is sent over the link (paper §4).
type Class uint8

// The classes. The driver maps them to MAC queues.
const (
	Data       Class = iota // background queue (BK), no ARQ, txop 8160 µs
	Control                 // voice queue (VO), with ARQ
	NumClasses = 2
)

// String returns "data" or "control".
func (c Class) String() string {
	if c == Control {
		return "control"
	}
	return "data"
}

// Port is one of a node's interfaces: 0 is the radio, 1, 2, … are wires. A
// radio has a FIFO queue for each class, of which control is served first; a
// wire has one FIFO queue for both.
type Port int

// RadioPort is the radio's port.
const RadioPort Port = 0

// Unlimited is what Radio.Free returns for a queue without limit.
const Unlimited = math.MaxInt32

// Packet is one datagram to send to the neighbour To through Port. Buf is the
// Hop packet (header and payload, without IP and UDP) and is valid until the
// next call of any method of the Node.
type Packet struct {
	To    NodeID
	Port  Port
	Class Class
	Buf   []byte
}

// Radio tells which interfaces the node has, and how much they take.
//
// Port returns the port through which packets to the neighbour leave. Ports are
// numbered without gaps, as far as possible: a Node keeps a record of each. It
// may change, as the routes may; a block in transfer moves to the new port at
// its next BSYN.
//
// Free is the number of packets that the port's queue for the class takes now;
// on a wire it is the same for both classes. A Node never sends more. A driver
// that knows when packets leave the queue calls TxDone; one that sees only the
// free space need not: the Node then takes the largest Free that it has seen
// for the queue's size. One of the two is needed (TxDone, where Free is
// Unlimited): with a Free that is constant and no TxDone the Node believes that
// data leave at once, BSYNs overtake them, and what the queue drops is given to
// it again and again.
type Radio interface {
	Port(to NodeID) Port
	Free(p Port, c Class) int
}

// Routes is the node's routing table. It may change at any time; a block in
// transfer moves to the new next hop at its next BSYN. It should keep a next
// hop while its link is down (paper §3.6): false means that no next hop is
// known at all, and the block waits.
type Routes interface {
	NextHop(dst NodeID) (NodeID, bool)
}

// Delivery is one block that reached its destination, exactly once and with
// its hash verified.
type Delivery struct {
	Flow  FlowKey
	Block BlockID
	Data  []byte         // valid until Deliver returns
	Last  bool           // the flow's last block
	Sent  vtime.Time     // the source's clock when it first announced the block
	Age   vtime.Duration // now − Sent: the block's delay where the clocks agree
}

// App is told what happens to flows that begin or end at this node. The
// methods are called from within the Node's methods and must not call back.
type App interface {
	// Accept is asked when a flow unknown so far announces its first block to
	// this node as its destination; false refuses the flow (it is asked again
	// at the next announcement).
	Accept(now vtime.Time, f FlowKey) bool
	// Deliver hands over a block: exactly once, in block order unless
	// Config.Unordered is set.
	Deliver(now vtime.Time, d Delivery)
	// Finished is called once: at the source when the Source has ended and
	// every block is acknowledged (end to end, or by the first hop with
	// Config.NoVirtual), at the destination when the last block and all before
	// it are delivered.
	Finished(now vtime.Time, f FlowKey)
	// Failed reports an error of the flow, such as a *CorruptError. The flow
	// goes on as well as it can.
	Failed(now vtime.Time, f FlowKey, err error)
}

// Sink is an App that accepts every flow and drops its blocks. Embed it to
// implement a part of App.
type Sink struct{}

// Accept accepts every flow.
func (Sink) Accept(vtime.Time, FlowKey) bool { return true }

// Deliver drops the block.
func (Sink) Deliver(vtime.Time, Delivery) {}

// Finished does nothing.
func (Sink) Finished(vtime.Time, FlowKey) {}

// Failed does nothing; the error is still counted in FlowStats.Corrupt.
func (Sink) Failed(vtime.Time, FlowKey, error) {}

// Source gives a flow's bytes, block by block.
type Source interface {
	// Next writes the next block's bytes into buf, as many as it has and
	// fit, and returns their number. The Node sends what it gets: it never
	// waits for a block to fill. n = 0 with last = false means that nothing is
	// there now: the Node asks again after Wake. last = true ends the flow
	// with this block; n = 0 with last = true is allowed only before any
	// block or after an earlier one, and ends the flow without a further one.
	Next(now vtime.Time, buf []byte) (n int, last bool)
}

// FlowOptions are the parameters of one flow at its source.
type FlowOptions struct {
	BlockSize vtime.Bytes // 0: Config.BlockSize
}

// Role is what a node is to a flow.
type Role uint8

// The roles.
const (
	Relay Role = iota
	SourceRole
	Destination
)

// String returns "relay", "src" or "dst".
func (r Role) String() string {
	switch r {
	case SourceRole:
		return "src"
	case Destination:
		return "dst"
	}
	return "relay"
}

// FlowStats is one flow's state and counters at one node. Counters are
// cumulative; the upper part is the state now.
type FlowStats struct {
	Key  FlowKey
	Role Role
	Used vtime.Time // when a packet of the flow was last taken

	Held     int // complete blocks here that have not been passed on
	Cached   int // blocks passed on and kept for virtual retransmission
	InFlight int // blocks being sent to the next hop (announced and not acknowledged)
	Unacked  int // source: blocks not acknowledged end to end
	Granted  int // blocks that this node is receiving under a grant
	Waiting  int // announcements that this node withholds an answer from
	// HeldBytes are the sizes of the Held blocks, at the source of the Unacked ones.
	HeldBytes vtime.Bytes

	SRTT     vtime.Duration // smoothed BSYN→BACK of granted blocks; 0 = none yet
	E2EDelay vtime.Duration // source: the latest block's round-trip delay; 0 = none yet

	Delivered      vtime.Bytes // destination: unique payload bytes, unfinished blocks included
	BlocksSent     uint64      // blocks passed on (acknowledged by the next hop)
	BlocksReceived uint64      // blocks completed here
	BlocksAcked    uint64      // source: blocks acknowledged end to end
	MicroBlocks    uint64      // micro-blocks that began (source) or were completed here
	BytesSent      vtime.Bytes // payload bytes sent, in data packets or behind a BSYN, repetitions included
	BytesAgain     vtime.Bytes // of which those sent again in a later round
	PacketsSent    uint64      // data packets
	Retransmitted  uint64      // data packets sent again in a later round
	DataAgain      uint64      // data packets sent of blocks that were passed on before (a token asked for them)
	Duplicates     uint64      // data packets received again
	Redundant      uint64      // of these, packets of blocks that were complete here
	Rounds         uint64      // rounds of data sent
	BSYNs          uint64      // BSYNs sent
	BSYNTimeouts   uint64      // BSYNs and VBSYNs repeated because no answer came
	BACKs          uint64      // BACKs sent
	Grants         uint64      // grants given
	GrantsExpired  uint64      // grants ended for silence
	Withheld       uint64      // BSYNs not answered because another block had the grant
	Blocked        uint64      // BSYNs not answered because of backpressure or memory
	Tokens         uint64      // VBSYNs sent
	Virtual        uint64      // blocks sent again because of a token
	Evicted        uint64      // cached blocks dropped for memory
	Corrupt        uint64      // blocks whose hash did not match
	DelaySum       vtime.Duration
	DelayCount     uint64 // destination: blocks in DelaySum (source clock to delivery)
}

// NodeStats counts what concerns no single flow.
type NodeStats struct {
	Flows          int
	MemoryUsed     vtime.Bytes // block buffers in use
	MemoryPeak     vtime.Bytes
	DataSent       uint64 // packets by class
	ControlSent    uint64
	Received       uint64 // packets accepted
	BadPackets     uint64 // packets refused by the parser
	Unexpected     uint64 // well-formed packets that fit no state here
	DrainsTimedOut uint64 // BSYNs released by Config.DrainTimeout
	NoRoute        uint64 // messages not sent for want of a next hop
	Tokens         uint64 // as in FlowStats, over all flows
	DataAgain      uint64
	Redundant      uint64
}
