package hop

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Config is one node's parameters. All nodes of a network should share them
// (only ID differs); what the wire needs to agree on is carried in the BSYN.
// Start from DefaultConfig: the zero value is not valid.
type Config struct {
	// ID is this node's identity on the wire.
	ID NodeID

	// BlockSize is the size of a block that a flow's Source is asked to fill
	// (paper §3: at most 1 MB, any smaller size allowed). 1 B to MaxBlockSize.
	BlockSize vtime.Bytes
	// Payload is the number of block bytes per data packet, MinPayload to
	// MaxPayload. 1,400 B keeps IP, UDP and Hop headers below 1,500 B.
	Payload int
	// H is the backpressure limit: complete or reserved large blocks of one
	// flow that a relay may hold (paper §3.3; default 1).
	H int
	// Window is the number of blocks of a flow that may be under way, not yet
	// acknowledged end to end, 1 to MaxWindow. It bounds the source's memory
	// and what the destination may have to reorder.
	Window int

	// TxopPackets is the number of data packets that one flow sends before
	// the round robin moves on: what one 8160 µs txop carries, 6 at 11 Mb/s.
	TxopPackets int
	// Gap is the mean idle time after each txop of a node that has blocks of
	// several flows; 0 is the faithful behaviour. See pace.go.
	Gap vtime.Duration
	// QueueAhead is the number of data packets that may stand in the queue of
	// a radio's MAC at once (default 2 txops): deeper queues take the order out
	// of the round robin's hands and delay the BSYN that follows the data. For a
	// wire the node finds the number itself (wired.go).
	QueueAhead int

	// MemoryLimit bounds the block buffers of this node in bytes: blocks being
	// received, held and cached. Cached blocks are evicted first; a block that
	// this node is still responsible for never is. Up to twice as much is used
	// where a flow could not go on otherwise, and a flow that begins here may
	// always have one block.
	MemoryLimit vtime.Bytes
	// MaxFlows bounds the flows that strangers can create state for.
	MaxFlows int

	// BSYNFloor and BSYNCeil bound the timer of a BSYN that has not been
	// granted: it starts at the floor and doubles to the ceiling (500 ms, 2 s).
	BSYNFloor, BSYNCeil vtime.Duration
	// BSYNQuick is the wait before the first repetition of a BSYN that has not
	// been granted (50 ms); 0 takes BSYNFloor. A withheld BSYN cannot be told
	// from a lost one: one early repetition costs a frame, and mostly saves the
	// long wait where it was lost (DESIGN.md §3 has what it brings).
	BSYNQuick vtime.Duration
	// PollFloor and PollCeil bound the timer of a BSYN whose block is granted
	// and that waits for a bitmap: 3 × the smoothed BSYN→BACK time, at least
	// the floor, doubling to the ceiling (50 ms, 200 ms).
	PollFloor, PollCeil vtime.Duration
	// PollAdaptive takes the wait for a bitmap from the mean and the deviation of
	// the smoothed BSYN→BACK time, and bounds the doubling by that as well; false
	// is the fixed floor. See adaptive.go.
	PollAdaptive bool
	// Notice has a receiver that withholds say so, and lets a sender repeat soon
	// what nobody answered; false is the faithful silence. See notice.go.
	Notice bool
	// GrantExpiry ends a grant whose sender has been silent (2 s).
	GrantExpiry vtime.Duration
	// GrantRepeat repeats the BACK of a granted block whose sender has been
	// silent for so long; 0 leaves that to the sender's BSYN timer (the faithful
	// behaviour).
	GrantRepeat vtime.Duration
	// GrantAgeing is the number of grants that may pass a waiting request
	// before it goes first whatever its size (5).
	GrantAgeing int
	// GrantPoll gives a free grant to the next BSYN that arrives. Otherwise a
	// completed block's grant is passed at once, by a BACK, to the waiting
	// request that is smallest, then oldest (paper §3.4).
	GrantPoll bool
	// RequestTTL is how long a withheld BSYN stays eligible for a BACK of its
	// own when it is not repeated (10 s).
	RequestTTL vtime.Duration

	// E2EInitial is the end-to-end timeout before the first end-to-end BACK
	// (60 s); E2EFloor bounds it from below afterwards (1 s).
	E2EInitial, E2EFloor vtime.Duration
	// E2ELiteral sets the timeout to the latest block's round-trip delay, as
	// the paper has it, instead of to twice that delay, doubling per token.
	E2ELiteral bool
	// E2EStall is how long a source whose window is full waits for the destination
	// before it asks by a token, and who knows more end-to-end BACKs than an
	// announcement says them again; 0 is the faithful behaviour: the source waits for
	// the end-to-end timeout, and end-to-end BACKs are sent once, whether the link was
	// up or not. See gap.go.
	E2EStall vtime.Duration
	// VirtualTTL is the hop limit of a VBSYN (50).
	VirtualTTL uint8

	// MicroThreshold is the largest block that travels together with its BSYN
	// (16,384 B); MicroWindow bounds the micro-blocks of one flow that a
	// sender has under way, and a relay holds, in bytes (64 KiB).
	MicroThreshold, MicroWindow vtime.Bytes

	// DrainTimeout releases a BSYN although the MAC seems still to hold data
	// that it announces, when nothing has left the queue for so long (2 s):
	// a driver's lost count must not stop a flow.
	DrainTimeout vtime.Duration

	// Unordered delivers blocks in the order of completion; otherwise a flow's
	// blocks reach the App in block order.
	Unordered bool

	// The switches of the component breakdown, each removing one mechanism.
	NoWithholding  bool // grant every request at once
	NoBackpressure bool // relays hold what MemoryLimit allows
	DataARQ        bool // MAC acknowledgements for data; for the driver's MAC setting
	NoTxop         bool // round robin by packet; MAC txop 0, for the driver's MAC setting
	NoVirtual      bool // no end-to-end reliability: no VBSYN, no cache
	NoMicro        bool // small blocks take the BSYN/BACK exchange, too
}

