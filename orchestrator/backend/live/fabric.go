//go:build linux

package live

import (
	"context"
	"net/netip"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// fabric is what joins a run's nodes: the emulated medium of this host, or
// whatever lies between real ones. A session calls its methods in this order;
// close may come at any time, and twice.
type fabric interface {
	// specs are the nodes to start.
	specs() ([]node.Spec, error)
	// driver makes the driver that starts them.
	driver() (node.Driver, error)
	// addr is the address of a node in the experiment.
	addr(node int) netip.Addr
	// start makes the links, when every agent has been greeted.
	start(ctx context.Context, r *session) error
	// order is what makes a node, with the flows of the run.
	order(node int, flows []proto.Flow) (*proto.Configure, error)
	// begin tells the run's clock, whose moment 0 is epoch on this host's
	// CLOCK_MONOTONIC, and the measured interval.
	begin(ctx context.Context, epoch int64, from, to vtime.Time) error
	// stop ends the traffic's side of it, when the agents have stopped theirs.
	stop(ctx context.Context) error
	// collect fills in what the fabric counted, and its part of the verdict.
	collect(rec *store.RunRecord)
	// close gives everything back that is not the nodes' own.
	close() error
	// kill ends what must not outlive the nodes, before they are ended.
	kill()
}
