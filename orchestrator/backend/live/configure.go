//go:build linux

package live

import (
	"net/netip"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// interfaceWait bounds the wait of an agent for its interfaces, which the
// emulator makes: some seconds on a loaded machine with hundreds of nodes.
const interfaceWait = 20 * vtime.Second

// boardFD and eventFD are the descriptors that a namespace's agent inherits,
// after its standard three.
const (
	boardFD = 3
	eventFD = 4
)

// bridgeName is the interface of a node that joins its others by a bridge.
const bridgeName = "br0"

// configureNode writes the order that makes a namespace into node i.
func configureNode(s *plan.Scenario, i int, flows []proto.Flow) (*proto.Configure, error) {
	c := s.Config()
	t := s.Topology
	hop, err := backend.HopOrder(c)
	if err != nil {
		return nil, err
	}
	cfg := &proto.Configure{
		Node:           i,
		Name:           t.Nodes[i].Name,
		WaitInterfaces: interfaceWait,
		Address:        netip.PrefixFrom(tap.Addr(i), 32),
		MTU:            tap.MTU,
		OffloadsOff:    true,
		Loopback:       true,
		Board:          &proto.Board{MemFD: boardFD, EventFD: eventFD, Nodes: len(t.Nodes)},
		Hop:            hop,
		SampleInterval: c.Sample,
		Switches:       switches(t, i),
	}
	for _, x := range tap.NodeSysctls() {
		cfg.Sysctls = append(cfg.Sysctls, proto.Sysctl{Key: x.Key, Value: x.Value})
	}
	cfg.Sysctls = append(cfg.Sysctls, tcpSysctls(&c.Transports.TCP)...)
	cfg.Flows = backend.FlowsAt(flows, i)
	addInterfaces(cfg, t)
	if err := addRoutes(cfg, t, c.Transports.TCP.QuickAck); err != nil {
		return nil, err
	}
	return cfg, nil
}

// tcpSysctls are the settings of a namespace that switch options of TCP off.
func tcpSysctls(o *spec.TCPOptions) []proto.Sysctl {
	var out []proto.Sysctl
	if !o.SACK {
		out = append(out, proto.Sysctl{Key: "net.ipv4.tcp_sack", Value: "0"})
	}
	if !o.Timestamps {
		out = append(out, proto.Sysctl{Key: "net.ipv4.tcp_timestamps", Value: "0"})
	}
	return out
}

// addInterfaces names the node's interfaces, its radio's before the wired ones
// in the order of their slots, with their queues on the board.
func addInterfaces(cfg *proto.Configure, t *topology.Topology) {
	i := cfg.Node
	if t.Nodes[i].Radio {
		cfg.Interfaces = append(cfg.Interfaces, proto.Interface{Name: tap.Interface, HardwareAddress: tap.HardwareAddr(i).String()})
	}
	for k := range t.Pipes { // slots ascend in the order of the pipes
		p := &t.Pipes[k]
		for e, n := range p.Ends {
			if n == i {
				cfg.Interfaces = append(cfg.Interfaces, proto.Interface{Name: p.Interfaces[e], HardwareAddress: tap.PipeHardwareAddr(i, p.Slot[e]).String()})
				cfg.Board.Pipes = append(cfg.Board.Pipes, 2*p.ID+e)
			}
		}
	}
	if t.Nodes[i].Bridge {
		cfg.Bridge = &proto.Bridge{Name: bridgeName, HardwareAddress: tap.HardwareAddr(i).String()}
	}
}

// hardwareAddr is the address under which node i knows its neighbour via: that
// of the interface at which its frames arrive there. A bridge has one address
// for all of its interfaces.
func hardwareAddr(t *topology.Topology, i, via int) tap.HardwareAddress {
	if port, ok := t.ArrivalPort(i, via); ok && port > 0 && !t.Nodes[via].Bridge {
		return tap.PipeHardwareAddr(via, port-1)
	}
	return tap.HardwareAddr(via)
}

// addRoutes gives the node its way to everybody: at the IP level, at the link
// level towards the neighbours among them, and in the words of the transports
// that route by themselves. A node that is a bridge also gets the table by which
// it passes on what others send.
func addRoutes(cfg *proto.Configure, t *topology.Topology, quickAck bool) error {
	i := cfg.Node
	caps, err := backend.CwndCaps(cfg.Flows, i)
	if err != nil {
		return err
	}
	// The interface of a port, in the order of cfg.Interfaces.
	first := 1
	if t.Nodes[i].Radio {
		first = 0
	}
	interfaceOf := func(via int) (name string, port int) {
		port, _ = t.Port(i, via)
		return cfg.Interfaces[port-first].Name, port
	}
	used := make([]bool, len(t.Nodes)) // as a next hop
	for d := range t.Nodes {
		cfg.Peers = append(cfg.Peers, proto.Peer{Node: d, Addr: tap.Addr(d)})
		via, ok := t.Routes.NextHop(i, d)
		if !ok {
			continue // itself, or unreachable: then no route, and the kernel says so
		}
		cfg.NextHops = append(cfg.NextHops, proto.NextHop{Dst: d, Via: via})
		r := proto.Route{Dst: netip.PrefixFrom(tap.Addr(d), 32), CwndCap: caps[d], QuickAck: quickAck}
		if r.Interface, _ = interfaceOf(via); cfg.Bridge != nil {
			r.Interface = cfg.Bridge.Name
		}
		if via != d {
			r.Via = tap.Addr(via)
		}
		cfg.Routes = append(cfg.Routes, r)
		used[via] = true
	}
	for n := range t.Nodes {
		if _, ok := t.Egress(i, n); !ok {
			continue
		}
		name, port := interfaceOf(n)
		mac := hardwareAddr(t, i, n).String()
		if cfg.Bridge != nil {
			cfg.Bridge.Forward = append(cfg.Bridge.Forward, proto.Forward{HardwareAddress: mac, Interface: name})
			name = cfg.Bridge.Name
		}
		if !used[n] {
			continue
		}
		cfg.Neighbours = append(cfg.Neighbours, proto.Neighbour{Interface: name, Addr: tap.Addr(n), HardwareAddress: mac})
		if port > 0 {
			cfg.Ports = append(cfg.Ports, proto.Port{Node: n, Port: port})
		}
	}
	return nil
}
