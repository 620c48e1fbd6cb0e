package backend

import (
	"fmt"
	"net/netip"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// startOf is when a flow begins on the run's clock.
func startOf(c *spec.Config, g *spec.Flow) vtime.Time { return vtime.Time(g.Begin(c.Warmup)) }

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
			Workload: workloadOf(s, f, &g.Workload),
			Start:    startOf(c, &g),
		}
		if f.Role != "" {
			p.Peer = new(f.Peer)
		}
		if g.Stop != nil {
			p.Stop = stopOf(c, &g)
		}
		p.Options.DSCP = g.DSCPValue()
		// A message waits for no other one, and so for no acknowledgement (RFC 896).
		p.Options.NoDelay = g.Workload.HasMessages() && overTCP(g.Transport)
		switch g.Transport.Family() {
		case spec.FamilyHopByHopTCP:
			p.Options.RelayBuffer = c.Transports.HopByHopTCP.RelayBuffer
		case spec.FamilyBundle:
			o := c.Transports.Bundle
			p.Options.Bundle = &proto.Bundle{Size: o.Bundle, Disk: o.Storage == spec.StorageDisk, Limit: o.Limit}
		case spec.FamilyHop:
			p.Options.BlockSize = c.Transports.Hop.Block
		case spec.FamilyTCP, spec.FamilyCoopTCP:
			o := c.Transports.TCP
			p.Options.MSS, p.Options.SendBuffer, p.Options.ReceiveBuffer = int(o.MSS), o.SendBuffer, o.ReceiveBuffer
			p.Options.ReceiveWindow, p.Options.CwndCap = o.ReceiveWindow, o.CwndCap
			if g.Transport.Family() == spec.FamilyCoopTCP {
				p.Options.CwndCap, p.Options.Coop = 0, coopOf(c)
			}
		case spec.FamilyUDP:
			p.Options.PacketSize = c.Transports.UDP.Packet
			if !g.Workload.HasMessages() { // messages have moments of their own
				p.Options.Rate = c.Transports.UDP.Rate
			}
		case spec.FamilyIperf3, spec.FamilyIperf2:
			o := c.Transports.Iperf
			p.Options.SendBuffer, p.Options.ReceiveBuffer = o.Window, o.Window
			if g.Transport.Variant() == "udp" {
				p.Options.Rate, p.Options.PacketSize = o.Rate, o.Packet
			}
		case spec.FamilyExec:
			o := c.Transports.Exec
			p.Options.Program = &proto.Program{Send: o.Send, Receive: o.Receive, Relay: o.Relay, Dir: o.Dir}
		}
		out = append(out, p)
	}
	return out
}

// overTCP reports whether TCP's connections carry a transport, whose option
// TCP_NODELAY is then the flow's.
func overTCP(t spec.Transport) bool {
	switch t.Family() {
	case spec.FamilyTCP, spec.FamilyCoopTCP, spec.FamilyHopByHopTCP, spec.FamilyBundle:
		return true
	}
	return false
}

// coopOf translates the options of cooperative TCP.
func coopOf(c *spec.Config) *proto.Coop {
	o := c.Transports.CoopTCP
	return &proto.Coop{Bandwidth: o.Bandwidth, Always: o.Trigger == spec.TriggerAlways, Limit: proto.CoopLimit(o.Limit)}
}

// workloadOf translates what a flow carries. What its source draws follows from
// the repetition's seed and the flow's number, so that all points of a repetition
// have the same messages; both halves of an exchange draw the same.
func workloadOf(s *plan.Scenario, f topology.Flow, w *spec.Workload) workload.Spec {
	out := workload.Spec{Kind: workload.Kind(w.Kind), Size: w.Size, Interval: w.Interval, Sizes: workload.Sizes(w.Sizes), Codec: string(w.Codec), Role: workload.Role(f.Role)}
	if w.HasMessages() {
		id := f.ID
		if f.Role == spec.Requests {
			id = f.Peer
		}
		out.Seed = des.NewStream(s.Seed, fmt.Sprintf("flows/%d/workload", id)).Uint64()
	}
	for _, t := range w.Transfers {
		out.Transfers = append(out.Transfers, workload.Transfer{At: t.At, Size: t.Size})
	}
	if w.Kind == spec.Web {
		out.Web = &workload.WebSpec{
			Objects: w.Objects, Zipf: w.Zipf, MeanSize: w.ObjectSize, MaxSize: w.MaxSize, PageObjects: w.PageObjects, Think: w.Think, Request: w.Request,
		}
	}
	return out
}
