package proto

import (
	"net/netip"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Side says which part a node plays in a flow.
type Side string

// The sides of a flow.
const (
	Source      Side = "src"
	Destination Side = "dst"
	Relay       Side = "relay"
)

// Sample is one observation of a flow at one node. Counters are cumulative
// since the flow began; a field that the side or the transport does not know
// is absent.
type Sample struct {
	Flow int        `json:"flow"`
	Side Side       `json:"side"`
	T    vtime.Time `json:"t_ns"` // when it was really taken
	// Sparse says that the transport knows only the fields that are not 0.
	Sparse bool `json:"sparse,omitempty"`

	// Delivered counts verified application bytes handed to the application
	// at the destination.
	Delivered vtime.Bytes `json:"delivered,omitempty"`

	// TCP at a sender (struct tcp_info of linux/tcp.h).
	CwndPackets     int64          `json:"cwnd_packets,omitempty"`
	SsthreshPackets int64          `json:"ssthresh_packets,omitempty"`
	SRTT            vtime.Duration `json:"srtt_ns,omitempty"`
	RTTVar          vtime.Duration `json:"rttvar_ns,omitempty"`
	MinRTT          vtime.Duration `json:"min_rtt_ns,omitempty"`
	RTO             vtime.Duration `json:"rto_ns,omitempty"`
	Sent            vtime.Bytes    `json:"sent,omitempty"`    // payload bytes put on the wire, repeats included
	Retrans         vtime.Bytes    `json:"retrans,omitempty"` // of which repeats
	Acked           vtime.Bytes    `json:"acked,omitempty"`
	RetransPackets  int64          `json:"retrans_packets,omitempty"`
	// Timeouts counts expired retransmission timers (total_rto, Linux 6.7).
	Timeouts         int64         `json:"timeouts,omitempty"`
	DeliveredPackets int64         `json:"delivered_packets,omitempty"`
	LostPackets      int64         `json:"lost_packets,omitempty"` // now marked lost
	DeliveryRate     vtime.BitRate `json:"delivery_rate_bps,omitempty"`
	InFlight         int64         `json:"in_flight_packets,omitempty"`
	CAState          string        `json:"ca_state,omitempty"` // open, disorder, cwr, recovery, loss
	SendWindow       vtime.Bytes   `json:"snd_wnd,omitempty"`  // the peer's window
	NotSent          vtime.Bytes   `json:"not_sent,omitempty"` // in the send buffer, never sent

	// Held is what this node holds of the flow and has not reliably passed on, in
	// bytes: a relay of hop-by-hop TCP, a bundle node, every node of Hop (of the
	// source: not acknowledged end to end).
	Held vtime.Bytes `json:"held,omitempty"`

	// Hop, per node and flow; the first five are the state now, the others count.
	BlocksHeld     int64 `json:"blocks_held,omitempty"`      // received and not yet reliably passed on
	BlocksInFlight int64 `json:"blocks_in_flight,omitempty"` // announced to the next hop and not acknowledged by it
	BlocksCached   int64 `json:"blocks_cached,omitempty"`    // passed on and kept for virtual retransmission
	BlocksUnacked  int64 `json:"blocks_unacked,omitempty"`   // source: not acknowledged end to end
	Withheld       int64 `json:"withheld,omitempty"`         // BSYNs that wait for a grant at this node
	BlocksDone     int64 `json:"blocks_done,omitempty"`      // source: acknowledged end to end; destination: complete; relay: passed on
	MicroBlocks    int64 `json:"micro_blocks,omitempty"`     // of the blocks that began or were completed here, those sent with their BSYN
	GrantsWithheld int64 `json:"grants_withheld,omitempty"`  // BSYNs not answered because another block had the grant
	Blocked        int64 `json:"blocked,omitempty"`          // BSYNs not answered because of backpressure or memory
	Tokens         int64 `json:"tokens,omitempty"`           // VBSYNs sent
	DataFrames     int64 `json:"data_frames,omitempty"`      // data frames sent, repeats included
	ControlFrames  int64 `json:"control_frames,omitempty"`   // BSYN, BACK, VBSYN, end-to-end BACK sent

	// UDP. The source's counts, and the destination's: of the datagrams that were
	// sent before the latest one that came, DatagramsLost have not come.
	DatagramsSent    int64 `json:"datagrams_sent,omitempty"`
	DatagramsRefused int64 `json:"datagrams_refused,omitempty"` // not taken by the kernel: full buffer or queue
	Datagrams        int64 `json:"datagrams,omitempty"`         // received, repeats not included
	DatagramsLost    int64 `json:"datagrams_lost,omitempty"`
	Duplicates       int64 `json:"duplicates,omitempty"`
	Reordered        int64 `json:"reordered,omitempty"`
}

// Message is what became of one message of a flow whose workload consists of
// messages. The receiver reports each once: when it was delivered, or, with
// Lost, at the stop.
type Message struct {
	Flow int `json:"flow"`
	workload.Receipt
}

// MaxMessages is the most messages that one batch reports; their line stays far
// below MaxLine.
const MaxMessages = 4096

// Samples is one batch.
type Samples struct {
	Node    int      `json:"node"`
	Samples []Sample `json:"samples"`
	// Messages are those that were delivered since the last batch, and in the last
	// batches, after the stop, those that were not. At most MaxMessages.
	Messages []Message `json:"messages,omitempty"`
}

// EventKind names what happened to a flow.
type EventKind string

// The events of a flow.
const (
	Connected EventKind = "connected" // the connection stands
	Finished  EventKind = "finished"  // a sized flow delivered everything
	Failed    EventKind = "failed"    // Error says why
	Window    EventKind = "window"    // coop-tcp: Text is the new state of the flow's window
)

// Event is one change in a flow's life at one node.
type Event struct {
	Node  int        `json:"node"`
	Flow  int        `json:"flow"`
	Side  Side       `json:"side"`
	Kind  EventKind  `json:"kind"`
	T     vtime.Time `json:"t_ns"`
	Error *Error     `json:"error,omitempty"`
	Text  string     `json:"text,omitempty"`
}

// Log is a line for the run's log.
type Log struct {
	Node    int    `json:"node"`
	Level   string `json:"level"` // info, warn
	Message string `json:"message"`
}

// Failure is the agent's last word when it cannot go on.
type Failure struct {
	Node  int   `json:"node"`
	Error Error `json:"error"`
}

// Readback is the state that the agent read from the kernel after configuring
// and compared with the order. It is the evidence that goes into the run.
type Readback struct {
	Interfaces []InterfaceState `json:"interfaces"` // in the order of the order
	Bridge     *BridgeState     `json:"bridge,omitempty"`
	Sysctls    []Sysctl         `json:"sysctls,omitempty"`
	Routes     int              `json:"routes"`     // entries compared and equal
	Neighbours int              `json:"neighbours"` // entries compared and equal
	Flows      []FlowSetup      `json:"flows,omitempty"`
	// Radio is the evidence of each parameter of the radio; Shapers are the links
	// that the kernel emulates, as read back.
	Radio   []radio.Setting `json:"radio,omitempty"`
	Shapers []tc.Link       `json:"shapers,omitempty"`
}

// InterfaceState is an interface as the kernel describes it.
type InterfaceState struct {
	Name            string         `json:"name"`
	Index           int            `json:"index"`
	Up              bool           `json:"up"`
	HardwareAddress string         `json:"hardware_address"`
	MTU             int            `json:"mtu"`
	TxQueueLen      int            `json:"tx_queue_len"`
	Addresses       []netip.Prefix `json:"addresses,omitempty"`
	Offloads        []Offload      `json:"offloads,omitempty"`
}

// BridgeState is a bridge as the kernel describes it: without spanning tree and
// multicast snooping, its ports without learning and flooding, which were
// compared.
type BridgeState struct {
	InterfaceState
	Ports   []string `json:"ports"`   // interfaces that forward
	Forward int      `json:"forward"` // entries compared and equal
}

// Offload is the state of one segmentation offload of the interface.
type Offload struct {
	Name string `json:"name"` // tso, gso, gro
	On   bool   `json:"on"`
}

// FlowSetup is what the kernel took for a flow at one node: the socket
// options read back.
type FlowSetup struct {
	Flow          int         `json:"flow"`
	Side          Side        `json:"side"`
	CC            string      `json:"cc,omitempty"`
	SendBuffer    vtime.Bytes `json:"send_buffer,omitempty"`
	ReceiveBuffer vtime.Bytes `json:"receive_buffer,omitempty"`
	MSS           int         `json:"mss,omitempty"`
	// ReceiveWindow is the clamp of the window that the receiver offers
	// (TCP_WINDOW_CLAMP), where the flow has one.
	ReceiveWindow vtime.Bytes `json:"receive_window,omitempty"`
	// Limit is how the window of a flow of coop-tcp is bounded: "bpf", or "queue"
	// with why it is not "bpf".
	Limit string `json:"limit,omitempty"`
	// Program is what an external program says of its version.
	Program string `json:"program,omitempty"`
}

// FlowResult is one side's account of a flow after the stop. The destination's
// Bytes are the flow's result; the other sides explain it.
type FlowResult struct {
	Flow int  `json:"flow"`
	Side Side `json:"side"`
	// Bytes are the application bytes delivered in the flow's part of the
	// measured interval (Flow.Measured).
	Bytes vtime.Bytes `json:"bytes"`
	// Total are the application bytes delivered (destination), accepted by
	// the transport (source) or passed on (relay) since the flow began.
	Total vtime.Bytes `json:"total"`
	// [MeasuredFrom, MeasuredTo) is the interval that Bytes cover:
	// Flow.Measured, shorter when the run was stopped before its end. Every
	// piece of data is counted at the moment at which it was delivered.
	MeasuredFrom vtime.Time `json:"measured_from_ns,omitempty"`
	MeasuredTo   vtime.Time `json:"measured_to_ns,omitempty"`
	// Established is when the connection stood; SetupTime the time from the
	// flow's start until then. Attempts counts the tries.
	Established vtime.Time     `json:"established_ns,omitempty"`
	SetupTime   vtime.Duration `json:"setup_ns,omitempty"`
	Attempts    int            `json:"attempts,omitempty"`
	// FinishedAt is when a sized flow was complete at the destination; 0 = not.
	Finished   bool       `json:"finished,omitempty"`
	FinishedAt vtime.Time `json:"finished_at_ns,omitempty"`
	CC         string     `json:"cc,omitempty"` // read back from the connected socket
	// Corrupt counts application bytes (streams) or blocks (hop) whose content
	// was not what the source sent. It is 0 or the flow has an Error.
	Corrupt int64 `json:"corrupt,omitempty"`
	// Error of CodeTimeout ("flow N set-up") is an outcome, not a fault: the
	// network did not let the connection stand, and the goodput is 0. Every
	// other code makes the flow's figures unusable.
	Error *Error `json:"error,omitempty"`

	// UDP at the destination.
	Datagrams  int64 `json:"datagrams,omitempty"`
	Duplicates int64 `json:"duplicates,omitempty"`
	Reordered  int64 `json:"reordered,omitempty"`
	// DatagramsSent is the source's count, for the loss ratio.
	DatagramsSent int64 `json:"datagrams_sent,omitempty"`

	// Relay: the most bytes of this flow held at once.
	MaxHeld vtime.Bytes `json:"max_held,omitempty"`
	// Hop: blocks complete at the destination or acknowledged at the source.
	Blocks int64 `json:"blocks,omitempty"`
	// Counters are what the transport counts beyond the fields above.
	Counters []Counter `json:"counters,omitempty"`
	// Last is the state at the stop, in the form of a sample.
	Last *Sample `json:"last,omitempty"`
}

// Counter is a counter's change over the run: of the kernel, of a transport.
type Counter struct {
	Name  string `json:"name"` // "TcpExt.TCPTimeouts"
	Delta int64  `json:"delta"`
}

// NodeFacts is what the agent observed about itself and its kernel.
type NodeFacts struct {
	// Counters are the non-zero changes of /proc/net/snmp and /proc/net/netstat
	// in this namespace between start and stop.
	Counters []Counter `json:"counters,omitempty"`
	// CPU is the agent's own processor time between start and stop.
	CPUUser   vtime.Duration `json:"cpu_user_ns"`
	CPUSystem vtime.Duration `json:"cpu_system_ns"`
	// RunDelay is the time that the agent's threads were runnable and waited
	// for a processor (schedstat); Wall the time that it relates to.
	RunDelay vtime.Duration `json:"run_delay_ns"`
	Wall     vtime.Duration `json:"wall_ns"`
	// PressureSome is the time in which some task of the host waited for a
	// processor (PSI cpu "some"), Steal what the hypervisor took (all CPUs).
	PressureSome vtime.Duration `json:"pressure_some_ns"`
	Steal        vtime.Duration `json:"steal_ns"`
	// Missing names the facts that this kernel does not give.
	Missing []string `json:"missing,omitempty"`
	// Samples counts the rounds of samples taken, SampleLateP99 and
	// SampleLateMax say how long after their nominal moments: how late this
	// agent's timers fired, and with them its user-space transports.
	Samples       int            `json:"samples"`
	SampleLateP99 vtime.Duration `json:"sample_late_p99_ns"`
	SampleLateMax vtime.Duration `json:"sample_late_max_ns"`
	// Standstill is the longest time that the agent stood still in the measured
	// interval, looked for every 20 ms where it handles messages; 0 elsewhere.
	Standstill vtime.Duration `json:"standstill_ns,omitempty"`
	// Hop holds the node's Hop counters by name, in the order of hop's table.
	Hop []Counter `json:"hop,omitempty"`
	// Switched are the switches that were carried out, in their order.
	Switched []Switched `json:"switched,omitempty"`
	// Shapers are the counters of the links that the kernel emulates, over the
	// measured interval.
	Shapers []tc.Counters `json:"shapers,omitempty"`
}

// Switched says how a switch of the node was carried out.
type Switched struct {
	T    vtime.Time     `json:"t_ns"` // as ordered
	Up   bool           `json:"up"`
	Late vtime.Duration `json:"late_ns"`         // when it was done, after T
	Err  *Error         `json:"error,omitempty"` // of a transport that could not begin again
}

// Results answers collect.
type Results struct {
	Node  int          `json:"node"`
	Flows []FlowResult `json:"flows"`
	Facts NodeFacts    `json:"facts"`
}

// Reverted answers revert: what was put back, newest first, and what could not.
type Reverted struct {
	Undone []string `json:"undone"`
	Failed []Error  `json:"failed,omitempty"`
}
