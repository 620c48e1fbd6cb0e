package wifi

import "github.com/hopbed/hopbed/netem/vtime"

// ACStats counts what one queue did.
type ACStats struct {
	Enqueued    uint64 // frames taken
	BytesQueued vtime.Bytes
	Attempts    uint64 // data frames put on the air, retransmissions included
	Retries     uint64 // of these, retransmissions
	RTS         uint64 // RTS frames put on the air
	// Outcomes counts frames by what became of them; drops are RetryLimit,
	// NodeDown and Overflow.
	Outcomes   [NumOutcome]uint64
	BytesDone  vtime.Bytes // MSDU bytes of Acked and Sent frames
	Failures   uint64      // attempts whose ACK or CTS did not come
	Collisions uint64      // unicast data frames lost at their receiver to interference, or because it transmitted or was locked on another frame
	NoiseLoss  uint64      // unicast data frames lost at their receiver to noise alone, or out of its reach
	AckLost    uint64      // attempts whose data frame was received, but not its ACK by the sender
	Internal   uint64      // accesses lost to a higher queue of the node
	MaxQueue   int         // most packets at once
	// QueueTime is the integral of the queue length: packets × nanoseconds. Its
	// mean is QueueTime / interval.
	QueueTime vtime.Duration
	Delay     vtime.Duration // sum over Acked and Sent frames of the time since Enqueue
	AirTime   vtime.Duration // of data and RTS frames
}

// NodeStats are the counters of one node since NewMedium or ResetStats.
type NodeStats struct {
	Since, Until vtime.Time
	TxTime       vtime.Duration // transmitting anything
	RxTime       vtime.Duration // locked on a frame
	BusyTime     vtime.Duration // physical carrier sense busy, TxTime and RxTime included
	Delivered    uint64         // frames handed up
	BytesUp      vtime.Bytes    // their MSDU bytes
	Duplicates   uint64         // frames received again after a lost ACK
	LossInjected uint64         // frames received, then dropped by SetLoss
	RxErrors     uint64         // receptions that ended with a wrong FCS (EIFS follows)
	Captured     uint64         // receptions abandoned for a stronger frame
	AC           [NumAC]ACStats
}
