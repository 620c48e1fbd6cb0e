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
	FamilyCoopTCP     = "coop-tcp"
	FamilyHopByHopTCP = "hop-by-hop-tcp"
	FamilyUDP         = "udp"
	FamilyBundle      = "bundle"
	FamilyIperf3      = "iperf3"
	FamilyIperf2      = "iperf2"
	FamilyExec        = "exec"
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

// External reports whether the transport is a program of its own, which needs a
// kernel: the back end of virtual time has none.
func (t Transport) External() bool {
	f := t.family()
	return f != nil && f.external
}

// HasDSCP reports whether flows[].dscp holds for the transport.
func (t Transport) HasDSCP() bool {
	f := t.family()
	return f != nil && f.dscp
}

// Transports holds the options of each family; they apply to all flows of the
// family.
type Transports struct {
	// Hop holds the options of Hop.
	Hop HopOptions `key:"hop"`
	// TCP holds the options of end-to-end TCP.
	TCP TCPOptions `key:"tcp"`
	// CoopTCP holds the options of cooperative TCP; those of its sockets are in tcp.
	CoopTCP CoopOptions `key:"coop-tcp"`
	// HopByHopTCP holds the options of hop-by-hop TCP.
	HopByHopTCP RelayOptions `key:"hop-by-hop-tcp"`
	// UDP holds the options of UDP.
	UDP UDPOptions `key:"udp"`
	// Bundle holds the options of the bundle relay.
	Bundle BundleOptions `key:"bundle"`
	// Iperf holds the options of iperf3 and iperf2.
	Iperf IperfOptions `key:"iperf"`
	// Exec holds the programs of the transport exec.
	Exec ExecOptions `key:"exec"`
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
	// SACK allows selective acknowledgements (RFC 2018; net.ipv4.tcp_sack of every node).
	SACK bool `key:"sack" default:"true"`
	// Timestamps allows the timestamps option (RFC 7323; net.ipv4.tcp_timestamps of every node), which takes 12 bytes of each segment.
	Timestamps bool `key:"timestamps" default:"true"`
	// QuickAck acknowledges every segment at once (the route attribute quickack); otherwise acknowledgements are delayed.
	QuickAck bool `key:"quick-ack" default:"false"`
}

// CoopOptions are the options of cooperative TCP (Hayakawa, Yamaguchi, Oguchi, DEIM
// 2015, C2-2).
type CoopOptions struct {
	// Bandwidth is what the access point carries of one station; n stations share it times n to the power of -0.15.
	Bandwidth vtime.BitRate `key:"bandwidth" min:"100kbit" max:"10gbit" default:"15.2mbit"`
	// Trigger says when windows are capped: when the round-trip time is 6 times its minimum, or always when there are several stations.
	Trigger CoopTrigger `key:"trigger" enum:"rtt|always" default:"rtt"`
	// Limit says how a live window is bounded: by a program in the kernel (BPF), by a sender that keeps little in the socket's queue, or by the one where it is to be had and else the other.
	Limit CoopLimit `key:"limit" enum:"auto|bpf|queue" default:"auto"`
}

// CoopTrigger is when cooperative TCP caps windows.
type CoopTrigger string

// The triggers.
const (
	TriggerRTT    CoopTrigger = "rtt"
	TriggerAlways CoopTrigger = "always"
)

// CoopLimit is how cooperative TCP bounds a live window.
type CoopLimit string

// RelayOptions are the options of hop-by-hop TCP.
type RelayOptions struct {
	// RelayBuffer is the memory that a relay has for each flow; it stops reading when the buffer is full.
	RelayBuffer vtime.Bytes `key:"relay-buffer" min:"64KiB" max:"64MiB" default:"1MiB"`
}

// UDPOptions are the options of UDP.
type UDPOptions struct {
	// Rate is the rate of a continual flow's data; left out, the sender keeps the queue full.
	Rate vtime.BitRate `key:"rate" min:"1kbit" max:"10gbit"`
	// Packet is the payload of one datagram.
	Packet vtime.Bytes `key:"packet" min:"64B" max:"1472B" default:"1400B"`
}

// BundleOptions are the options of the bundle relay: the bundle protocol 7 (RFC
// 9171) over TCPCLv4 (RFC 9174), a TCP connection for each hop.
type BundleOptions struct {
	// Bundle is the payload of a bundle of a continual or sized flow; a message of another workload is one bundle, or several where it is longer.
	Bundle vtime.Bytes `key:"bundle" min:"1kB" max:"64MiB" default:"1MiB"`
	// Storage is where a relay keeps the bundles that it has accepted: on disk they survive its restart.
	Storage BundleStorage `key:"storage" enum:"memory|disk" default:"memory"`
	// Limit is the most bytes of bundles that a relay keeps of a flow; one that is full receives no more until it has passed some on.
	Limit vtime.Bytes `key:"limit" min:"64KiB" max:"16GiB" default:"64MiB"`
}

// BundleStorage is where bundles are kept.
type BundleStorage string

// The storages of bundles.
const (
	StorageMemory BundleStorage = "memory"
	StorageDisk   BundleStorage = "disk"
)

// IperfOptions are the options of iperf3 and iperf2.
type IperfOptions struct {
	// Rate is the rate of the datagrams of iperf3/udp and iperf2/udp (-b); required there, since the programs' own is no experiment's choice.
	Rate vtime.BitRate `key:"rate" min:"1kbit" max:"10gbit"`
	// Packet is the payload of one datagram (-l).
	Packet vtime.Bytes `key:"packet" min:"64B" max:"1472B" default:"1400B"`
	// Window is the size of the sockets' buffers at both ends (-w); left out, the kernel tunes them.
	Window vtime.Bytes `key:"window" min:"4KiB" max:"64MiB"`
}

