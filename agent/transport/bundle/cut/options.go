package cut

import (
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/bundle"
	"github.com/hopbed/hopbed/netem/vtime"
)

// OptionsOf returns the flow's options with the defaults in place of zeros.
func OptionsOf(f *proto.Flow) proto.Bundle {
	var o proto.Bundle
	if f.Options.Bundle != nil {
		o = *f.Options.Bundle
	}
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	if o.Limit == 0 {
		o.Limit = bundle.DefaultConfig().Limit
	}
	return o
}

// NodeConfig returns the configuration of the i-th node of the flow's path. Node
// n is ipn:n+1.0, since there is no ipn:0.0 (RFC 9758 §3.3); the flow's endpoints
// have the service number of its port.
func NodeConfig(f *proto.Flow, i int) bundle.Config {
	o := OptionsOf(f)
	c := bundle.DefaultConfig()
	c.Limit, c.Disk = o.Limit, o.Disk && i > 0 && i < len(f.Path)-1
	id := func(node int, service uint64) bundle.EID { return bundle.IPN(uint64(node)+1, service) }
	service := uint64(transport.FlowPort + f.ID)
	c.Self, c.Source, c.Destination = id(f.Path[i], 0), id(f.Src, service), id(f.Dst, service)
	if i > 0 {
		c.Prev = id(f.Path[i-1], 0)
	}
	if i < len(f.Path)-1 {
		c.Next = id(f.Path[i+1], 0)
	}
	return c
}

// Headers is more than a bundle is ever longer than its payload.
const Headers = 1 * vtime.KiB
