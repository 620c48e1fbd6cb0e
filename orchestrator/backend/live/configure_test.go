package live

import (
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

const chainFile = `hopbed: 1
name: chain
topology:
  nodes: [{name: a, at: [0m, 0m]}, {name: b, at: [10m, 0m]}, {name: c, at: [20m, 0m]}]
  links: [{from: a, to: b, delivery: 100%}, {from: b, to: c, delivery: 90%}]
flows:
  - {pairs: [{src: a, dst: c}], transport: tcp/cubic}
  - {pairs: [{src: c, dst: a}], transport: hop, workload: {kind: sized, size: 1MB}}
warmup: 1s
duration: 10s
`

func scenario(t *testing.T) *plan.Scenario {
	t.Helper()
	e, err := spec.Parse("chain.yaml", []byte(chainFile))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConfigureGivesEveryNodeItsRoutesAndFlows(t *testing.T) {
	s := scenario(t)
	flows := backend.Orders(s, tap.Addr)
	cfg, err := configureNode(s, 0, flows)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Routes) != 2 || cfg.Routes[0].Via.IsValid() || cfg.Routes[1].Via != tap.Addr(1) {
		t.Errorf("routes of a: %+v; want b as a neighbour and c through it", cfg.Routes)
	}
	if len(cfg.Neighbours) != 1 || cfg.Neighbours[0].HardwareAddress != tap.HardwareAddr(1).String() {
		t.Errorf("neighbours of a: %+v; want b alone", cfg.Neighbours)
	}
	if len(cfg.Flows) != 2 || cfg.Flows[1].Workload.Size != 1_000_000 || cfg.Flows[1].Options.BlockSize == 0 {
		t.Errorf("flows of a: %+v", cfg.Flows)
	}
	if b, _ := configureNode(s, 1, flows); len(b.Flows) != 2 {
		t.Errorf("the relay b must know both flows, it knows %d", len(b.Flows))
	}
}
