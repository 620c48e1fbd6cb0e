package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Delivered returns the unique payload bytes of the flow that have reached
// this node as its destination, an unfinished block's included. It falls only
// when a partial block is given up or a block's hash does not match.
func (n *Node) Delivered(f FlowKey) vtime.Bytes {
	if x := n.lookup(f); x != nil && x.role == Destination {
		return x.stats.Delivered
	}
	return 0
}

// FlowStats returns the flow's state and counters; false if it is unknown.
func (n *Node) FlowStats(key FlowKey) (FlowStats, bool) {
	f := n.lookup(key)
	if f == nil {
		return FlowStats{}, false
	}
	s := f.stats
	s.SRTT, s.Used = f.srtt.srtt, f.used
	for _, b := range f.blocks {
		switch {
		case b.rx == rxGranted:
			s.Granted++
		case b.rx == rxRequested || b.rx == rxSuspended:
			s.Waiting++
		case b.cached:
			s.Cached++
		case f.role != Destination && b.tx != txPassed:
			s.Held++
			s.HeldBytes += vtime.Bytes(b.size)
		}
		if b.active() {
			s.InFlight++
		}
	}
	if f.role == SourceRole {
		s.Unacked, s.HeldBytes = len(f.blocks), 0
		for _, b := range f.blocks {
			s.HeldBytes += vtime.Bytes(b.size)
		}
	}
	return s, true
}

// Flows appends the known flows to dst, in the order in which this node met
// them.
func (n *Node) Flows(dst []FlowKey) []FlowKey {
	for _, f := range n.flows {
		dst = append(dst, f.key)
	}
	return dst
}

// Stats returns the node's counters.
func (n *Node) Stats() NodeStats {
	s := n.stats
	s.Flows, s.MemoryUsed = len(n.flows), n.memory
	return s
}
