package proto

import (
	"encoding/json"
	"net/netip"

	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Version is the version of the protocol. Both sides must have the same one:
// a newer agent does not guess what an older controller meant.
const Version = 4

// MaxLine is the longest line that either side accepts, in bytes with its
// newline. The longest honest message is the configuration of a bridge in a mesh
// of 1,000 nodes (about 320 KB).
const MaxLine = 4 << 20

// Type names a message.
type Type string

// Orders: controller to agent. Each is answered by exactly one message of the
// same type and sequence number.
const (
	TypeHello     Type = "hello"     // Hello → HelloReply; must come first
	TypeConfigure Type = "configure" // Configure → Readback
	TypeReadback  Type = "readback"  // nothing → Readback
	TypeClock     Type = "clock"     // nothing → Clock; may come at any time
	TypeProbe     Type = "probe"     // Probe → nothing; link probes are scheduled
	TypeHeard     Type = "heard"     // nothing → Heard; ends the probing
	TypeStart     Type = "start"     // Start → nothing; replies when the flows are scheduled
	TypeStop      Type = "stop"      // nothing → nothing; replies when no flow runs any more
	TypeCollect   Type = "collect"   // nothing → Results
	TypeRevert    Type = "revert"    // nothing → Reverted
	TypeBye       Type = "bye"       // nothing → nothing; the agent exits after the reply
)

// Asynchronous messages: agent to controller, with sequence number 0.
const (
	TypeSamples Type = "samples" // Samples, about once a second
	TypeEvent   Type = "event"   // Event: a flow was set up, finished or failed
	TypeLog     Type = "log"     // Log
	TypeFailure Type = "failure" // Failure: the agent gives up; it reverts and exits
)

// Envelope is one line of the protocol.
type Envelope struct {
	V    int    `json:"v"`
	Seq  uint64 `json:"seq"` // of the order; 0 in asynchronous messages
	Type Type   `json:"type"`
	// Error is set in a reply when the order failed; Body is then absent.
	Error *Error          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Hello opens the conversation.
type Hello struct {
	Controller string `json:"controller"`    // version of the controller, for the log
	Tag        string `json:"tag,omitempty"` // ownership tag of the run
	// Watchdog is the longest silence of a controller: after it the agent puts back
	// what it changed and ends. The controller asks for the clock at least three
	// times in it. 0 = none: the end of the input is the only sign.
	Watchdog vtime.Duration `json:"watchdog_ns,omitempty"`
}

// HelloReply says who the agent is and what its kernel can do.
type HelloReply struct {
	Agent   string `json:"agent"` // version of the agent
	PID     int    `json:"pid"`
	Kernel  string `json:"kernel"` // uname release
	Machine string `json:"machine"`
	CPUs    int    `json:"cpus"`
	// CongestionControls are the names in tcp_available_congestion_control:
	// those that are loaded. Others may still load on demand.
	CongestionControls []string `json:"congestion_controls"`
	MonotonicNS        int64    `json:"monotonic_ns"` // CLOCK_MONOTONIC at the reply
	// Nice is the agent's niceness: below 0 where it was permitted, because a
	// user-space transport that waits for a processor is a slower transport.
	Nice int `json:"nice"`
	// BootID is the kernel's (/proc/sys/kernel/random/boot_id): hosts and
	// namespaces with the same one share their clock.
	BootID string `json:"boot_id,omitempty"`
	UID    int    `json:"uid"`
	// Interfaces are those of the node as they are, without lo and without their
	// offloads: what a controller has to know of real ones before it orders anything.
	Interfaces []InterfaceState `json:"interfaces,omitempty"`
}

// Clock is the agent's CLOCK_MONOTONIC, read between the receipt of the order
// and the reply; the controller brackets it with its own clock.
type Clock struct {
	MonotonicNS int64 `json:"monotonic_ns"`
	// UnixNS is CLOCK_REALTIME at the same moment, to find a clock that was set.
	UnixNS int64 `json:"unix_ns,omitempty"`
}

// Probe asks a node to broadcast probes and to count those of others (De Couto et
// al., MobiCom 2003, §3; RFC 3626 link sensing as olsrd's link quality uses it).
type Probe struct {
	EpochNS int64          `json:"epoch_ns"`  // moment 0 on this agent's CLOCK_MONOTONIC
	Period  vtime.Duration `json:"period_ns"` // between two probes; each is moved by a random part of it
	Count   int            `json:"count"`     // probes that the node sends
	Size    vtime.Bytes    `json:"size"`      // IP packet
	Seed    uint64         `json:"seed"`      // of the jitter; the node draws from its own stream
	Tag     uint64         `json:"tag"`       // of the measurement: probes of others are not counted
	DSCP    int            `json:"dscp,omitempty"`
}

// Heard answers heard: how many probes of each other node arrived here.
type Heard struct {
	Node int         `json:"node"`
	Sent int         `json:"sent"`
	From []HeardFrom `json:"from"`
	// Late counts the probes that were sent more than 5 ms after their time, LateMax
	// is the worst: a host that is too busy lets the probes of several nodes go at
	// once, and they collide.
	Late    int            `json:"late,omitempty"`
	LateMax vtime.Duration `json:"late_max_ns,omitempty"`
}

// HeardFrom is what was heard of one node.
type HeardFrom struct {
	Node     int   `json:"node"`
	Received int   `json:"received"`          // different probes
	Last     int   `json:"last"`              // highest number heard, from 0
	Missing  []int `json:"missing,omitempty"` // numbers up to Last that were not heard, at most 1,000
}

// Flow is one flow of the experiment, the same at each node that takes part.
type Flow struct {
	ID int `json:"id"` // from 0; a TCP flow's destination listens at 20000+ID
	// Transport is a name of the agent's table, such as "hop", "tcp/CC" or "udp".
	Transport string        `json:"transport"`
	Src       int           `json:"src"`
	Dst       int           `json:"dst"`
	SrcAddr   netip.Addr    `json:"src_addr"`
	DstAddr   netip.Addr    `json:"dst_addr"`
	Path      []int         `json:"path,omitempty"` // node ids from Src to Dst, both included
	Workload  workload.Spec `json:"workload"`
	// Peer is the id of the flow in the other direction of an exchange (Workload.Role
	// says which half this one is); nil where there is none. Both have the same
	// transport.
	Peer    *int        `json:"peer,omitempty"`
	Start   vtime.Time  `json:"start_ns"`          // on the run's clock
	Stop    vtime.Time  `json:"stop_ns,omitempty"` // 0 = at the end of the run
	Options FlowOptions `json:"options,omitzero"`
}

// FlowOptions are the knobs of a flow. Zero means the kernel's or the
// transport's default. What a transport does not know is an error at
// configure, never ignored.
type FlowOptions struct {
	MSS           int            `json:"mss,omitempty"`                // TCP_MAXSEG, bytes
	SendBuffer    vtime.Bytes    `json:"send_buffer,omitempty"`        // SO_SNDBUF as asked for (the kernel doubles it)
	ReceiveBuffer vtime.Bytes    `json:"receive_buffer,omitempty"`     // SO_RCVBUF as asked for (the kernel doubles it)
	NotSentLow    vtime.Bytes    `json:"not_sent_low_water,omitempty"` // TCP_NOTSENT_LOWAT
	ReceiveWindow int            `json:"receive_window,omitempty"`     // most that a receiver offers, in segments of the MSS
	CwndCap       int            `json:"cwnd_cap,omitempty"`           // most that a sender's congestion window grows to, in segments
	NoDelay       bool           `json:"nodelay,omitempty"`            // TCP_NODELAY
	DSCP          int            `json:"dscp,omitempty"`               // 0–63; of Hop: unused
	RelayBuffer   vtime.Bytes    `json:"relay_buffer,omitempty"`       // hop-by-hop-tcp: bytes per flow and relay, 0 = 1 MiB
	BlockSize     vtime.Bytes    `json:"block_size,omitempty"`         // hop: 0 = hop's default
	Rate          BitRate        `json:"rate,omitempty"`               // udp: application bits per second, 0 = as fast as the queue takes them
	PacketSize    vtime.Bytes    `json:"packet_size,omitempty"`        // udp: payload per datagram, 0 = 1400 B
	ConnectWithin vtime.Duration `json:"connect_within_ns,omitempty"`  // 0 = until the flow's stop
	Program       *Program       `json:"program,omitempty"`            // exec
	Bundle        *Bundle        `json:"bundle,omitempty"`             // bundle; nil = the defaults
	Coop          *Coop          `json:"coop,omitempty"`               // coop-tcp; nil = the defaults
}

// Bundle are the options of the transport bundle.
type Bundle struct {
	// Size is the most payload of a bundle; 0 = 1 MiB. A message that is longer
	// travels in several.
	Size vtime.Bytes `json:"size,omitempty"`
	// Disk: a relay stores on disk, and keeps that over a restart.
	Disk bool `json:"disk,omitempty"`
	// Limit is the most that a relay stores of a flow, in bytes of bundles; 0 =
	// 64 MiB.
	Limit vtime.Bytes `json:"limit,omitempty"`
}

// Coop are the options of the transport coop-tcp; zero means the method's own.
type Coop struct {
	// Bandwidth is BWmax, what the access point carries of one station.
	Bandwidth BitRate `json:"bandwidth_bps,omitempty"`
	// Always caps windows by the number of stations alone, whatever the round-trip
	// time is.
	Always bool `json:"always,omitempty"`
	// Limit is how a live window is bounded; "" = LimitAuto.
	Limit CoopLimit `json:"limit,omitempty"`
}

// CoopLimit is a way to bound the congestion window of a live socket.
type CoopLimit string

// The ways.
const (
	LimitAuto  CoopLimit = "auto"  // BPF where it is to be had, else the queue
	LimitBPF   CoopLimit = "bpf"   // TCP_BPF_SNDCWND_CLAMP, by a program at the sockets
	LimitQueue CoopLimit = "queue" // a sender that keeps SIOCOUTQ at most the cap
)

// Program is what the transport exec runs: a program and its arguments for each
// part that a node can play in a flow. An empty Relay runs nothing there.
type Program struct {
	Send    []string `json:"send"`
	Receive []string `json:"receive"`
	Relay   []string `json:"relay,omitempty"`
	// Dir is the working directory of each; empty = the agent's.
	Dir string `json:"dir,omitempty"`
}

// BitRate is vtime.BitRate; named here so that the wire type is visible.
type BitRate = vtime.BitRate

// Start puts the flows on the common schedule.
type Start struct {
	// EpochNS is the moment 0 of the run on this agent's CLOCK_MONOTONIC.
	EpochNS int64 `json:"epoch_ns"`
	// Warmup and End bound the measured interval [Warmup, End).
	Warmup vtime.Time `json:"warmup_ns"`
	End    vtime.Time `json:"end_ns"`
}
