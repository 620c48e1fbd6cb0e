package site

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Known is what a node said of itself, and how it is reached.
type Known struct {
	Interfaces []proto.InterfaceState
	// Protect are addresses that must stay reachable as they are: the node's own of
	// the controller's connection, and the controller's.
	Protect []netip.Addr
}

// iface returns the state of an interface, nil where the node did not name it.
func (k *Known) iface(name string) *proto.InterfaceState {
	for i := range k.Interfaces {
		if k.Interfaces[i].Name == name {
			return &k.Interfaces[i]
		}
	}
	return nil
}

// Order is what makes node i of a scenario, with its part of the flows. known says
// what the nodes are, in their order; nil before they were asked (then neighbours
// are left out, and an address may be there already).
func (s *Site) Order(sc *plan.Scenario, i int, flows []proto.Flow, known []Known) (*proto.Configure, error) {
	n := s.Nodes[i]
	hop, err := backend.HopOrder(sc.Config())
	if err != nil {
		return nil, err
	}
	cfg := &proto.Configure{
		Node: i, Name: sc.Topology.Nodes[i].Name,
		Interfaces: []proto.Interface{{Name: n.Interface}},
		Address:    s.addresses[i],
		Loopback:   true,
		Sysctls:    sysctls(n.Interface),
		Hop:        hop, Flows: backend.FlowsAt(flows, i),
		SampleInterval: sc.Config().Sample,
		Radio:          Radio(sc, n),
		Shapers:        s.shapers(sc, i),
	}
	// A packet on the interface is then a packet of the link that the kernel
	// emulates; a real link's interface is left as its owner has it.
	cfg.OffloadsOff = len(cfg.Shapers) > 0
	if known != nil {
		if err := fit(cfg, &known[i]); err != nil {
			return nil, err
		}
	}
	caps, err := backend.CwndCaps(cfg.Flows, i)
	if err != nil {
		return nil, err
	}
	s.routes(cfg, sc, caps, known)
	return cfg, nil
}

// fit compares an order with what a node is.
func fit(cfg *proto.Configure, k *Known) error {
	cfg.Protect = k.Protect
	name := cfg.Interfaces[0].Name
	st := k.iface(name)
	if st == nil {
		if cfg.Radio != nil && cfg.Radio.Driver != radio.None {
			return nil // the driver may make it
		}
		var have []string
		for _, x := range k.Interfaces {
			have = append(have, x.Name)
		}
		return &proto.Error{Code: proto.CodeOrder, Node: cfg.Name, What: "interface " + name, Wanted: name, Got: strings.Join(have, " "),
			Detail: "the node has no such interface", Remedy: "correct interface: in the inventory"}
	}
	for _, a := range st.Addresses {
		if a.Addr() == cfg.Address.Addr() {
			cfg.Address, cfg.KeepAddress = a, true
		}
	}
	return nil
}

// sysctls are the settings of a real node that relays: it forwards, sends nobody
// elsewhere (the next hop is on the same interface, which the kernel takes for a
// mistake of the sender's), and starts each connection without what it remembers
// of earlier ones. What a host has for other interfaces is left alone, but for the
// two whose value for all interfaces has the last word.
func sysctls(iface string) []proto.Sysctl {
	own := func(key, value string) proto.Sysctl {
		return proto.Sysctl{Key: "net/ipv4/conf/" + iface + "/" + key, Value: value}
	}
	return []proto.Sysctl{
		{Key: "net/ipv4/ip_forward", Value: "1"},
		{Key: "net/ipv4/conf/all/send_redirects", Value: "0"}, own("send_redirects", "0"),
		{Key: "net/ipv4/conf/all/rp_filter", Value: "0"}, own("rp_filter", "0"),
		own("accept_redirects", "0"),
		{Key: "net/ipv4/tcp_no_metrics_save", Value: "1"},
	}
}

// routes gives the node its way to everybody, at the IP level and in the words of
// the transports that route by themselves. Where the next hops' hardware addresses
// are known, all of them have permanent entries: nothing is asked on the air.
func (s *Site) routes(cfg *proto.Configure, sc *plan.Scenario, caps map[int]int, known []Known) {
	t, i := sc.Topology, cfg.Node
	var via []int
	for d := range t.Nodes {
		cfg.Peers = append(cfg.Peers, proto.Peer{Node: d, Addr: s.Addr(d)})
		v, ok := t.Routes.NextHop(i, d)
		if !ok {
			continue // itself, or unreachable
		}
		cfg.NextHops = append(cfg.NextHops, proto.NextHop{Dst: d, Via: v})
		r := proto.Route{Interface: cfg.Interfaces[0].Name, Dst: netip.PrefixFrom(s.Addr(d), 32), CwndCap: caps[d], QuickAck: sc.Config().Transports.TCP.QuickAck}
		if v != d {
			r.Via = s.Addr(v)
		}
		cfg.Routes = append(cfg.Routes, r)
		if !slices.Contains(via, v) {
			via = append(via, v)
		}
	}
	if known == nil {
		return
	}
	slices.Sort(via)
	for _, v := range via {
		st := known[v].iface(s.Nodes[v].Interface)
		if st == nil || st.HardwareAddress == "" {
			cfg.Neighbours = nil // all or none: a table of half is a trap for who reads it
			return
		}
		cfg.Neighbours = append(cfg.Neighbours, proto.Neighbour{Interface: cfg.Interfaces[0].Name, Addr: s.Addr(v), HardwareAddress: st.HardwareAddress})
	}
}

// Facts are what results say of node i's place.
func (s *Site) Facts(i int) map[string]string {
	n := s.Nodes[i]
	f := map[string]string{"host": n.Name, "interface": n.Interface, "radio_driver": driver(n)}
	if s.ByName {
		f["matched"] = "by name"
	} else {
		f["matched"] = fmt.Sprintf("in order, number %d", i+1)
	}
	if len(n.Tags) > 0 {
		f["tags"] = strings.Join(n.Tags, " ")
	}
	return f
}
