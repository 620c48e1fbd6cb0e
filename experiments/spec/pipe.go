package spec

import (
	"strconv"

	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/vtime"
)

// The bounds of wired links.
const (
	MaxPipes        = 2000 // of an experiment
	MaxPipesPerNode = 250  // as many as the address plan has
)

// Pipe is a wired link between two nodes. Its own Direction is from the first
// end to the second; Backward gives the other one.
type Pipe struct {
	// Ends holds the names of the two nodes, written [node, node].
	Ends Ends `key:"ends" required:"true"`
	// Interfaces holds the names of the link's interface at either end; the default is eth0, eth1 and so on at each node, in the order of the list.
	Interfaces Interfaces `key:"interfaces"`
	// Emulator says who makes the link on namespaces: user is this program's own emulator; kernel is Linux's netem or tbf; auto is the kernel where it can do what the link, the flows and the run ask for, else user.
	Emulator Emulator `key:"emulator" enum:"user|kernel|auto" default:"user"`

	Direction

	// Reverse holds what differs from the second end to the first; a key that it names replaces the whole value.
	Reverse *Direction `key:"reverse"`
}

// Backward is the direction from the second end to the first.
func (p *Pipe) Backward() *Direction {
	if p.Reverse != nil {
		return p.Reverse
	}
	return &p.Direction
}

// PipeInterfaces returns the name of each pipe's interface at either end: the
// one that the file gives, or the first of eth0, eth1 … that its node has not.
func (t *Topology) PipeInterfaces() []Interfaces {
	type key struct{ node, name string }
	taken := map[key]bool{}
	for _, p := range t.Pipes {
		for e, name := range p.Interfaces {
			taken[key{p.Ends[e], name}] = true
		}
	}
	next := map[string]int{}
	out := make([]Interfaces, len(t.Pipes))
	for i, p := range t.Pipes {
		out[i] = p.Interfaces
		for e, node := range p.Ends {
			for out[i][e] == "" {
				name := "eth" + strconv.Itoa(next[node])
				next[node]++
				if !taken[key{node, name}] {
					out[i][e] = name
				}
			}
		}
	}
	return out
}

// Emulator names who emulates a wired link on namespaces.
type Emulator string

// The emulators of wired links.
const (
	UserEmulator   Emulator = "user"
	KernelEmulator Emulator = "kernel"
	AutoEmulator   Emulator = "auto"
)

// Ends are the names of a pipe's two nodes.
type Ends [2]string

// Interfaces are the names of a pipe's interface at its two ends; empty where
// the file leaves them to the default.
type Interfaces [2]string

// Direction describes one direction of a pipe.
type Direction struct {
	// Rate is the capacity; left out, the link has no limit.
	Rate vtime.BitRate `key:"rate" min:"1kbit" max:"100gbit"`
	// Delay is the propagation delay of one way, after the queue.
	Delay vtime.Duration `key:"delay" min:"0s" max:"1h" default:"0s"`
	// Jitter varies the delay of each packet.
	Jitter *Jitter `key:"jitter"`
	// Loss is the share of packets that are lost, or a Gilbert–Elliott model of bursts.
	Loss *PipeLoss `key:"loss"`
	// Queue is what may wait for the link, drop-tail, the packet in service included; required where the link has a limit or goes down.
	Queue *PipeQueue `key:"queue"`
	// Reorder holds back a share of the packets, so that those behind overtake them.
	Reorder *Reorder `key:"reorder"`
	// Duplicate is the share of packets that arrive twice.
	Duplicate vtime.Fraction `key:"duplicate" min:"0%" max:"100%" default:"0%"`
	// Overhead is added to the length of each IP packet on the link, for its framing.
	Overhead vtime.Bytes `key:"overhead" min:"0B" max:"1000B" default:"0B"`
	// Trace gives the capacity as delivery opportunities (Mahimahi), in place of a rate.
	Trace *PipeTrace `key:"trace"`
	// Schedule changes the link while it runs.
	Schedule []PipeChange `key:"schedule"`
}

// Distribution names the shape of a random delay.
type Distribution string

// The shapes of jitter.
const (
	Constant    Distribution = "constant"
	Uniform     Distribution = "uniform"
	Normal      Distribution = "normal"
	Exponential Distribution = "exponential"
	Pareto      Distribution = "pareto"
)

// Jitter varies the delay of each packet; a delay never falls below zero.
type Jitter struct {
	// Distribution is the shape: uniform within spread of the delay, normal with the standard deviation spread, exponential or pareto with the mean spread added.
	Distribution Distribution `key:"distribution" required:"true" enum:"constant|uniform|normal|exponential|pareto"`
	// Spread is the size of the variation.
	Spread vtime.Duration `key:"spread" min:"0s" max:"1h" default:"0s"`
	// Overtake lets packets overtake each other; otherwise a packet waits for the one before it, as on a line.
	Overtake bool `key:"overtake" default:"false"`
}

