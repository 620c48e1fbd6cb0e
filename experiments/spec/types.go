package spec

import "github.com/hopbed/hopbed/netem/vtime"

// FormatVersion is the value of the key "hopbed" that this package reads.
const FormatVersion = 1

// The published bounds of one experiment. MaxNodes is the tested ceiling (the
// address plan would hold more), the others keep a mistyped number from
// becoming a week of computing.
const (
	MaxNodes   = 1000
	MaxFlows   = 10_000
	MaxPoints  = 10_000
	MaxRepeat  = 100_000
	MaxRuns    = 1_000_000
	MaxSources = 1 << 20 // bytes of one experiment file
)

// Config is one point of an experiment: the whole file with its variables
// replaced and its defaults filled in. Equal files give equal Configs.
//
// The field comments are the source of the descriptions in schema.json.
type Config struct {
	// Version is the version of the file format; this release reads version 1.
	Version int `key:"hopbed" required:"true" min:"1" max:"1" novar:"true"`
	// Name is the name under which results are stored: lower-case letters, digits, dot, dash and underscore, at most 64.
	Name string `key:"name" required:"true" pattern:"name" novar:"true"`
	// Title is one line for reports.
	Title string `key:"title" pattern:"line" novar:"true"`
	// Reference names the published values to compare with, as paper/experiment.
	Reference string `key:"reference" pattern:"reference" novar:"true"`
	// Notes is free text that is kept with the results.
	Notes string `key:"notes" pattern:"text" novar:"true"`

	// Topology says which nodes there are and where.
	Topology Topology `key:"topology" required:"true"`
	// Radio is the physical layer that every node shares.
	Radio Radio `key:"radio"`
	// MAC is the medium access control of every node.
	MAC MAC `key:"mac"`
	// Routing says how paths are chosen.
	Routing Routing `key:"routing"`
	// Transports holds the options of each transport that the flows use.
	Transports Transports `key:"transports"`
	// Flows lists the groups of flows that run at the same time.
	Flows []Flow `key:"flows" required:"true"`

	// Repeat is the number of repetitions of every point; repetition r of all points meets the same conditions.
	Repeat int `key:"repeat" min:"1" max:"100000" default:"1" novar:"true"`
	// Warmup is the time before the measured interval.
	Warmup vtime.Duration `key:"warmup" min:"0s" max:"24h" default:"0s"`
	// Duration is the measured interval.
	Duration vtime.Duration `key:"duration" required:"true" min:"100ms" max:"168h"`
	// Sample is the distance of two samples of a flow's series at its ends; relays are sampled once a second at most.
	Sample vtime.Duration `key:"sample" min:"1ms" max:"1h" default:"100ms"`
	// Seed is the base of every random choice of the experiment; the bound keeps it exact in JSON.
	Seed uint64 `key:"seed" min:"0" max:"9007199254740991" default:"1"`
	// Backends names the back ends on which hopbed run carries the experiment out, one after the other, unless the command line says otherwise; the default is netns, and ssh where the topology is an inventory.
	Backends []Backend `key:"backends" enum:"sim|netns|ssh" novar:"true"`
	// Limits bounds what a campaign may cost.
	Limits Limits `key:"limits"`
}

// Backend names what carries runs out.
type Backend string

// The back ends: virtual time, network namespaces in real time, and real nodes.
const (
	BackendSim   Backend = "sim"
	BackendNetns Backend = "netns"
	BackendSSH   Backend = "ssh"
)

// Topology is one of: generate, nodes (with or without links), import,
// inventory. Pipes and nodes without a radio may stand beside generate.
type Topology struct {
	// Generate places the nodes by a generator.
	Generate *Generate `key:"generate"`
	// Nodes lists the nodes and their positions.
	Nodes []Node `key:"nodes"`
	// Links lists the links by their delivery probability; without it the radio model decides who hears whom.
	Links []Link `key:"links"`
	// Pipes lists the wired links between nodes.
	Pipes []Pipe `key:"pipes"`
	// Changes lists what happens to radio links and nodes while the network runs.
	Changes []Change `key:"changes"`
	// Import reads nodes and links from a file of another tool.
	Import *Import `key:"import"`
	// Inventory names the file that lists the real nodes, relative to the experiment file; links may be listed between them.
	Inventory string `key:"inventory" pattern:"path"`
	// Tags takes only those nodes of the inventory that have one of these tags.
	Tags []string `key:"tags" pattern:"name"`
}

// GenerateKind names a topology generator.
type GenerateKind string

// The topology generators.
const (
	RandomMesh GenerateKind = "random-mesh"
	Chain      GenerateKind = "chain"
	Grid       GenerateKind = "grid"
	Star       GenerateKind = "star"
)

// Vary says whether a generated placement changes with the repetition.
type Vary string

// The values of Generate.Vary.
const (
	VaryRepetition Vary = "repetition"
	VaryNever      Vary = "never"
)

