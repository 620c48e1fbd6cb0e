package topology

import (
	"fmt"
	"slices"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// Probing returns the network in which the radio links of this one are measured:
// the same places and the same medium, but nothing is switched, broadcasts go at
// the given rate, and a node that bridges its interfaces has them apart, since a
// bridge floods nothing.
func (t *Topology) Probing(c *spec.Config, rate vtime.BitRate) (*Topology, error) {
	p := *t
	p.Nodes = slices.Clone(t.Nodes)
	for i := range p.Nodes {
		p.Nodes[i].Bridge = false
	}
	p.Changes, p.switched, p.described = nil, nil, nil
	p.MAC.BasicRate, p.MAC.Rate = rate, max(rate, t.MAC.Rate)
	if t.Channel == nil {
		p.connect(metric(c))
		return &p, nil
	}
	var ch *wifi.Channel
	var err error
	if t.Delivery != nil {
		ch, err = wifi.NewMatrixChannel(t.Delivery, nil, nil)
	} else {
		ch, err = wifi.NewChannel(t.ChannelSeed, t.Radio, p.MAC, p.Positions(), p.Mute()...)
	}
	if err != nil {
		return nil, fmt.Errorf("the network for probes: %w", err)
	}
	p.rate(c, ch)
	return &p, nil
}