// PipeLoss is a loss model: Bernoulli where only Good is set, else
// Gilbert–Elliott. Written as a share, or as a mapping.
type PipeLoss struct {
	// Good is the share of packets lost in the good state, or at all times where there is no other state.
	Good vtime.Fraction `key:"good" min:"0%" max:"100%" default:"0%"`
	// Bad is the share of packets lost in the bad state.
	Bad vtime.Fraction `key:"bad" min:"0%" max:"100%" default:"0%"`
	// ToBad is the probability to move from the good to the bad state, before each packet.
	ToBad vtime.Fraction `key:"to-bad" min:"0%" max:"100%" default:"0%"`
	// ToGood is the probability to move back; 1/to-good is the mean length of the bad state in packets.
	ToGood vtime.Fraction `key:"to-good" min:"0%" max:"100%" default:"0%"`
	// AfterQueue lets a lost packet take its place in queue and capacity first, as on a noisy line; otherwise it is lost on entry, as in Dummynet and netem.
	AfterQueue bool `key:"after-queue" default:"false"`
}

// PipeQueue limits what waits for a link.
type PipeQueue struct {
	// Packets is the limit in packets.
	Packets int `key:"packets" min:"1" max:"1000000"`
	// Bytes is the limit in bytes of IP packets.
	Bytes vtime.Bytes `key:"bytes" min:"1500B" max:"1GB"`
}

// Reorder holds back a share of the packets.
type Reorder struct {
	// Share is the share of the packets that are held back.
	Share vtime.Fraction `key:"share" required:"true" min:"0%" max:"100%"`
	// Extra is the time for which they are.
	Extra vtime.Duration `key:"extra" required:"true" min:"1us" max:"1h"`
}

// TraceModel names a model that makes traces.
type TraceModel string

// The models of traces (netem/celltrace).
const (
	HSDPATrace TraceModel = "hsdpa"
	EDCHTrace  TraceModel = "e-dch"
)

// PipeTrace is a capacity as opportunities to deliver 1500 bytes: those of a file
// in Mahimahi's format, one line for each, in milliseconds, or those of a model.
type PipeTrace struct {
	// File is the path, relative to the experiment file.
	File string `key:"file" pattern:"path"`
	// Generate makes a trace by a model of a UMTS cell in place of a file: hsdpa is a downlink, e-dch an uplink.
	Generate TraceModel `key:"generate" enum:"hsdpa|e-dch"`
	// Seed is the seed of a generated trace; the outages of a downlink and an uplink of the same seed coincide.
	Seed uint64 `key:"seed" min:"0" default:"1"`
	// Length is that of a generated trace.
	Length vtime.Duration `key:"length" min:"10s" max:"30min" default:"10min"`
	// SINR is the median signal to interference and noise ratio of a generated downlink.
	SINR vtime.Decibel `key:"sinr" min:"-10dB" max:"30dB" default:"3dB"`
	// OtherUsers is the mean number of others that share a generated downlink.
	OtherUsers float64 `key:"other-users" min:"0" max:"20" default:"1"`
	// OutageEvery is the mean time between outages of a generated trace; 0s is never.
	OutageEvery vtime.Duration `key:"outage-every" min:"0s" max:"1h" default:"60s"`
	// OutageMean is the mean length of an outage of a generated trace.
	OutageMean vtime.Duration `key:"outage-mean" min:"10ms" max:"60s" default:"1s"`
	// Offset is where in the trace the run begins.
	Offset vtime.Duration `key:"offset" min:"0s" max:"24h" default:"0s"`
	// RandomOffset begins each repetition somewhere else in the trace, all points of a repetition at the same place, and both directions at the same share of their traces.
	RandomOffset bool `key:"random-offset" default:"false"`

	// Capacity is what the file or the model says; nil where a file was left unread.
	Capacity *pipe.Trace
}

// PipeChange alters a link at a moment. What is left out stays as it is.
type PipeChange struct {
	// At is the moment on the run's clock; 0s is the begin of the warm-up.
	At vtime.Duration `key:"at" required:"true" min:"0s" max:"192h"`
	// Up takes the link down (false) or up (true); a link that is down keeps its queue, and what has left it arrives.
	Up *bool `key:"up"`
	// Rate is the capacity from now on.
	Rate *vtime.BitRate `key:"rate" min:"1kbit" max:"100gbit"`
	// Delay is the propagation delay from now on.
	Delay *vtime.Duration `key:"delay" min:"0s" max:"1h"`
	// Loss is the loss model from now on.
	Loss *PipeLoss `key:"loss"`
	// Queue is the limit from now on; what is in a queue that becomes shorter stays.
	Queue *PipeQueue `key:"queue"`
}
