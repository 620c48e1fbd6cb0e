//go:build linux

package live

import (
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// emulatorConfig describes the run's links and the places of its nodes to the
// emulator.
func emulatorConfig(s *plan.Scenario, handles []node.Handle) *emulator.Config {
	t := s.Topology
	cfg := &emulator.Config{Seed: s.Seed, Pipes: emulatorPipes(t), Changes: emulatorChanges(t)}
	for i, h := range handles {
		cfg.Nodes = append(cfg.Nodes, emulator.Node{Name: h.Name(), PID: h.PID(), NoRadio: !t.Nodes[i].Radio, Via: radioVia(t, i), Rewriting: t.Rewriting(i)})
	}
	if !cfg.HasRadio() {
		return cfg
	}
	cfg.MACs, cfg.Radio, cfg.Positions, cfg.ChannelSeed = t.MACs(), t.Radio, t.Positions(), t.ChannelSeed
	if t.Delivery != nil {
		cfg.Matrix, cfg.Positions = &emulator.Matrix{Delivery: t.Delivery}, nil
	}
	if p := s.Config().Radio.Drop; p > 0 {
		for i := range t.Nodes {
			for j := range t.Nodes {
				if i != j && t.Nodes[i].Radio && t.Nodes[j].Radio {
					cfg.Losses = append(cfg.Losses, emulator.Loss{From: j, To: i, P: p})
				}
			}
		}
	}
	return cfg
}

func emulatorPipes(t *topology.Topology) []emulator.Pipe {
	var out []emulator.Pipe
	for i := range t.Pipes {
		p := &t.Pipes[i]
		e := emulator.Pipe{Config: p.Config}
		for end, n := range p.Ends {
			e.Ends[end] = emulator.PipeEnd{Node: n, Interface: p.Interfaces[end], HardwareAddress: tap.PipeHardwareAddr(n, p.Slot[end])}
		}
		out = append(out, e)
	}
	return out
}

// radioVia returns, for what node i sends by radio to a neighbour behind a
// bridge, the bridge that takes it from the air.
func radioVia(t *topology.Topology, i int) map[int]int {
	var via map[int]int
	for v := range t.Nodes {
		if e, ok := t.Egress(i, v); ok && e.Pipe == topology.RadioEgress && e.Next != v {
			if via == nil {
				via = map[int]int{}
			}
			via[v] = e.Next
		}
	}
	return via
}
