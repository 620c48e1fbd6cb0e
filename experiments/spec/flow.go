package spec

import "github.com/hopbed/hopbed/netem/vtime"

// Flow is a group of flows of one kind.
type Flow struct {
	// Count is the number of flows; listed pairs give it themselves.
	Count int `key:"count" min:"1" max:"10000"`
	// Pairs is "random", or the list of {src, dst}.
	Pairs Pairs `key:"pairs" required:"true"`
	// Hops restricts random pairs: a comparison such as ">=2", a range such as 2-5, or a mix such as {2: 60%, 3-4: 40%}.
	Hops HopRule `key:"hops"`
	// Transport carries the flows.
	Transport Transport `key:"transport" required:"true"`
	// Workload is what the flows carry.
	Workload Workload `key:"workload" default:"continual"`
	// DSCP is the code point of the flows' packets, which chooses their queue of the MAC; the default is CS0, and EF for voip.
	DSCP *DSCP `key:"dscp"`
	// Start is when the flows begin on the run's clock, on which 0s is the begin of the warm-up; the default is 0s, and the begin of the measured interval for sized and trace workloads.
	Start *vtime.Duration `key:"start" min:"0s" max:"192h"`
	// Stop is when the flows end on the run's clock; the default is the end of the run.
	Stop *vtime.Duration `key:"stop" min:"0s" max:"192h"`
}

// Pairs says which nodes a group of flows joins.
type Pairs struct {
	// Listed holds the pairs by name; nil means random pairs.
	Listed []Pair
}

// Random reports whether the pairs are drawn at random.
func (p Pairs) Random() bool { return p.Listed == nil }

// Pair is a listed pair of nodes.
type Pair struct {
	// Src is the name of the sending node.
	Src string `key:"src" required:"true" pattern:"name"`
	// Dst is the name of the receiving node.
	Dst string `key:"dst" required:"true" pattern:"name"`
}

// HopRule restricts random pairs by the length of their route. The zero value
// allows every pair.
type HopRule struct {
	// Classes holds the allowed ranges with their shares; shares sum to 1.
	Classes []HopClass
}

// HopClass is a range of route lengths and the share of the flows that have
// one.
type HopClass struct {
	Min, Max int // hops, both inclusive; Max is MaxNodes for an open range
	Share    vtime.Fraction
}
