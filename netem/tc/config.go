package tc

import (
	"net/netip"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Link is what the kernel is to emulate at one interface.
type Link struct {
	Interface string `json:"interface"`
	// Egress are the classes of what leaves, Ingress of what arrives (through an
	// ifb device). The first class that fits a packet takes it; one without Peers
	// fits all, and traffic that fits none is left alone.
	Egress  []Class `json:"egress,omitempty"`
	Ingress []Class `json:"ingress,omitempty"`
}

// MaxClasses bounds the classes of one direction of a link.
const MaxClasses = 900

// Class is the emulation of one direction towards, or from, some peers. They
// share its rate and its queue.
type Class struct {
	// Peers are destinations of egress, sources of ingress; none = everything,
	// what is not IP included.
	Peers []netip.Prefix `json:"peers,omitempty"`
	Shape
}

// Shape is the emulation itself. The zero value does nothing. Its meaning is
// that of pipe.Config wherever both have a field; FromPipe converts one.
type Shape struct {
	Rate     vtime.BitRate `json:"rate,omitempty"`     // of whole bytes per second: the kernel cuts off the rest
	Overhead vtime.Bytes   `json:"overhead,omitempty"` // on the link, per IP packet; the interface's own header is not counted
	// Shaper chooses what keeps the rate: netem where the kernel has it and the
	// queue is counted in packets, else tbf.
	Shaper Shaper         `json:"shaper,omitempty"`
	Delay  vtime.Duration `json:"delay,omitempty"`
	// Jitter precedes the queue, as netem's delay does.
	Jitter pipe.Jitter `json:"jitter,omitzero"`
	Loss   pipe.Loss   `json:"loss,omitzero"`
	// LossAfterQueue lets a lost packet occupy queue and capacity first.
	LossAfterQueue bool `json:"loss_after_queue,omitempty"`
	// LossStates is netem's model of four states, in place of Loss.
	LossStates *LossStates    `json:"loss_states,omitempty"`
	Reorder    pipe.Reorder   `json:"reorder,omitzero"`
	Duplicate  vtime.Fraction `json:"duplicate,omitempty"` // the copies pass loss, delay and queue themselves
	Corrupt    vtime.Fraction `json:"corrupt,omitempty"`   // one bit is inverted
	// Limit and LimitBytes are the length of the queue that waits for the rate, the
	// packet in service included. Where both are 0 it is sized: one second of the
	// rate at most, the rate × delay at least (SizedLimit), never the kernel's
	// silent default of 1,000. Without a rate Limit is that of packets on their way.
	Limit      int         `json:"limit,omitempty"`
	LimitBytes vtime.Bytes `json:"limit_bytes,omitempty"`
	Seed       uint64      `json:"seed,omitempty"` // of loss, jitter and so on; Linux 6.6
	// Slots, where set, releases packets in bursts, as a radio with txops does.
	Slots *Slots `json:"slots,omitempty"`
}

// Shaper is what keeps a rate.
type Shaper string

// The shapers. HTB keeps the rate of classes that have nothing but a rate and a
// queue.
const (
	AnyShaper   Shaper = ""
	NetemShaper Shaper = "netem"
	TBFShaper   Shaper = "tbf"
	HTBShaper   Shaper = "htb"
)

// LossStates are the transitions of netem's loss model of four states (Salsano,
// Ludovici, Ordine, Giannuzzi 2012): 1 good reception, 2 good reception in a
// burst, 3 loss in a burst, 4 independent loss.
type LossStates struct {
	P13 vtime.Fraction `json:"p13"`
	P31 vtime.Fraction `json:"p31"`
	P32 vtime.Fraction `json:"p32"`
	P23 vtime.Fraction `json:"p23"`
	P14 vtime.Fraction `json:"p14"`
}

// Slots is netem's slotting: what is due is released at the next slot, and slots
// are Min to Max apart.
type Slots struct {
	Min     vtime.Duration `json:"min"`
	Max     vtime.Duration `json:"max"`
	Packets int            `json:"packets,omitempty"` // most in a slot; 0 = no limit
	Bytes   vtime.Bytes    `json:"bytes,omitempty"`
}

// Counters is what a class did, as the kernel counts it.
type Counters struct {
	Interface string         `json:"interface"`
	Ingress   bool           `json:"ingress,omitempty"`
	Class     int            `json:"class"` // index in the direction
	Peers     []netip.Prefix `json:"peers,omitempty"`
	Packets   uint64         `json:"packets"` // that went on, copies included
	Bytes     uint64         `json:"bytes"`   // of them, link headers included
	Lost      uint64         `json:"lost,omitempty"`
	Dropped   uint64         `json:"dropped,omitempty"` // by a full queue
	Backlog   int            `json:"backlog_packets"`   // waiting, or on their way
}
