package emulator

import (
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// LatenessSummary is what the run's record keeps of the lateness of visible
// events: deliveries to a node and, with a queue board, departures from a
// sender's queue.
type LatenessSummary struct {
	Events uint64         `json:"events"`
	P50    vtime.Duration `json:"p50_ns"`
	P99    vtime.Duration `json:"p99_ns"`
	Max    vtime.Duration `json:"max_ns"`
	// Above1ms and Above2ms are shares of the events, 0 to 1.
	Above1ms float64 `json:"above_1ms"`
	Above2ms float64 `json:"above_2ms"`
	// Stall is the longest time that the thread waited to run after its wake-up
	// was due; Turn the longest time that it computed without looking up.
	Stall vtime.Duration `json:"longest_stall_ns"`
	Turn  vtime.Duration `json:"longest_turn_ns"`
	Wakes uint64         `json:"wakes"`
}

// HostUse is what the emulator took from the host, and what the host withheld.
type HostUse struct {
	CPU      vtime.Duration `json:"cpu_ns"`       // user and system time of the process
	CPUPaced vtime.Duration `json:"cpu_paced_ns"` // of the pacing thread alone
	// RunDelay is the time that the pacing thread was runnable and did not run
	// (/proc/thread-self/schedstat); -1 where the kernel does not tell.
	RunDelay vtime.Duration `json:"run_delay_ns"`
	// Pressure is the time in which some task of the host waited for a processor
	// (PSI, /proc/pressure/cpu); -1 where the kernel does not tell.
	Pressure vtime.Duration `json:"pressure_ns"`
	// Steal is the processor time that the hypervisor gave to others, over all
	// processors (/proc/stat); -1 where the kernel does not tell.
	Steal vtime.Duration `json:"steal_ns"`
}

// FrameCounts count what passed between devices and the links behind them: the
// medium and the pipes.
type FrameCounts struct {
	Read       uint64 `json:"read"`        // frames taken from the device
	ReadErrors uint64 `json:"read_errors"` // reads that failed, other than for lack of frames
	Refused    uint64 `json:"refused"`     // frames for a full transmit queue
	Foreign    uint64 `json:"foreign"`     // neither IPv4 nor ARP, or malformed: dropped
	Unknown    uint64 `json:"unknown"`     // over the radio to a hardware address that no radio reaches: dropped
	Written    uint64 `json:"written"`     // frames handed to the node
	// WriteErrors are frames that the node's kernel refused.
	WriteErrors uint64 `json:"write_errors"`
}

// refuse counts a frame that no link takes.
func (c *FrameCounts) refuse(why refusal) {
	if why == unknown {
		c.Unknown++
	} else {
		c.Foreign++
	}
}

// Add returns the sum of c and o.
func (c FrameCounts) Add(o FrameCounts) FrameCounts {
	return FrameCounts{c.Read + o.Read, c.ReadErrors + o.ReadErrors, c.Refused + o.Refused, c.Foreign + o.Foreign,
		c.Unknown + o.Unknown, c.Written + o.Written, c.WriteErrors + o.WriteErrors}
}

// Span is one interval of a run: how well time was kept and at what cost.
type Span struct {
	From     vtime.Time      `json:"from_ns"` // on the run's clock
	To       vtime.Time      `json:"to_ns"`
	Lateness LatenessSummary `json:"lateness"`
	Host     HostUse         `json:"host"`
	Frames   FrameCounts     `json:"frames"` // of all devices of all nodes
}

// NodeReport is one node's radio in the measured interval; of a node without a
// radio it has only the name.
type NodeReport struct {
	Name   string                      `json:"name"`
	Stats  wifi.NodeStats              `json:"stats"`
	Queues [wifi.NumAC]wifi.QueueState `json:"queues"` // at the end of the interval
	Frames FrameCounts                 `json:"frames"`
	// Device are the kernel's counts of the interface. They are read beside the
	// pacing thread, so their interval may differ by some milliseconds.
	// DeviceError says why there are none (the node's agent had ended).
	Device      tap.Counters `json:"device"`
	DeviceError string       `json:"device_error,omitempty"`
	// Rewriting counts what the node's filter of windows did in the whole run; nil: it has none.
	Rewriting *winrewrite.Stats `json:"rewriting,omitempty"`
}

// EndReport is the interface of one end of a pipe in the measured interval.
type EndReport struct {
	Node      int         `json:"node"`
	Interface string      `json:"interface"`
	Frames    FrameCounts `json:"frames"` // Refused: the queue of the direction away from this end was full
	// Device and DeviceError are as in NodeReport.
	Device      tap.Counters `json:"device"`
	DeviceError string       `json:"device_error,omitempty"`
}

// Report is the emulator's account of a run.
type Report struct {
	Priority string   `json:"priority"` // "SCHED_FIFO 20", "nice -20", …
	Refused  []string `json:"priority_refused,omitempty"`
	Wait     string   `json:"wait"` // "epoll_pwait2", "epoll+timerfd"
	// Measured is the interval given to Begin, cut short by Stop; Whole runs from
	// the emulator's start to its stop. Without Begin, Measured is Whole.
	Measured Span         `json:"measured"`
	Whole    Span         `json:"whole"`
	Nodes    []NodeReport `json:"nodes"`
	// Pipes are the counters of the two directions of each pipe in the measured
	// interval, in the order of Config.Pipes, and PipeEnds the interfaces at its
	// ends: direction e leaves end e.
	Pipes    [][2]pipe.Stats `json:"pipes,omitempty"`
	PipeEnds [][2]EndReport  `json:"pipe_ends,omitempty"`
	// Changes says how the configuration's changes were applied; nil: it has none.
	Changes *ChangesReport `json:"changes,omitempty"`
	// ShortestDrain is the least time in which a full queue of a wired link empties;
	// 0 if no link has both a rate and a limit.
	ShortestDrain vtime.Duration `json:"shortest_drain_ns,omitempty"`
	// RingDrops are the frames of the measured interval that the kernel dropped
	// because the ring to the emulator was full, over all devices of all nodes.
	RingDrops uint64 `json:"ring_drops"`
	// TraceHash is the hash of all events up to Stop. A live run is not
	// repeatable; the hash identifies it.
	TraceHash uint64 `json:"trace_hash,string"`
	Events    uint64 `json:"events"` // fired by the engine, in the whole run
	// Capture says what became of the capture, if one was asked for.
	Capture *CaptureReport `json:"capture,omitempty"`
}

// Health is a progress message, about once a second.
type Health struct {
	At        vtime.Time      `json:"at_ns"`     // on the run's clock; before Begin since the start
	Measuring bool            `json:"measuring"` // the measured interval is under way
	Lateness  LatenessSummary `json:"lateness"`  // since the interval began
	Frames    FrameCounts     `json:"frames"`    // since the interval began
	Events    uint64          `json:"events"`
}