// Limits of the wire format and of the configuration.
const (
	MaxBlockSize = 1 * vtime.MiB // paper §3: a block is at most 1 MB
	MinPayload   = 128           // 1 MiB in 8,192 packets: the bitmap fits a packet
	MaxPayload   = 1432          // IP 20 + UDP 8 + header 40 + payload ≤ 1,500
	MaxWindow    = 64            // the end-to-end BACK's selective bitmap

	// maxMicro is the largest micro-block that a receiver takes, whatever the
	// sender's threshold is.
	maxMicro = 64 * vtime.KiB
)

// DataTxop is the MAC's txop limit for the data queue: 255 × 32 µs, the
// largest that MadWifi's 8-bit field holds (paper §4).
const DataTxop = 8160 * vtime.Microsecond

// DefaultConfig returns Hop with every mechanism of the paper on, H = 1, 1 MiB blocks
// of 1,400 B packets, and what DESIGN.md §10 says that the default has beyond the
// paper.
func DefaultConfig() Config {
	return Config{
		BlockSize:      MaxBlockSize,
		Payload:        1400,
		H:              1,
		Window:         32,
		TxopPackets:    6,
		QueueAhead:     12,
		MemoryLimit:    128 * vtime.MiB,
		MaxFlows:       1024,
		BSYNFloor:      500 * vtime.Millisecond,
		BSYNCeil:       2 * vtime.Second,
		BSYNQuick:      50 * vtime.Millisecond,
		PollFloor:      50 * vtime.Millisecond,
		PollCeil:       200 * vtime.Millisecond,
		GrantExpiry:    2 * vtime.Second,
		GrantAgeing:    5,
		RequestTTL:     10 * vtime.Second,
		E2EInitial:     60 * vtime.Second,
		E2EFloor:       1 * vtime.Second,
		VirtualTTL:     50,
		MicroThreshold: 16 * vtime.KiB,
		MicroWindow:    64 * vtime.KiB,
		DrainTimeout:   2 * vtime.Second,
	}
}

// E2EStall is Config.E2EStall of the variant e2e-again.
const E2EStall = 10 * vtime.Second

// variant is one named switch of the component breakdown.
type variant struct {
	name string
	set  func(*Config)
}

// variants is the explicit table behind Variant: one line per switch.
var variants = []variant{
	{"no-withholding", func(c *Config) { c.NoWithholding = true }},
	{"no-backpressure", func(c *Config) { c.NoBackpressure = true }},
	{"arq", func(c *Config) { c.DataARQ = true }},
	{"no-txop", func(c *Config) { c.NoTxop = true }},
	{"no-vbsyn", func(c *Config) { c.NoVirtual = true }},
	{"no-microblock", func(c *Config) { c.NoMicro = true }},
	{"poll", func(c *Config) { c.GrantPoll = true }},
	{"regrant", func(c *Config) { c.GrantRepeat = 100 * vtime.Millisecond }},
	{"no-quick-bsyn", func(c *Config) { c.BSYNQuick = 0 }},
	{"e2e-again", func(c *Config) { c.E2EStall = E2EStall }},
	{"literal-timeout", func(c *Config) { c.E2ELiteral = true }},
	{"adaptive-poll", func(c *Config) { c.PollAdaptive = true }},
	{"notice", func(c *Config) { c.Notice = true }},
	{"unordered", func(c *Config) { c.Unordered = true }},
}

