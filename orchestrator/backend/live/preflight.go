//go:build linux

package live

import (
	"context"
	"errors"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Preflight implements backend.Backend: what would fail in some run is said before
// the first.
func (b *Backend) Preflight(_ context.Context, p *plan.Plan) error {
	for _, pt := range p.Experiment.Points() {
		c := pt.Config
		if c.Topology.Inventory != "" {
			return &backend.ErrUnsupported{Backend: b.Name(), What: "topology.inventory", Because: "the nodes of an inventory are real hosts",
				Do: "describe the topology by generate or nodes"}
		}
		for _, g := range c.Flows {
			if f := g.Transport.Family(); f != spec.FamilyTCP && f != spec.FamilyHopByHopTCP {
				continue
			}
			err := sock.HasCC(g.Transport.Variant())
			if e, ok := errors.AsType[*proto.Error](err); ok && e.Code == proto.CodeUnavailable {
				return &backend.ErrUnsupported{Backend: b.Name(), What: string(g.Transport), Because: "this kernel has only " + e.Got, Do: e.Remedy}
			}
			if err != nil {
				return err
			}
		}
	}
	return tap.Probe()
}