// ExecOptions name the programs that carry the flows of the transport exec. Each
// is a list of words, of which the first is the program; no shell reads it.
type ExecOptions struct {
	// Send is the program that runs at the source of each flow, with its arguments.
	Send []string `key:"send" pattern:"argument"`
	// Receive is the program that runs at the destination of each flow, with its arguments.
	Receive []string `key:"receive" pattern:"argument"`
	// Relay is the program that runs at each node between the ends of a flow, with its arguments; left out, the kernels forward.
	Relay []string `key:"relay" pattern:"argument"`

	// Dir is the folder of the experiment file, absolute, in which the programs
	// run; "" where the experiment is no file in a folder.
	Dir string
}

// VariantTXOP is the txop limit that the variant udp/txop gives to its queue where
// the file does not give it one above 0: the largest that MadWifi's field of 8 bits holds, which Hop's data has in the paper
// (Li et al., NSDI 2009, section 4).
const VariantTXOP = 8160 * vtime.Microsecond

// transportFamily is one line of the table of transports. Adding a transport
// is adding a line here and a driver to each back end that carries it.
type transportFamily struct {
	name     string
	variants []string // allowed after the slash
	bare     bool     // the name without a slash is a transport too
	joined   bool     // several variants may be joined by "+"
	carries  load
	dscp     bool // flows[].dscp holds for it
	external bool // a program of its own
	// pending is set while the family is in the file format and no agent carries
	// it: such a flow is refused, with this as the reason.
	pending string
}

var transportTable = []transportFamily{
	{name: FamilyHop, variants: hopVariants, bare: true, joined: true, carries: everything},
	{name: FamilyTCP, variants: congestionControls, carries: everything, dscp: true},
	{name: FamilyCoopTCP, variants: congestionControls, carries: everything, dscp: true},
	{name: FamilyHopByHopTCP, variants: congestionControls, carries: everything, dscp: true},
	{name: FamilyUDP, variants: udpVariants, bare: true, joined: true, carries: datagrams, dscp: true},
	{name: FamilyBundle, variants: congestionControls, carries: everything, dscp: true},
	{name: FamilyIperf3, variants: iperfVariants, carries: iperf3, dscp: true, external: true},
	{name: FamilyIperf2, variants: iperfVariants, carries: iperf2, dscp: true, external: true},
	{name: FamilyExec, bare: true, carries: programs, external: true},
}

// load says why a transport with a variant cannot carry a kind of workload; ""
// where it can.
type load func(variant string, kind WorkloadKind) (why string)

func everything(string, WorkloadKind) string { return "" }

func datagrams(_ string, kind WorkloadKind) string {
	switch kind {
	case Sized:
		return "it does not promise that all of a transfer arrives"
	case Web:
		return "it does not promise that all of a page arrives, and a user waits for the rest for ever"
	}
	return ""
}

func iperf2(variant string, kind WorkloadKind) string {
	switch {
	case kind == Continual:
		return ""
	case kind != Sized:
		return "iperf sends a stream or a number of bytes, and measures no messages"
	case variant == "udp":
		return datagrams(variant, kind)
	}
	return ""
}

// iperf3 ends a test of so many bytes (-n) when its client has written them all,
// and closes what has not arrived: over a slow link a fifth of them may.
func iperf3(variant string, kind WorkloadKind) string {
	if kind == Sized && variant != "udp" {
		return "iperf3 -n ends when everything is written, not when it has arrived; iperf2 waits"
	}
	return iperf2(variant, kind)
}

func programs(_ string, kind WorkloadKind) string {
	if kind == Continual || kind == Sized {
		return ""
	}
	return "a program of its own reports bytes, not messages"
}

// udpVariants are settings of the queue of the MAC that the datagrams use.
var udpVariants = []string{"no-arq", "txop"}

// hopVariants are Hop with one mechanism changed, for its component breakdown.
var hopVariants = []string{
	"no-withholding", "no-backpressure", "arq", "no-txop", "no-vbsyn", "no-microblock",
	"poll", "regrant", "no-quick-bsyn", "e2e-again", "literal-timeout", "adaptive-poll", "notice", "unordered",
}

// congestionControls are the names that Linux gives its congestion controls
// (net/ipv4/tcp_*.c). Whether a kernel has one is seen when the run starts.
var congestionControls = []string{
	"bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv",
	"reno", "scalable", "vegas", "veno", "westwood", "yeah",
}

// iperfVariants are TCP with a congestion control, or UDP.
var iperfVariants = append(slices.Clone(congestionControls), "udp")

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
var transportHelp = "hop, hop/VARIANT (" + strings.Join(hopVariants, ", ") + "; joined by +), tcp/CC, coop-tcp/CC, hop-by-hop-tcp/CC, bundle/CC (CC: " +
	strings.Join(congestionControls, ", ") + "), udp, udp/VARIANT (" + strings.Join(udpVariants, ", ") + "; joined by +), iperf3/CC, iperf3/udp, iperf2/CC, iperf2/udp, exec"

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
	if f == nil || w.Kind == "" {
		return nil
	}
	if why := f.carries(t.Variant(), w.Kind); why != "" {
		return fmt.Errorf("%s cannot carry the workload %s: %s", t, w.Kind, why)
	}
	return nil
}
