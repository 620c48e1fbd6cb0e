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
	// ifb device). The first class that fits a packet takes it; one with an
	// invalid Peer fits all, and traffic that fits none is left alone.
	Egress  []Class `json:"egress,omitempty"`
	Ingress []Class `json:"ingress,omitempty"`
}

// Class is the emulation of one direction towards, or from, one peer.
type Class struct {
	Peer netip.Prefix `json:"peer,omitzero"` // destination of egress, source of ingress; invalid = everything
	Shape
}

// Shape is the emulation itself. The zero value does nothing. Its meaning is
// that of pipe.Config wherever both have a field; Config.Netem converts one.
type Shape struct {
	Rate      vtime.BitRate  `json:"rate,omitempty"`
	Overhead  vtime.Bytes    `json:"overhead,omitempty"` // per packet
	Delay     vtime.Duration `json:"delay,omitempty"`
	Jitter    pipe.Jitter    `json:"jitter,omitzero"`
	Loss      pipe.Loss      `json:"loss,omitzero"`
	Reorder   pipe.Reorder   `json:"reorder,omitzero"`
	Duplicate vtime.Fraction `json:"duplicate,omitempty"`
	Corrupt   vtime.Fraction `json:"corrupt,omitempty"`
	// Limit is the length of the queue in packets; 0 = sized from rate × delay
	// (never the kernel's silent default of 1,000).
	Limit int    `json:"limit,omitempty"`
	Seed  uint64 `json:"seed,omitempty"` // where the kernel has it (6.6)
	// Slots, where set, releases packets in bursts, as a radio with txops does.
	Slots *Slots `json:"slots,omitempty"`
}

// Slots is netem's slotting.
type Slots struct {
	Min     vtime.Duration `json:"min"`
	Max     vtime.Duration `json:"max"`
	Packets int            `json:"packets,omitempty"` // most in a slot; 0 = no limit
	Bytes   vtime.Bytes    `json:"bytes,omitempty"`
}

// Counters is what a class did, as the kernel counts it.
type Counters struct {
	Interface string       `json:"interface"`
	Ingress   bool         `json:"ingress,omitempty"`
	Peer      netip.Prefix `json:"peer,omitzero"`
	Packets   uint64       `json:"packets"`
	Bytes     uint64       `json:"bytes"`
	Dropped   uint64       `json:"dropped"` // by the queue's limit and, as netem counts, by its loss together
	Overlimit uint64       `json:"overlimit"`
	Backlog   int          `json:"backlog_packets"`
}
