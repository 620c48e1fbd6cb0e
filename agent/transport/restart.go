package transport

import "github.com/hopbed/hopbed/netem/vtime"

// Restarter is an Endpoint of a transport that keeps something in the memory of nodes
// between the ends of its flows. The experiment may switch such a node off and on
// again; no flow begins or ends at it. An endpoint that does not implement it has
// nothing to lose.
type Restarter interface {
	// NodeDown forgets all that is in memory, and tells nobody: connections are
	// gone without a segment, nobody listens, and nothing is sent until NodeUp. At
	// the same moment the node's links are cut, so that what is under way already
	// gets nowhere. Counters are kept; what is on a disk is.
	NodeDown(now vtime.Time)
	// NodeUp begins afresh, as after Start: it listens again.
	NodeUp(now vtime.Time) error
}
