package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
)

// families is the table of transports that a run in virtual time carries.
var families = []struct {
	name string
	make func(n *Net, f *proto.Flow) (flow, error)
}{
	{"hop", func(n *Net, f *proto.Flow) (flow, error) { return n.newHop(f) }},
	{"tcp", func(n *Net, f *proto.Flow) (flow, error) { return n.newStream(f, false) }},
	{"coop-tcp", func(n *Net, f *proto.Flow) (flow, error) { return n.newCoop(f) }},
	{"hop-by-hop-tcp", func(n *Net, f *proto.Flow) (flow, error) { return n.newStream(f, true) }},
	{"bundle", func(n *Net, f *proto.Flow) (flow, error) { return n.newBundle(f) }},
	{"udp", func(n *Net, f *proto.Flow) (flow, error) { return n.newUDP(f) }},
}

// Families lists the transports that New knows, by the part of their names
// before the slash.
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

func (n *Net) newFlow(f *proto.Flow) (flow, error) {
	if f.Src < 0 || f.Src >= n.cfg.Nodes || f.Dst < 0 || f.Dst >= n.cfg.Nodes || f.Src == f.Dst {
		return nil, fmt.Errorf("it goes from node %d to node %d: want two of the nodes 0…%d", f.Src, f.Dst, n.cfg.Nodes-1)
	}
	name, _ := transport.Split(f.Transport)
	for i := range families {
		if families[i].name == name {
			if f.Workload.Kind == workload.Continual && f.Options.Rate == 0 {
				if err := n.takesTime(f.Src, f.Dst); err != nil {
					return nil, err
				}
			}
			return families[i].make(n, f)
		}
	}
	return nil, fmt.Errorf("the transport is none of %v", Families())
}
