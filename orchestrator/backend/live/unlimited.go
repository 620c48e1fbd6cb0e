//go:build linux

package live

import (
	"fmt"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// judgeUnlimited warns once about flows that carried data over a path on which
// nothing limits the rate: where no window does either, what they carried is a
// property of this host.
func judgeUnlimited(rec *store.RunRecord, s *plan.Scenario) {
	first, n := -1, 0
	for i, f := range s.Flows {
		if rec.Flows[i].Bytes == 0 || bounded(s.Config(), f) || limited(s.Topology, f.Path) {
			continue
		}
		if n++; first < 0 {
			first = i
		}
	}
	if n == 0 {
		return
	}
	f := s.Flows[first]
	whose := fmt.Sprintf("flow %d, %s to %s", f.ID, rec.Nodes[f.Src].Name, rec.Nodes[f.Dst].Name)
	if n > 1 {
		whose = fmt.Sprintf("%d flows, the first is %s", n, whose)
	}
	rec.Run.Warnings = append(rec.Run.Warnings,
		fmt.Sprintf("no link on the way has a rate (%s): goodput is what this host, or a window, allows, and says nothing of a network", whose))
}

// bounded tells whether a flow's workload or its options bound its rate, by
// themselves or with the round-trip time.
func bounded(c *spec.Config, f topology.Flow) bool {
	if c.Flows[f.Group].Workload.HasMessages() {
		return true
	}
	switch t := c.Flows[f.Group].Transport; t.Family() {
	case spec.FamilyIperf3, spec.FamilyIperf2:
		return t.Variant() == "udp" // the rate is required
	case spec.FamilyUDP:
		return c.Transports.UDP.Rate > 0
	case spec.FamilyCoopTCP:
		return c.Transports.TCP.ReceiveWindow > 0
	case spec.FamilyTCP:
		return c.Transports.TCP.ReceiveWindow > 0 || c.Transports.TCP.CwndCap > 0
	}
	return false
}

// limited tells whether a link on the path has a rate, at any time.
func limited(t *topology.Topology, path []int) bool {
	for i := 1; i < len(path); i++ {
		for _, e := range t.LinkPath(path[i-1], path[i]) {
			if e.Pipe == topology.RadioEgress || hasRate(&t.Pipes[e.Pipe].Config[e.End]) {
				return true
			}
		}
	}
	return false
}

func hasRate(c *pipe.Config) bool {
	if c.Rate > 0 || c.Trace != nil {
		return true
	}
	for _, ch := range c.Schedule {
		if ch.Rate != nil && *ch.Rate > 0 {
			return true
		}
	}
	return false
}
