package live

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// interfaceWait bounds the wait of an agent for its interface, which the
// emulator makes: some seconds on a loaded machine with hundreds of nodes.
const interfaceWait = 20 * vtime.Second

// boardFD and eventFD are the descriptors that a namespace's agent inherits,
// after its standard three.
const (
	boardFD = 3
	eventFD = 4
)

// configureNode writes the order that makes a namespace into node i.
func configureNode(s *plan.Scenario, i int, flows []proto.Flow) (*proto.Configure, error) {
	c := s.Config()
	t := s.Topology
	hop, err := hopConfig(c)
	if err != nil {
		return nil, err
	}
	cfg := &proto.Configure{
		Node:            i,
		Name:            t.Nodes[i].Name,
		Interface:       tap.Interface,
		WaitInterface:   interfaceWait,
		Address:         netip.PrefixFrom(tap.Addr(i), 32),
		HardwareAddress: tap.HardwareAddr(i).String(),
		MTU:             tap.MTU,
		OffloadsOff:     true,
		Loopback:        true,
		Board:           &proto.Board{MemFD: boardFD, EventFD: eventFD, Nodes: len(t.Nodes)},
		Hop:             hop,
		SampleInterval:  c.Sample,
	}
	for _, x := range tap.NodeSysctls() {
		cfg.Sysctls = append(cfg.Sysctls, proto.Sysctl{Key: x.Key, Value: x.Value})
	}
	neighbour := make([]bool, len(t.Nodes))
	for d := range t.Nodes {
		cfg.Peers = append(cfg.Peers, proto.Peer{Node: d, Addr: tap.Addr(d)})
		via, ok := t.Routes.NextHop(i, d)
		if !ok {
			continue // itself, or unreachable: then no route, and the kernel says so
		}
		cfg.NextHops = append(cfg.NextHops, proto.NextHop{Dst: d, Via: via})
		r := proto.Route{Dst: netip.PrefixFrom(tap.Addr(d), 32)}
		if via != d {
			r.Via = tap.Addr(via)
		}
		cfg.Routes = append(cfg.Routes, r)
		neighbour[via] = true
	}
	for n, used := range neighbour {
		if used {
			cfg.Neighbours = append(cfg.Neighbours, proto.Neighbour{Addr: tap.Addr(n), HardwareAddress: tap.HardwareAddr(n).String()})
		}
	}
	for _, f := range flows {
		if takesPart(f, i) {
			cfg.Flows = append(cfg.Flows, f)
		}
	}
	return cfg, nil
}

func takesPart(f proto.Flow, node int) bool {
	for _, n := range f.Path {
		if n == node {
			return true
		}
	}
	return false
}

// hopConfig is Hop's configuration on the wire; the agent adds the node's own
// identity.
func hopConfig(c *spec.Config) (json.RawMessage, error) {
	h, err := backend.HopConfig(c)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("options of hop: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, fmt.Errorf("options of hop: %w", err)
	}
	delete(fields, "ID")
	return json.Marshal(fields)
}
