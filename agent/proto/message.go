package proto

import (
	"encoding/json"
	"net/netip"

	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Version is the version of the protocol. Both sides must have the same one:
// a newer agent does not guess what an older controller meant.
const Version = 1

// MaxLine is the longest line that either side accepts, in bytes with its
// newline. The longest honest message is the configuration of a node in a mesh
// of 1,000 nodes (about 300 KB).
const MaxLine = 4 << 20

// Type names a message.
type Type string

// Orders: controller to agent. Each is answered by exactly one message of the
// same type and sequence number.
const (
	TypeHello     Type = "hello"     // Hello → HelloReply; must come first
	TypeConfigure Type = "configure" // Configure → Readback
	TypeReadback  Type = "readback"  // nothing → Readback
	TypeClock     Type = "clock"     // nothing → Clock
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
}

// Clock is the agent's CLOCK_MONOTONIC, read between the receipt of the order
// and the reply; the controller brackets it with its own clock.
type Clock struct {
	MonotonicNS int64 `json:"monotonic_ns"`
}

// Configure makes a namespace or a host into the experiment's node. What is
// left out is left alone. It replaces an earlier configuration only after a
// revert.
type Configure struct {
	Node int    `json:"node"` // index in the experiment's node order
	Name string `json:"name"`
	// Interface is the one interface that the agent may touch ("wlan0").
	Interface string `json:"interface"`
	// WaitInterface bounds the wait for the interface to appear (the emulator
	// creates it); 0 means that it must be there already.
	WaitInterface vtime.Duration `json:"wait_interface_ns,omitempty"`
	Address       netip.Prefix   `json:"address"`
	// HardwareAddress is the interface's expected MAC address ("02:68:…");
	// empty = not compared. The agent never sets it.
	HardwareAddress string `json:"hardware_address,omitempty"`
	MTU             int    `json:"mtu,omitempty"` // 0 = leave
	// OffloadsOff switches TSO, GSO and GRO off, so that a packet on the
	// interface is a packet on the air.
	OffloadsOff bool `json:"offloads_off,omitempty"`
	// Loopback brings lo up.
	Loopback   bool        `json:"loopback,omitempty"`
	Sysctls    []Sysctl    `json:"sysctls,omitempty"` // in this order; read back in this order
	Routes     []Route     `json:"routes,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`

	// Peers maps node ids to addresses, this node included, for the transports
	// that route by themselves (Hop, relays).
	Peers []Peer `json:"peers,omitempty"`
	// NextHops is the node-level route table, for the same transports.
	NextHops []NextHop `json:"next_hops,omitempty"`
	// Board gives the emulated radio's queue board (netem/board); nil where
	// the node has a real radio.
	Board *Board `json:"board,omitempty"`
	// Hop holds the fields of hop.Config that differ from its defaults, as
	// JSON, decoded strictly; absent = defaults.
	Hop json.RawMessage `json:"hop,omitempty"`
	// Flows are those in which this node is source, destination or relay.
	Flows []Flow `json:"flows,omitempty"`
	// SampleInterval is the time between samples; 0 = 100 ms.
	SampleInterval vtime.Duration `json:"sample_interval_ns,omitempty"`
}

// Sysctl is one setting below /proc/sys, named with slashes or dots
// ("net.ipv4.ip_forward").
type Sysctl struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Route is one entry of the main table through the configured interface. An
// invalid Via means that the destination is a neighbour (scope link); else the
// route is "onlink", since every node has a /32 address.
type Route struct {
	Dst netip.Prefix `json:"dst"`
	Via netip.Addr   `json:"via,omitzero"`
	// AdvMSS is the MSS that connections over this route advertise, in bytes;
	// 0 = the kernel's.
	AdvMSS int `json:"advmss,omitempty"`
	// QuickAck acknowledges every segment at once (ip route "quickack 1").
	QuickAck bool `json:"quickack,omitempty"`
}

// Neighbour is one permanent entry of the neighbour table.
type Neighbour struct {
	Addr            netip.Addr `json:"addr"`
	HardwareAddress string     `json:"hardware_address"`
}

// Peer is one node of the experiment.
type Peer struct {
	Node int        `json:"node"`
	Addr netip.Addr `json:"addr"`
}

// NextHop says that packets for node Dst go to the neighbour Via.
type NextHop struct {
	Dst int `json:"dst"`
	Via int `json:"via"`
}

// Board names the inherited descriptors of the emulator's queue board.
type Board struct {
	MemFD   int `json:"mem_fd"`   // memfd shared with the emulator
	EventFD int `json:"event_fd"` // this node's eventfd
	// Nodes is the number of nodes on the board.
	Nodes int `json:"nodes"`
}

// Flow is one flow of the experiment, the same at each node that takes part.
type Flow struct {
	ID int `json:"id"` // from 0; a TCP flow's destination listens at 20000+ID
	// Transport is "hop", "tcp/CC", "hop-by-hop-tcp/CC" or "udp".
	Transport string        `json:"transport"`
	Src       int           `json:"src"`
	Dst       int           `json:"dst"`
	SrcAddr   netip.Addr    `json:"src_addr"`
	DstAddr   netip.Addr    `json:"dst_addr"`
	Path      []int         `json:"path,omitempty"` // node ids from Src to Dst, both included
	Workload  workload.Spec `json:"workload"`
	Start     vtime.Time    `json:"start_ns"`          // on the run's clock
	Stop      vtime.Time    `json:"stop_ns,omitempty"` // 0 = at the end of the run
	Options   FlowOptions   `json:"options,omitzero"`
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
