package spec

import (
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The families of transports.
const (
	FamilyHop         = "hop"
	FamilyTCP         = "tcp"
	FamilyHopByHopTCP = "hop-by-hop-tcp"
)

// Family returns the part of the name before the slash.
func (t Transport) Family() string {
	f, _, _ := strings.Cut(string(t), "/")
	return f
}

// Variant returns the part of the name after the slash: the congestion control
// of the TCP families.
func (t Transport) Variant() string {
	_, v, _ := strings.Cut(string(t), "/")
	return v
}

// Transports holds the options of each family; they apply to all flows of the
// family.
type Transports struct {
	// Hop holds the options of Hop.
	Hop HopOptions `key:"hop"`
	// HopByHopTCP holds the options of hop-by-hop TCP.
	HopByHopTCP RelayOptions `key:"hop-by-hop-tcp"`
}

// HopOptions are the options of Hop (Li et al., NSDI 2009).
type HopOptions struct {
	// Block is the size of a block.
	Block vtime.Bytes `key:"block" min:"1400B" max:"1MiB"`
	// H is the number of blocks that a node may hold for a flow before it withholds backpressure's permission upstream.
	H int `key:"h" min:"1" max:"64"`
	// Backpressure limits the blocks held by a node to h.
	Backpressure bool `key:"backpressure"`
	// Withholding grants one block at a time at a receiver.
	Withholding bool `key:"withholding"`
}

// RelayOptions are the options of hop-by-hop TCP.
type RelayOptions struct {
	// RelayBuffer is the memory that a relay has for each flow; it stops reading when full.
	RelayBuffer vtime.Bytes `key:"relay-buffer" min:"4KiB" max:"64MiB"`
}

// TransportNames lists the transports that a file may name.
func TransportNames() []string {
	var names []string
	for _, e := range transportTable {
		names = append(names, e.name)
	}
	return names
}

type transportEntry struct {
	name      string
	workloads []WorkloadKind
}

// congestionControls are the names that Linux has given its congestion
// controls (net/ipv4/tcp_*.c). Whether a kernel has one is seen when the run
// starts.
var congestionControls = []string{
	"bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv",
	"reno", "scalable", "vegas", "veno", "westwood", "yeah",
}

var transportTable = buildTransports()

func buildTransports() []transportEntry {
	bulk := []WorkloadKind{Continual, Sized}
	table := []transportEntry{{FamilyHop, bulk}}
	for _, family := range []string{FamilyTCP, FamilyHopByHopTCP} {
		for _, cc := range congestionControls {
			table = append(table, transportEntry{family + "/" + cc, bulk})
		}
	}
	return table
}
