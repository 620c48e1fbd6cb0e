package hop

import "github.com/hopbed/hopbed/netem/vtime"

// rxState is a block's state on the receive side (DESIGN.md §4).
type rxState uint8

const (
	rxRequested rxState = iota // announced, withheld: no buffer
	rxGranted                  // the sender was told to send
	rxSuspended                // the grant expired, what has come is kept
	rxComplete                 // every packet is here and the hash matches
)

// txState is a block's state on the send side (DESIGN.md §3).
type txState uint8

const (
	txNone     txState = iota // not complete here, or nothing to send
	txHeld                    // complete, waits for its turn
	txRequest                 // BSYN out, not granted
	txSending                 // packets of the round left to give to the MAC
	txDraining                // all given, not all have left the MAC
	txPolling                 // waiting for the round's bitmap
	txPassed                  // the next hop has it: cached, or the source's copy
)

// tokenState is the state of a block's VBSYN.
type tokenState uint8

const (
	tokenNone tokenState = iota
	tokenOut             // sent or to be sent, not answered
)

// What a block owes the neighbours; each is one item in Node.control.
const (
	oweBSYN = 1 << iota
	oweBACK
	oweVBSYN
)

// block is one block at one node, from its first announcement until nothing
// here depends on it any more.
type block struct {
	f       *flow
	id      BlockID
	size    int
	payload int // bytes per packet but the last
	count   int // packets
	hash    uint64
	last    bool
	micro   bool
	token   uint16 // the virtual retransmission it arrived by, passed on in BSYNs
	base    BlockID
	sent    vtime.Time  // the source's clock at the first announcement
	room    vtime.Bytes // memory that is set aside for it; 0 while only requested
	mem     *buffer     // of its bytes; nil before the first one
	buf     []byte      // those of mem
	shared  bool        // mem is another node's: it is whole, and only read
	own     vtime.Bytes // what it adds to Node.ownBytes: source's blocks
	owes    uint8       // oweBSYN …

	// Receive side.
	rx        rxState
	from      NodeID // who announced it last
	rxAttempt uint16
	viaToken  bool // the last announcement was a VBSYN
	have      bitmap
	nhave     int
	heard     bool // the sender was heard since the grant
	lastHeard vtime.Time
	firstReq  vtime.Time
	lastReq   vtime.Time
	passedBy  int // grants given to others while it waited
	stale     bool
	rxTimer   timer

	// Send side.
	tx         txState
	next       NodeID
	port       *port // towards next
	attempt    uint16
	resend     bool // passed once already: does not count against H
	granted    bool
	noticed    bool // the next hop has noted the request (Config.Notice)
	round      int  // rounds of data in this transfer
	todo       bitmap
	ntodo      int
	cursor     int
	drainMark  uint64 // ordinal of its last packet in the MAC's queue
	tries      int    // BSYNs sent in this attempt
	bsynAt     vtime.Time
	bsynLast   vtime.Time // its last copy
	bsynMark   uint64     // ordinal of its last BSYN or VBSYN in the MAC's queue …
	bsynPort   *port      // … of this port; nil: none was sent
	lastAnswer vtime.Time
	interval   vtime.Duration
	txTimer    timer

	// Virtual retransmission.
	tok         tokenState
	tokAttempt  uint16 // of the VBSYN that this node sends
	tokSeen     uint16 // newest that this node accepted
	tokAny      bool   // tokSeen is valid
	tokNext     NodeID
	tokTTL      uint8
	tokInterval vtime.Duration
	vtTimer     timer

	// Cache list (blocks passed on), oldest first.
	cached     bool
	prev, succ *block
}

// offset and length of packet i in the block.
func (b *block) offset(i int) int { return i * b.payload }
func (b *block) length(i int) int { return min(b.payload, b.size-i*b.payload) }

// active reports whether the block is between its BSYN and the next hop's
// full bitmap.
func (b *block) active() bool { return b.tx >= txRequest && b.tx <= txPolling }

// complete reports whether every byte is here.
func (b *block) complete() bool { return b.rx == rxComplete }

// newBlock takes a block from the pool and puts it into its flow, ordered by
// id. The caller makes sure that the flow has none of this id.
func (n *Node) newBlock(f *flow, id BlockID) *block {
	var b *block
	if k := len(n.pool); k > 0 {
		b = n.pool[k-1]
		n.pool = n.pool[:k-1]
	} else {
		b = new(block)
	}
	b.f, b.id = f, id
	b.rxTimer.kind, b.txTimer.kind, b.vtTimer.kind = timerReceive, timerSend, timerVirtual
	b.rxTimer.b, b.txTimer.b, b.vtTimer.b = b, b, b
	i := len(f.blocks)
	f.blocks = append(f.blocks, b)
	for ; i > 0 && f.blocks[i-1].id > id; i-- {
		f.blocks[i] = f.blocks[i-1]
	}
	f.blocks[i] = b
	return b
}

// free takes the block out of everything and returns its memory.
func (n *Node) free(b *block) {
	n.stopReceiving(b)
	n.stopSending(b)
	n.timers.stop(&b.vtTimer)
	n.uncache(b)
	n.dropControl(b, oweBSYN|oweBACK|oweVBSYN)
	n.freeBuffer(b)
	n.ownBytes -= b.own
	f := b.f
	for i, x := range f.blocks {
		if x == b {
			copy(f.blocks[i:], f.blocks[i+1:])
			f.blocks[len(f.blocks)-1] = nil
			f.blocks = f.blocks[:len(f.blocks)-1]
			break
		}
	}
	have, todo := b.have[:0], b.todo[:0]
	*b = block{have: have, todo: todo}
	n.pool = append(n.pool, b)
}
