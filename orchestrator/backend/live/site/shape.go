package site

import (
	"net/netip"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/netem/pipe"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// shapers are what node i's kernel has to emulate:
//
//   - radio.drop: the share of what arrives that is thrown away, whoever sent it;
//   - where the node has no radio that the lab sets (driver none) and the file lists
//     links: the loss of each link that its packets leave by. A packet's destination
//     decides its next hop, so that the destinations behind a link are its class.
//
// Wires under such a lab have no airtime, no collisions and no retransmissions by a
// MAC: the delivery of a link is what a packet meets once.
func (s *Site) shapers(sc *plan.Scenario, i int) []tc.Link {
	l := tc.Link{Interface: s.Nodes[i].Interface}
	if p := sc.Config().Radio.Drop; p > 0 {
		l.Ingress = []tc.Class{{Shape: tc.Shape{Loss: pipe.Loss{Good: p}}}}
	}
	if driver(s.Nodes[i]) == radio.None && len(sc.Config().Topology.Links) > 0 {
		delivery := map[int]float64{}
		for k := range sc.Topology.Links {
			if x := &sc.Topology.Links[k]; x.From == i && x.Measured == nil {
				delivery[x.To] = x.Delivery
			}
		}
		class := map[int]int{} // by next hop
		for d := range sc.Topology.Nodes {
			v, ok := sc.Topology.Routes.NextHop(i, d)
			if p, listed := delivery[v]; !ok || !listed || p >= 1 {
				continue
			}
			k, there := class[v]
			if !there {
				k = len(l.Egress)
				class[v] = k
				l.Egress = append(l.Egress, tc.Class{Shape: tc.Shape{Loss: pipe.Loss{Good: vtime.Fraction(1 - delivery[v])}}})
			}
			l.Egress[k].Peers = append(l.Egress[k].Peers, netip.PrefixFrom(s.Addr(d), 32))
		}
	}
	if len(l.Egress)+len(l.Ingress) == 0 {
		return nil
	}
	return []tc.Link{l}
}
