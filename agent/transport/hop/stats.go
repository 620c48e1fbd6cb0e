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

// Add adds the counters of o, a flow's at a node that has lost its memory since; the
// state stays that of s.
func (s *FlowStats) Add(o *FlowStats) {
	s.Delivered += o.Delivered
	s.BytesSent += o.BytesSent
	s.BytesAgain += o.BytesAgain
	s.DelaySum += o.DelaySum
	to, from := s.counters(), o.counters()
	for i := range to {
		*to[i] += *from[i]
	}
}

// counters are the cumulative counts of a FlowStats.
func (s *FlowStats) counters() []*uint64 {
	return []*uint64{&s.BlocksSent, &s.BlocksReceived, &s.BlocksAcked, &s.MicroBlocks, &s.PacketsSent, &s.Retransmitted, &s.DataAgain, &s.Duplicates,
		&s.Redundant, &s.Rounds, &s.BSYNs, &s.BSYNTimeouts, &s.BACKs, &s.Grants, &s.GrantsExpired, &s.Withheld, &s.Blocked, &s.Tokens, &s.Virtual,
		&s.Evicted, &s.Corrupt, &s.DelayCount}
}

// Add adds the counters of o, which the node had before it lost its memory.
func (s *NodeStats) Add(o *NodeStats) {
	s.MemoryPeak = max(s.MemoryPeak, o.MemoryPeak)
	s.DataSent += o.DataSent
	s.ControlSent += o.ControlSent
	s.Received += o.Received
	s.BadPackets += o.BadPackets
	s.Unexpected += o.Unexpected
	s.DrainsTimedOut += o.DrainsTimedOut
	s.NoRoute += o.NoRoute
	s.Tokens += o.Tokens
	s.DataAgain += o.DataAgain
	s.Redundant += o.Redundant
}

// Counters are the counters alone, as those of a flow at a node that has lost its
// memory.
func (s FlowStats) Counters() FlowStats {
	c := FlowStats{Key: s.Key, Role: s.Role}
	c.Add(&s)
	return c
}
