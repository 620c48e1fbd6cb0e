package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Node is one node's Hop. It is not safe for concurrent use. After each call
// of Receive, Expire, TxDone, OpenFlow, Wake or CloseFlow the driver calls
// Poll until it returns false and sends what it got, then reads Deadline and
// calls Expire at that time or later.
type Node struct {
	cfg    Config
	radio  Radio
	routes Routes
	app    App
}

// NewNode returns a node without flows, or an error for an invalid
// configuration.
func NewNode(cfg Config, radio Radio, routes Routes, app App) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Node{cfg: cfg, radio: radio, routes: routes, app: app}, nil
}

// Config returns the node's parameters.
func (n *Node) Config() Config { return n.cfg }

// OpenFlow starts a flow from this node at now. It fails if the flow exists,
// if dst is this node, or if an option is out of range.
func (n *Node) OpenFlow(now vtime.Time, id FlowID, dst NodeID, src Source, opt FlowOptions) error {
	return nil
}

// Wake tells that a Source that had nothing has bytes again.
func (n *Node) Wake(now vtime.Time, id FlowID, dst NodeID) {}

// CloseFlow ends a flow at this node. At the source no further block is taken
// from the Source; blocks under way are still delivered. With abort, at any
// role, the flow's blocks and state are dropped at once.
func (n *Node) CloseFlow(now vtime.Time, f FlowKey, abort bool) {}

// Receive takes a packet that the neighbour from sent. pkt is not kept.
func (n *Node) Receive(now vtime.Time, from NodeID, pkt []byte) {}

// Expire fires the timers due at now.
func (n *Node) Expire(now vtime.Time) {}

// Deadline returns when Expire has work to do, vtime.Never if at no time.
func (n *Node) Deadline() vtime.Time { return vtime.Never }

// Poll returns the next packet to send now; false if there is none or the
// MAC's queue takes none.
func (n *Node) Poll(now vtime.Time) (Packet, bool) { return Packet{}, false }

// TxDone tells that k frames of the class have left the MAC's queue, sent or
// dropped, in the order in which they were given. k = 0 only says that the
// queue's free space may have changed.
func (n *Node) TxDone(now vtime.Time, c Class, k int) {}

// Delivered returns the unique payload bytes of the flow that have reached
// this node as its destination, an unfinished block's included.
func (n *Node) Delivered(f FlowKey) vtime.Bytes { return 0 }

// FlowStats returns the flow's state and counters; false if it is unknown.
func (n *Node) FlowStats(f FlowKey) (FlowStats, bool) { return FlowStats{}, false }

// Flows appends the known flows to dst, in the order in which this node met
// them.
func (n *Node) Flows(dst []FlowKey) []FlowKey { return dst }

// Stats returns the node's counters.
func (n *Node) Stats() NodeStats { return NodeStats{} }
