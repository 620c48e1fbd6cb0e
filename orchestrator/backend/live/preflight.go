//go:build linux

package live

import (
	"context"
	"errors"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/program"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Preflight implements backend.Backend: what would fail in some run is said before
// the first.
func (b *Backend) Preflight(ctx context.Context, p *plan.Plan) error {
	if b.opt.Lab != nil {
		return b.preflightLab(ctx, p)
	}
	for _, pt := range p.Experiment.Points() {
		c := pt.Config
		if c.Topology.Inventory != "" && len(c.Topology.Links) == 0 {
			return &backend.ErrUnsupported{Backend: b.Name(), What: "topology.inventory", Because: "the nodes of an inventory are real hosts, and nothing says which of them would hear each other",
				Do: "--backend ssh runs on them; list topology.links to emulate them"}
		}
		if c.MAC.Fragment != nil {
			return &backend.ErrUnsupported{Backend: b.Name(), What: "mac.fragment", Because: "emulated radios send frames whole",
				Do: "remove the key, or run on real nodes: --backend ssh"}
		}
		for _, g := range c.Flows {
			if err := b.programs(c, &g); err != nil {
				return err
			}
			if !overTCP(g.Transport) {
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
	if err := b.preflightEmulators(p); err != nil {
		return err
	}
	return tap.Probe()
}

// preflightLab looks at what real nodes cannot do of a plan, and then whether every
// node can be reached. What one of them lacks it says itself, when it is ordered,
// before anything is changed.
func (b *Backend) preflightLab(ctx context.Context, p *plan.Plan) error {
	nodes, err := site.Check(p, b.opt.Lab.Inventory)
	if err != nil || b.opt.Lab.Ready == nil {
		return err
	}
	return b.opt.Lab.Ready(ctx, nodes)
}

// overTCP tells whether the transport's variant is a congestion control.
func overTCP(t spec.Transport) bool {
	switch t.Family() {
	case spec.FamilyTCP, spec.FamilyCoopTCP, spec.FamilyHopByHopTCP, spec.FamilyBundle:
		return true
	case spec.FamilyIperf3, spec.FamilyIperf2:
		return t.Variant() != "udp"
	}
	return false
}

// programs looks for the programs of a group of flows. Emulated nodes have those
// of this host.
func (b *Backend) programs(c *spec.Config, g *spec.Flow) error {
	_, err := program.Available(g.Transport.Family())
	if g.Transport.Family() == spec.FamilyExec {
		o := c.Transports.Exec
		for _, argv := range [][]string{o.Send, o.Receive, o.Relay} {
			if len(argv) > 0 && err == nil {
				err = program.Find(argv[0], o.Dir)
			}
		}
	}
	if e, ok := errors.AsType[*proto.Error](err); ok && e.Code == proto.CodeUnavailable {
		return &backend.ErrUnsupported{Backend: b.Name(), What: string(g.Transport), Because: e.Detail, Do: e.Remedy}
	}
	return err
}
