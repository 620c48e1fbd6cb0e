package workload

import "github.com/hopbed/hopbed/netem/vtime"

// Kind names a traffic source.
type Kind string

// The kinds of workload.
const (
	// Continual always has data to send ("30 concurrent continual flows",
	// Hop, NSDI 2009, section 5.3).
	Continual Kind = "continual"
	// Sized sends Size bytes once and reports how long that took (the 10 MB
	// file of the single-hop experiments).
	Sized Kind = "sized"
	// Poisson sends messages that arrive at random moments, independently of
	// each other.
	Poisson Kind = "poisson"
	// Trace sends the messages of a list.
	Trace Kind = "trace"
	// VoIP sends a codec's packets.
	VoIP Kind = "voip"
	// Web answers requests for pages of objects; the requests are a flow of
	// their own.
	Web Kind = "web"
)

// Kinds lists every kind, in the order in which messages name them.
func Kinds() []Kind { return []Kind{Continual, Sized, Poisson, Trace, VoIP, Web} }

// Role says which half of an exchange a flow is.
type Role string

// The roles; a flow that is no part of an exchange has none.
const (
	Responses Role = "responses" // from the server to the client
	Requests  Role = "requests"  // from the client to the server
)

// Spec is one flow's workload as the controller orders it. Only the fields of
// its Kind are set.
type Spec struct {
	Kind Kind `json:"kind"`
	// Size is the amount that a sized source sends, in application bytes, and
	// the mean size of a poisson source's messages.
	Size vtime.Bytes `json:"size,omitempty"`
	// Seed begins the random draws of kinds that draw; both ends of a flow have
	// the same.
	Seed uint64 `json:"seed,omitempty"`
	// Interval is the mean distance of a poisson source's messages.
	Interval vtime.Duration `json:"interval_ns,omitempty"`
	// Sizes is the distribution of a poisson source's sizes: SizesFixed is the
	// default.
	Sizes Sizes `json:"sizes,omitempty"`
	// Transfers are the messages of a trace, in ascending order of At.
	Transfers []Transfer `json:"transfers,omitempty"`
	// Codec is that of a voip source.
	Codec string `json:"codec,omitempty"`
	// Web describes the pages of a web workload.
	Web *WebSpec `json:"web,omitempty"`
	// Role is which half of a web exchange this flow is.
	Role Role `json:"role,omitempty"`
}

// Sizes names a distribution of message sizes with the mean Spec.Size.
type Sizes string

// The distributions of sizes.
const (
	SizesFixed       Sizes = "fixed"
	SizesExponential Sizes = "exponential"
	SizesPareto      Sizes = "pareto" // shape 1.2, bounded at 1,000 times the mean
)

// Transfer is one message of a trace.
type Transfer struct {
	At   vtime.Duration `json:"at_ns"` // after the flow's start
	Size vtime.Bytes    `json:"size"`
}

// WebSpec describes what users of a web server ask for: a catalogue of objects
// whose popularity is Zipf's, in pages of several objects, with pauses between
// them (after Barford and Crovella, Generating Representative Web Workloads,
// SIGMETRICS 1998).
type WebSpec struct {
	Objects     int            `json:"objects"`      // in the catalogue
	Zipf        float64        `json:"zipf"`         // exponent of the popularity by rank
	MeanSize    vtime.Bytes    `json:"mean_size"`    // of an object: lognormal body, Pareto tail
	MaxSize     vtime.Bytes    `json:"max_size"`     // bound of the tail
	PageObjects float64        `json:"page_objects"` // mean number of objects of a page, the first included
	Think       vtime.Duration `json:"think_ns"`     // mean pause after a page, exponential
	Request     vtime.Bytes    `json:"request"`      // size of a request
}

// Total returns how much the source sends in all, in application bytes; 0 where
// that depends on the length of the run.
func (s Spec) Total() vtime.Bytes {
	if s.Kind == Sized {
		return s.Size
	}
	return 0
}

// Ends reports whether the flow is over when its source has sent everything: of a
// fixed amount. Others last until their stop, and may be silent before it.
func (s Spec) Ends() bool { return s.Kind == Sized || s.Kind == Trace }

// HasMessages reports whether the flow's data are messages whose delays are
// measured.
func (s Spec) HasMessages() bool {
	switch s.Kind {
	case Poisson, Trace, VoIP, Web:
		return true
	}
	return false
}
