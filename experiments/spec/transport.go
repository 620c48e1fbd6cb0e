package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The families of transports.
const (
	FamilyHop         = "hop"
	FamilyTCP         = "tcp"
	FamilyHopByHopTCP = "hop-by-hop-tcp"
	FamilyUDP         = "udp"
)

// Transport is the name of a transport, "family" or "family/variant"; the
// known ones are in TransportNames.
type Transport string

// Family returns the part of the name before the slash.
func (t Transport) Family() string {
	f, _, _ := strings.Cut(string(t), "/")
	return f
}

// Variant returns the part of the name after the slash: the congestion control
// of the TCP families, the changed mechanisms of Hop.
func (t Transport) Variant() string {
	_, v, _ := strings.Cut(string(t), "/")
	return v
}

// Has reports whether a variant is among those after the slash.
func (t Transport) Has(variant string) bool {
	return slices.Contains(strings.Split(t.Variant(), "+"), variant)
}

// Transports holds the options of each family; they apply to all flows of the
// family.
type Transports struct {
	// Hop holds the options of Hop.
	Hop HopOptions `key:"hop"`
	// TCP holds the options of end-to-end TCP.
	TCP TCPOptions `key:"tcp"`
	// HopByHopTCP holds the options of hop-by-hop TCP.
	HopByHopTCP RelayOptions `key:"hop-by-hop-tcp"`
	// UDP holds the options of UDP.
	UDP UDPOptions `key:"udp"`
}

// HopOptions are the options of Hop (Li et al., NSDI 2009, section 3).
type HopOptions struct {
	// Block is the size of a block, at most 1 MiB.
	Block vtime.Bytes `key:"block" min:"1kB" max:"1MiB" default:"1MiB"`
	// H is the number of blocks of one flow that a relay may hold before it makes the sender upstream wait.
	H int `key:"h" min:"1" max:"64" default:"1"`
	// Backpressure makes the sender upstream wait at h blocks; false is what the transport hop/no-backpressure does.
	Backpressure bool `key:"backpressure" default:"true"`
	// Withholding grants one large block at a time at a receiver; false is what the transport hop/no-withholding does.
	Withholding bool `key:"withholding" default:"true"`
	// Window is the number of blocks of one flow that may be under way between source and destination.
	Window int `key:"window" min:"1" max:"64" default:"32"`
	// Payload is the number of block bytes in a data packet.
	Payload vtime.Bytes `key:"payload" min:"128B" max:"1432B" default:"1400B"`
}

// TCPOptions are the options of end-to-end TCP; what is left out is the
// kernel's own choice.
type TCPOptions struct {
	// MSS is the largest segment that a connection sends (TCP_MAXSEG).
	MSS vtime.Bytes `key:"mss" min:"88B" max:"1460B"`
	// SendBuffer fixes the socket's send buffer (SO_SNDBUF); left out, the kernel tunes it.
	SendBuffer vtime.Bytes `key:"send-buffer" min:"4KiB" max:"64MiB"`
	// ReceiveBuffer fixes the socket's receive buffer (SO_RCVBUF); left out, the kernel tunes it.
	ReceiveBuffer vtime.Bytes `key:"receive-buffer" min:"4KiB" max:"64MiB"`
	// ReceiveWindow is the most that a receiver offers, in segments (TCP_WINDOW_CLAMP); left out, the receiver decides.
	ReceiveWindow int `key:"receive-window" min:"1" max:"65535"`
	// CwndCap is the most that a sender's congestion window grows to, in segments (the route metric RTAX_CWND, locked); left out, there is no cap.
	CwndCap int `key:"cwnd-cap" min:"1" max:"65535"`
}

// RelayOptions are the options of hop-by-hop TCP.
type RelayOptions struct {
	// RelayBuffer is the memory that a relay has for each flow; it stops reading when the buffer is full.
	RelayBuffer vtime.Bytes `key:"relay-buffer" min:"64KiB" max:"64MiB" default:"1MiB"`
}

// UDPOptions are the options of UDP.
type UDPOptions struct {
	// Rate is the rate of the application's data; left out, the sender keeps the queue full.
	Rate vtime.BitRate `key:"rate" min:"1kbit" max:"10gbit"`
	// Packet is the payload of one datagram.
	Packet vtime.Bytes `key:"packet" min:"64B" max:"1472B" default:"1400B"`
}

// transportFamily is one line of the table of transports. Adding a transport
// is adding a line here and a driver to each back end that carries it.
type transportFamily struct {
	name      string
	variants  []string // allowed after the slash
	bare      bool     // the name without a slash is a transport too
	joined    bool     // several variants may be joined by "+"
	workloads []WorkloadKind
}

var transportTable = []transportFamily{
	{FamilyHop, hopVariants, true, true, []WorkloadKind{Continual, Sized}},
	{FamilyTCP, congestionControls, false, false, []WorkloadKind{Continual, Sized}},
	{FamilyHopByHopTCP, congestionControls, false, false, []WorkloadKind{Continual, Sized}},
	{FamilyUDP, nil, true, false, []WorkloadKind{Continual}},
}

// hopVariants are Hop with one mechanism changed, for its component breakdown.
var hopVariants = []string{
	"no-withholding", "no-backpressure", "arq", "no-txop", "no-vbsyn", "no-microblock",
	"poll", "regrant", "no-quick-bsyn", "literal-timeout", "unordered",
}

// congestionControls are the names that Linux gives its congestion controls
// (net/ipv4/tcp_*.c). Whether a kernel has one is seen when the run starts.
var congestionControls = []string{
	"bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv",
	"reno", "scalable", "vegas", "veno", "westwood", "yeah",
}

// TransportNames lists the transports that a file may name; those of a family
// that joins variants are listed with one each.
func TransportNames() []string {
	var names []string
	for _, f := range transportTable {
		if f.bare {
			names = append(names, f.name)
		}
		for _, v := range f.variants {
			names = append(names, f.name+"/"+v)
		}
	}
	return names
}

// transportHelp is TransportNames for people.
var transportHelp = "hop, hop/VARIANT (" + strings.Join(hopVariants, ", ") + "; joined by +), tcp/CC, hop-by-hop-tcp/CC (CC: " +
	strings.Join(congestionControls, ", ") + "), udp"

// family returns the table's line for a transport, nil when the name is not
// known.
func (t Transport) family() *transportFamily {
	for i := range transportTable {
		f := &transportTable[i]
		if f.name != t.Family() {
			continue
		}
		variant, found := t.Variant(), strings.Contains(string(t), "/")
		if !found {
			if f.bare {
				return f
			}
			return nil
		}
		parts := []string{variant}
		if f.joined {
			parts = strings.Split(variant, "+")
		}
		for j, p := range parts {
			if !slices.Contains(f.variants, p) || slices.Contains(parts[:j], p) {
				return nil
			}
		}
		return f
	}
	return nil
}

// check reports what makes a combination of transport and workload senseless;
// nil when it makes sense.
func (t Transport) check(w Workload) error {
	f := t.family()
	if f == nil || slices.Contains(f.workloads, w.Kind) || w.Kind == "" {
		return nil
	}
	return fmt.Errorf("%s cannot carry the workload %s: it does not promise that all data arrives", t, w.Kind)
}
