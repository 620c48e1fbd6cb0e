//go:build linux

package agenttest

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
)

// bridgeName is the interface of a node that is a bridge.
const bridgeName = "br0"

// slots returns the wires at a node, in the order of its interfaces.
func (o *Options) slots(node int) (wires []int) {
	for i, w := range o.Wires {
		if w[0] == node || w[1] == node {
			wires = append(wires, i)
		}
	}
	return wires
}

// link returns the interface of node that leads to its neighbour, with its
// address and the number of its queue.
func (o *Options) link(node, to int) (name string, mac tap.HardwareAddress, port int) {
	for slot, i := range o.slots(node) {
		if w := o.Wires[i]; w[0]+w[1]-node == to {
			return fmt.Sprintf("eth%d", slot), tap.PipeHardwareAddr(node, slot), 1 + slot
		}
	}
	return tap.Interface, tap.HardwareAddr(node), 0
}

// mac is the address under which the neighbour from knows the node.
func (o *Options) mac(node, from int) string {
	if slices.Contains(o.Bridges, node) {
		return tap.HardwareAddr(node).String()
	}
	_, mac, _ := o.link(node, from)
	return mac.String()
}

// interfaces are those of a node, the radio's first.
func (o *Options) interfaces(node int) (out []proto.Interface) {
	if !slices.Contains(o.WiredOnly, node) {
		out = append(out, proto.Interface{Name: tap.Interface, HardwareAddress: tap.HardwareAddr(node).String()})
	}
	for slot := range o.slots(node) {
		out = append(out, proto.Interface{Name: fmt.Sprintf("eth%d", slot), HardwareAddress: tap.PipeHardwareAddr(node, slot).String()})
	}
	return out
}

// Chain is the configuration of one node of a chain 0–1–…–n−1. Neighbours are
// joined by their wire, where there is one, else by radio; a bridge is
// transparent to those beside it.
func (l *Lab) Chain(node int, flows []proto.Flow) *proto.Configure {
	c := &proto.Configure{
		Node: node, Name: fmt.Sprintf("n%02d", node+1), Interfaces: l.opt.interfaces(node), WaitInterfaces: 2 * vtime.Second,
		Address: netip.PrefixFrom(tap.Addr(node), 32), MTU: tap.MTU,
		OffloadsOff: true, Loopback: true,
	}
	if slices.Contains(l.opt.Bridges, node) {
		c.Bridge = &proto.Bridge{Name: bridgeName, HardwareAddress: tap.HardwareAddr(node).String()}
	}
	for _, s := range tap.NodeSysctls() {
		c.Sysctls = append(c.Sysctls, proto.Sysctl{Key: s.Key, Value: s.Value})
	}
	for i := range l.Nodes {
		c.Peers = append(c.Peers, proto.Peer{Node: i, Addr: tap.Addr(i)})
		if i != node {
			l.routeTo(c, i)
		}
	}
	if l.board != nil {
		c.Board = &proto.Board{MemFD: 3, EventFD: 4, Nodes: len(l.Nodes)}
		for _, i := range l.opt.slots(node) {
			end := 0
			if l.opt.Wires[i][1] == node {
				end = 1
			}
			c.Board.Pipes = append(c.Board.Pipes, 2*i+end)
		}
	}
	for _, f := range flows {
		lo, hi := min(f.Src, f.Dst), max(f.Src, f.Dst)
		if node >= lo && node <= hi {
			c.Flows = append(c.Flows, f)
		}
	}
	return c
}

// routeTo adds the chain's route to a node, and what it needs if that is a
// neighbour.
func (l *Lab) routeTo(c *proto.Configure, dst int) {
	step := 1
	if dst < c.Node {
		step = -1
	}
	name, _, port := l.opt.link(c.Node, c.Node+step)
	egress := name
	if c.Bridge != nil {
		name = c.Bridge.Name
	}
	via := c.Node + step
	for via != dst && slices.Contains(l.opt.Bridges, via) {
		via += step
	}
	c.NextHops = append(c.NextHops, proto.NextHop{Dst: dst, Via: via})
	r := proto.Route{Interface: name, Dst: netip.PrefixFrom(tap.Addr(dst), 32)}
	if via != dst {
		r.Via = tap.Addr(via)
		c.Routes = append(c.Routes, r)
		return
	}
	mac := l.opt.mac(dst, dst-step)
	c.Routes = append(c.Routes, r)
	c.Neighbours = append(c.Neighbours, proto.Neighbour{Interface: name, Addr: tap.Addr(dst), HardwareAddress: mac})
	if port > 0 {
		c.Ports = append(c.Ports, proto.Port{Node: dst, Port: port})
	}
	if c.Bridge != nil {
		c.Bridge.Forward = append(c.Bridge.Forward, proto.Forward{HardwareAddress: mac, Interface: egress})
	}
}

// Flow completes a flow of a chain: addresses and path.
func (l *Lab) Flow(f proto.Flow) proto.Flow {
	f.SrcAddr, f.DstAddr = tap.Addr(f.Src), tap.Addr(f.Dst)
	step := 1
	if f.Dst < f.Src {
		step = -1
	}
	f.Path = nil
	for i := f.Src; i != f.Dst; i += step {
		f.Path = append(f.Path, i)
	}
	f.Path = append(f.Path, f.Dst)
	return f
}

// ConfigureChain configures every node; change may alter each configuration.
func (l *Lab) ConfigureChain(flows []proto.Flow, change func(*proto.Configure)) []*proto.Readback {
	l.t.Helper()
	var out []*proto.Readback
	for _, n := range l.Nodes {
		c := l.Chain(n.ID, flows)
		if change != nil {
			change(c)
		}
		r, err := n.Client.Configure(l.Context(5*time.Second), c)
		if err != nil {
			l.t.Fatalf("configure: %v", err)
		}
		out = append(out, r)
	}
	return out
}
