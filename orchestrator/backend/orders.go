package backend

import (
	"net/netip"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// startOf is when a flow begins on the run's clock: a continual one with the
// run, so that the warm-up brings it into its steady state; a sized one with the
// measured interval, since it has no steady state and may be over before.
func startOf(c *spec.Config, g *spec.Flow) vtime.Time {
	if g.Workload.Kind == spec.Sized {
		return vtime.Time(c.Warmup)
	}
	return 0
}

// Orders translates a scenario's flows into the words in which agents and the
// model know them. addr gives a node's address.
func Orders(s *plan.Scenario, addr func(node int) netip.Addr) []proto.Flow {
	c := s.Config()
	var out []proto.Flow
	for _, f := range s.Flows {
		g := c.Flows[f.Group]
		p := proto.Flow{
			ID: f.ID, Transport: string(g.Transport), Src: f.Src, Dst: f.Dst,
			SrcAddr: addr(f.Src), DstAddr: addr(f.Dst), Path: f.Path,
			Workload: workload.Spec{Kind: workload.Kind(g.Workload.Kind), Size: g.Workload.Size},
			Start:    startOf(c, &g),
		}
		switch g.Transport.Family() {
		case spec.FamilyHopByHopTCP:
			p.Options.RelayBuffer = c.Transports.HopByHopTCP.RelayBuffer
		case spec.FamilyHop:
			p.Options.BlockSize = c.Transports.Hop.Block
		case spec.FamilyTCP:
			o := c.Transports.TCP
			p.Options.MSS, p.Options.SendBuffer, p.Options.ReceiveBuffer = int(o.MSS), o.SendBuffer, o.ReceiveBuffer
		case spec.FamilyUDP:
			p.Options.Rate, p.Options.PacketSize = c.Transports.UDP.Rate, c.Transports.UDP.Packet
		}
		out = append(out, p)
	}
	return out
}
