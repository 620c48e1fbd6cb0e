package backend

import (
	"net/netip"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// startOf is when a flow begins on the run's clock, unless the file says: a
// continual one with the run, so that the warm-up brings it into its steady
// state; a sized one with the measured interval, since it has no steady state and
// may be over before.
func startOf(c *spec.Config, g *spec.Flow) vtime.Time {
	switch {
	case g.Start != nil:
		return vtime.Time(*g.Start)
	case g.Workload.Kind == spec.Sized:
		return vtime.Time(c.Warmup)
	}
	return 0
}

// stopOf is when a flow ends on the run's clock: with the run, unless the file
// says.
func stopOf(c *spec.Config, g *spec.Flow) vtime.Time {
	end := vtime.Time(c.Warmup + c.Duration)
	if g.Stop != nil {
		return vtime.Min(vtime.Time(*g.Stop), end)
	}
	return end
}

// measured is the part of the measured interval in which a flow is meant to run;
// its goodput is over this time.
func measured(c *spec.Config, g *spec.Flow) (from, to vtime.Time) {
	f := proto.Flow{Start: startOf(c, g), Stop: stopOf(c, g)}
	return f.Measured(vtime.Time(c.Warmup), vtime.Time(c.Warmup+c.Duration))
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
		if g.Stop != nil {
			p.Stop = stopOf(c, &g)
		}
		switch g.Transport.Family() {
		case spec.FamilyHopByHopTCP:
			p.Options.RelayBuffer = c.Transports.HopByHopTCP.RelayBuffer
		case spec.FamilyHop:
			p.Options.BlockSize = c.Transports.Hop.Block
		case spec.FamilyTCP:
			o := c.Transports.TCP
			p.Options.MSS, p.Options.SendBuffer, p.Options.ReceiveBuffer = int(o.MSS), o.SendBuffer, o.ReceiveBuffer
			p.Options.ReceiveWindow, p.Options.CwndCap = o.ReceiveWindow, o.CwndCap
		case spec.FamilyUDP:
			p.Options.Rate, p.Options.PacketSize = c.Transports.UDP.Rate, c.Transports.UDP.Packet
		}
		out = append(out, p)
	}
	return out
}