// Generate holds the parameters of a topology generator.
type Generate struct {
	// Kind is the kind of generator.
	Kind GenerateKind `key:"kind" required:"true" enum:"random-mesh|chain|grid|star"`
	// Nodes is the number of nodes.
	Nodes int `key:"nodes" required:"true" min:"2" max:"1000"`
	// Area is the width and height of the rectangle in which random-mesh places nodes uniformly.
	Area Area `key:"area"`
	// Spacing is the distance of neighbours in a chain or grid, and of hub and leaf in a star.
	Spacing vtime.Metres `key:"spacing" min:"0.1m" max:"100km"`
	// Columns is the width of a grid in nodes; the default is the smallest square that holds all nodes.
	Columns int `key:"columns" min:"1" max:"1000"`
	// MinHops refuses random meshes in which no two nodes are at least so many hops apart.
	MinHops int `key:"min-hops" min:"1" max:"64" default:"1"`
	// Tries bounds the number of placements that random-mesh may reject.
	Tries int `key:"tries" min:"1" max:"1000000" default:"10000"`
	// Seed is the seed of placement and shadowing; the default is the experiment's seed.
	Seed *uint64 `key:"seed" min:"0" max:"9007199254740991"`
	// Vary makes a new placement for each repetition, or keeps one for all.
	Vary Vary `key:"vary" enum:"repetition|never" default:"repetition"`
}

// Area is a rectangle, written [width, height].
type Area struct{ Width, Height vtime.Metres }

// Node is a listed node.
type Node struct {
	// Name is the node's name.
	Name string `key:"name" required:"true" pattern:"name"`
	// At is the position, written [x, y].
	At *Position `key:"at"`
	// Radio says whether the node has a radio, the interface wlan0; without one it needs a pipe.
	Radio bool `key:"radio" default:"true"`
	// Bridge joins the node's interfaces at the link layer, as br0; otherwise it routes between them.
	Bridge bool `key:"bridge" default:"false"`
	// Queue is the length of each queue of the node's radio in packets; left out, it is what mac.queues says.
	Queue *int `key:"queue" min:"1" max:"100000"`
	// WindowRewriting bounds the windows of the TCP connections that pass the node's radio, so that they fit into its queue.
	WindowRewriting *WindowRewriting `key:"window-rewriting"`
}

// WindowRewriting is the access point of Pilosof et al. (INFOCOM 2003), which shares
// its queue among the TCP connections by the receiver windows in their segments.
type WindowRewriting struct {
	// Enabled switches it; it is there for matrices.
	Enabled bool `key:"enabled" default:"true"`
	// Share says what a connection counts: equal is one each; weighted is one packet a segment for data that the queue holds, and acks for data the other way.
	Share RewritingShare `key:"share" enum:"equal|weighted" default:"equal"`
	// Acks is the number of acknowledgements per segment that share: weighted reckons with.
	Acks float64 `key:"acks" min:"0.01" max:"1" default:"1"`
	// Idle is how long a connection counts after its last segment.
	Idle vtime.Duration `key:"idle" min:"10ms" max:"1h" default:"5s"`
}

// RewritingShare is what a connection counts.
type RewritingShare string

// The shares of a queue.
const (
	ShareEqual    RewritingShare = "equal"
	ShareWeighted RewritingShare = "weighted"
)

// Position is a place in the plane, written [x, y].
type Position struct{ X, Y vtime.Metres }

// Link is a listed link. Both directions are set unless Oneway.
type Link struct {
	// From is the name of one end.
	From string `key:"from" required:"true" pattern:"name"`
	// To is the name of the other end.
	To string `key:"to" required:"true" pattern:"name"`
	// Delivery is the share of data frames that survive without retransmission.
	Delivery vtime.Fraction `key:"delivery" min:"0%" max:"100%" default:"100%"`
	// Reverse is the delivery from to to from; the default is the same as delivery.
	Reverse *vtime.Fraction `key:"reverse" min:"0%" max:"100%"`
}

// Standard names an amendment of IEEE 802.11.
type Standard string

// The radio standards.
const (
	Standard11b Standard = "802.11b"
	Standard11g Standard = "802.11g"
	Standard11a Standard = "802.11a"
)

// Preamble names the PLCP preamble of 802.11b.
type Preamble string

// The preambles of 802.11b.
const (
	PreambleLong  Preamble = "long"
	PreambleShort Preamble = "short"
)