// Variants lists the names that may follow "hop/", in a fixed order.
func Variants() []string {
	names := make([]string, len(variants))
	for i, v := range variants {
		names[i] = v.name
	}
	return names
}

// Variant returns the default configuration changed by a transport name:
// "hop", "hop/no-txop", or several joined by "+", "hop/no-txop+arq".
func Variant(transport string) (Config, error) {
	c := DefaultConfig()
	name, list, found := strings.Cut(transport, "/")
	if name != "hop" || found && list == "" {
		return Config{}, fmt.Errorf("hop: transport %q is not \"hop\" or \"hop/VARIANT\"", transport)
	}
	if !found {
		return c, nil
	}
next:
	for _, part := range strings.Split(list, "+") {
		for _, v := range variants {
			if v.name == part {
				v.set(&c)
				continue next
			}
		}
		return Config{}, fmt.Errorf("hop: transport %q has the unknown variant %q; known are %s",
			transport, part, strings.Join(Variants(), ", "))
	}
	return c, nil
}

// Validate reports the first parameter that is out of its range.
func (c *Config) Validate() error {
	for _, r := range []struct {
		name      string
		v, lo, hi int64
	}{
		{"BlockSize", int64(c.BlockSize), 1, int64(MaxBlockSize)},
		{"Payload", int64(c.Payload), MinPayload, MaxPayload},
		{"H", int64(c.H), 1, MaxWindow},
		{"Window", int64(c.Window), 1, MaxWindow},
		{"TxopPackets", int64(c.TxopPackets), 1, 1 << 16},
		{"Gap", int64(c.Gap), 0, int64(vtime.Second)},
		{"QueueAhead", int64(c.QueueAhead), 1, 1 << 20},
		{"MemoryLimit", int64(c.MemoryLimit), 2 * int64(MaxBlockSize), 1 << 50},
		{"MaxFlows", int64(c.MaxFlows), 1, 1 << 20},
		{"BSYNFloor", int64(c.BSYNFloor), 1, int64(c.BSYNCeil)},
		{"BSYNQuick", int64(c.BSYNQuick), 0, int64(c.BSYNFloor)},
		{"PollFloor", int64(c.PollFloor), 1, int64(c.PollCeil)},
		{"GrantExpiry", int64(c.GrantExpiry), 1, int64(vtime.Hour)},
		{"GrantRepeat", int64(c.GrantRepeat), 0, int64(vtime.Hour)},
		{"GrantAgeing", int64(c.GrantAgeing), 1, 1 << 20},
		{"RequestTTL", int64(c.RequestTTL), 1, int64(vtime.Hour)},
		{"E2EInitial", int64(c.E2EInitial), 1, int64(vtime.Hour)},
		{"E2EFloor", int64(c.E2EFloor), 1, int64(vtime.Hour)},
		{"E2EStall", int64(c.E2EStall), 0, int64(vtime.Hour)},
		{"VirtualTTL", int64(c.VirtualTTL), 1, 255},
		{"MicroThreshold", int64(c.MicroThreshold), 0, int64(min(c.MicroWindow, maxMicro))},
		{"MicroWindow", int64(c.MicroWindow), 1, int64(MaxBlockSize)},
		{"DrainTimeout", int64(c.DrainTimeout), 1, int64(vtime.Hour)},
	} {
		if r.v < r.lo || r.v > r.hi {
			return fmt.Errorf("hop: node %d: %s = %d is outside %d…%d", c.ID, r.name, r.v, r.lo, r.hi)
		}
	}
	return nil
}

// quantum is the number of packets of a flow's turn in the round robin.
func (c *Config) quantum() int {
	if c.NoTxop {
		return 1
	}
	return c.TxopPackets
}

// microMax is the largest block that is sent as a micro-block; 0 if none is.
func (c *Config) microMax() vtime.Bytes {
	if c.NoMicro {
		return 0
	}
	return c.MicroThreshold
}
