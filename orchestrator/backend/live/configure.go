//go:build linux

package live

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

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
	hop, err := hopConfig(c)
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
	for _, f := range flows {
		if takesPart(f, i) {
			cfg.Flows = append(cfg.Flows, f)
		}
	}
	addInterfaces(cfg, t)
	if err := addRoutes(cfg, t); err != nil {
		return nil, err
	}
	return cfg, nil
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
func addRoutes(cfg *proto.Configure, t *topology.Topology) error {
	i := cfg.Node
	caps, err := cwndCaps(cfg.Flows, i)
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
		r := proto.Route{Dst: netip.PrefixFrom(tap.Addr(d), 32), CwndCap: caps[d]}
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

// cwndCaps returns the caps of node i's TCP connections by destination. The
// kernel keeps a cap per pair of addresses, so that all connections from one node
// to another share it.
func cwndCaps(flows []proto.Flow, i int) (map[int]int, error) {
	caps, owner := map[int]int{}, map[int]*proto.Flow{}
	for k := range flows {
		f := &flows[k]
		to, ok := connectsTo(f, i)
		if !ok {
			continue
		}
		if o := owner[to]; o != nil && caps[to] != f.Options.CwndCap {
			return nil, &proto.Error{Code: proto.CodeOrder, What: fmt.Sprintf("cwnd-cap of flows %d (%s) and %d (%s)", o.ID, o.Transport, f.ID, f.Transport),
				Wanted: "one cap for all TCP connections from one node to another", Got: fmt.Sprintf("%s and %s", capText(caps[to]), capText(f.Options.CwndCap)),
				Detail: "Linux keeps the cap with the pair of addresses (tcp_metrics), not with the connection",
				Remedy: "let the flows run in different points of the matrix or between different nodes, or --backend sim"}
		}
		caps[to], owner[to] = f.Options.CwndCap, f
	}
	return caps, nil
}

func capText(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// connectsTo returns the node to which node i opens a TCP connection for the
// flow, if it does.
func connectsTo(f *proto.Flow, i int) (to int, ok bool) {
	switch spec.Transport(f.Transport).Family() {
	case spec.FamilyTCP:
		return f.Dst, f.Src == i
	case spec.FamilyHopByHopTCP, spec.FamilyBundle:
		if at := slices.Index(f.Path, i); at >= 0 && at+1 < len(f.Path) {
			return f.Path[at+1], true
		}
	}
	return 0, false
}

func takesPart(f proto.Flow, node int) bool { return slices.Contains(f.Path, node) }

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