// Radio is the physical layer. Fields that are nil take the medium's default
// for the standard.
type Radio struct {
	// Standard is the amendment of IEEE 802.11.
	Standard Standard `key:"standard" enum:"802.11b|802.11g|802.11a" default:"802.11b"`
	// Rate is the rate of data frames; the default is the standard's highest.
	Rate vtime.BitRate `key:"rate" min:"1mbit" max:"54mbit"`
	// BasicRate is the rate of acknowledgements and broadcasts; the default is 2mbit for 802.11b and 24mbit otherwise.
	BasicRate vtime.BitRate `key:"basic-rate" min:"1mbit" max:"54mbit"`
	// Preamble is the PLCP preamble of 802.11b frames.
	Preamble Preamble `key:"preamble" enum:"long|short" default:"long"`
	// TxPower is the transmitted power with antenna gains.
	TxPower *vtime.DBm `key:"tx-power" min:"-50dBm" max:"40dBm"`
	// Noise is the noise floor of a receiver, thermal noise and noise figure together.
	Noise *vtime.DBm `key:"noise" min:"-120dBm" max:"-50dBm"`
	// PathLoss is the propagation model.
	PathLoss PathLoss `key:"path-loss"`
	// Sense is the carrier-sense threshold relative to the decoding threshold of the data rate; negative is more sensitive.
	Sense *vtime.Decibel `key:"sense" min:"-40dB" max:"20dB"`
	// Capture is the power ratio above which a frame survives a weaker one.
	Capture *vtime.Decibel `key:"capture" min:"0dB" max:"40dB"`
	// Drop is the share of received frames that every node discards after its MAC, so that no retransmission by the MAC repairs them.
	Drop vtime.Fraction `key:"drop" min:"0%" max:"100%" default:"0%"`
}

// PathLossKind names a propagation model.
type PathLossKind string

// The propagation models.
const (
	LogDistance PathLossKind = "log-distance"
	Disk        PathLossKind = "disk"
)

// PathLoss is the propagation model: log-distance with seeded log-normal
// shadowing, or a disk.
type PathLoss struct {
	// Kind is the kind of model.
	Kind PathLossKind `key:"kind" enum:"log-distance|disk" default:"log-distance"`
	// Exponent is the slope of log-distance: 2 in free space, about 3 in offices.
	Exponent *float64 `key:"exponent" min:"1" max:"8"`
	// ReferenceLoss is the loss at one metre.
	ReferenceLoss *vtime.Decibel `key:"reference-loss" min:"0dB" max:"100dB"`
	// Shadowing is the standard deviation of the log-normal shadowing, drawn once for each pair of nodes.
	Shadowing *vtime.Decibel `key:"shadowing" min:"0dB" max:"20dB"`
	// Range is the distance up to which a disk delivers frames.
	Range vtime.Metres `key:"range" min:"0.1m" max:"100km"`
	// SenseRange is the distance up to which a disk defers to others.
	SenseRange vtime.Metres `key:"sense-range" min:"0.1m" max:"100km"`
}

// MAC is the medium access control of 802.11. Fields that are nil take the
// medium's default for the standard.
type MAC struct {
	// Retries is the number of retransmissions of a frame before it is dropped.
	Retries *int `key:"retries" min:"0" max:"255"`
	// RTS is the size of a frame above which RTS/CTS precedes it; the default is off.
	RTS *vtime.Bytes `key:"rts" min:"1B" max:"4096B" off:"true"`
	// Fragment is the size of a frame above which real nodes send it in fragments, an even number; the default is off, and emulated radios have no fragments.
	Fragment *vtime.Bytes `key:"fragment" min:"256B" max:"2346B" off:"true"`
	// Queues holds the EDCA parameters of the four access categories.
	Queues Queues `key:"queues"`
}

// Queues holds the four access categories of EDCA (802.11 clause 10.23.2).
type Queues struct {
	// BK is the background queue.
	BK Queue `key:"bk"`
	// BE is the best-effort queue.
	BE Queue `key:"be"`
	// VI is the video queue.
	VI Queue `key:"vi"`
	// VO is the voice queue.
	VO Queue `key:"vo"`
}

// AckPolicy says whether the MAC acknowledges (and so repeats) data frames.
type AckPolicy string

// The acknowledgement policies.
const (
	AckNormal AckPolicy = "normal"
	AckNone   AckPolicy = "none"
)

// Queue holds what differs from the standard's EDCA parameters.
type Queue struct {
	// AIFS is the arbitration inter-frame space number, in slots after SIFS.
	AIFS *int `key:"aifs" min:"1" max:"15"`
	// CWMin is the smallest contention window: a power of two minus one.
	CWMin *int `key:"cwmin" min:"0" max:"32767"`
	// CWMax is the largest contention window: a power of two minus one.
	CWMax *int `key:"cwmax" min:"0" max:"32767"`
	// TXOP is the time for which a station may hold the channel once won; 0us means one frame.
	TXOP *vtime.Duration `key:"txop" min:"0us" max:"2097120us"`
	// Ack is the acknowledgement policy of the queue's unicast frames.
	Ack AckPolicy `key:"ack" enum:"normal|none"`
	// Limit is the length of the queue in packets.
	Limit *int `key:"limit" min:"1" max:"100000"`
}

// Limits bounds what a campaign may cost.
type Limits struct {
	// Reruns is how often an invalid or failed run is tried again.
	Reruns int `key:"reruns" min:"0" max:"20" default:"2"`
}
