package simnet

import (
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Account ends the run and returns what an agent on each node would report.
func (n *Net) Account(now vtime.Time) []*proto.Results {
	out := make([]*proto.Results, n.cfg.Nodes)
	for i := range out {
		out[i] = &proto.Results{Node: i}
	}
	for _, f := range n.flows {
		f.account(now, func(node int, r proto.FlowResult) { out[node].Flows = append(out[node].Flows, r) })
	}
	n.closeMessages()
	for i := range out {
		out[i].Facts.Counters = append(n.kernelCounters(i), n.rewriteCounters(i)...)
		out[i].Facts.Hop = n.hopCounters(i)
	}
	return out
}

// kernelCounters are a node's sums under the names that Linux gives them in
// /proc/net/snmp and /proc/net/netstat, over the whole run, as agents report
// them: zeros are left out. Datagrams that the radio's full queue refused have
// no name there.
func (n *Net) kernelCounters(node int) []proto.Counter {
	h := &n.hosts[node]
	return nonZero([]proto.Counter{
		{Name: "Ip.ForwDatagrams", Delta: int64(h.forwarded)},
		{Name: "Ip.OutNoRoutes", Delta: int64(h.noRoute)},
		{Name: "Ip.InHdrErrors", Delta: int64(h.expired)}, // the hop limit
		{Name: "Tcp.OutSegs", Delta: int64(h.tcp.segsOut - h.tcp.retrans)},
		{Name: "Tcp.InSegs", Delta: int64(h.tcp.segsIn)},
		{Name: "Tcp.RetransSegs", Delta: int64(h.tcp.retrans)},
		{Name: "TcpExt.TCPTimeouts", Delta: int64(h.tcp.timeouts)},
		{Name: "TcpExt.TCPLossProbes", Delta: int64(h.tcp.probes)},
		{Name: "TcpExt.TCPDSACKRecv", Delta: int64(h.tcp.dsacks)},
		{Name: "TcpExt.TCPSpuriousRTOs", Delta: int64(h.tcp.undone)},
		{Name: "queue_refused", Delta: int64(h.refused)},
	})
}

// hopCounters are a node's counters of Hop, under the agent's names.
func (n *Net) hopCounters(node int) []proto.Counter {
	if n.hop == nil {
		return nil
	}
	s := n.hopStats(node)
	return nonZero([]proto.Counter{
		{Name: "hop_data_sent", Delta: int64(s.DataSent)},
		{Name: "hop_control_sent", Delta: int64(s.ControlSent)},
		{Name: "hop_received", Delta: int64(s.Received)},
		{Name: "hop_bad_packets", Delta: int64(s.BadPackets)},
		{Name: "hop_unexpected", Delta: int64(s.Unexpected)},
		{Name: "hop_drains_timed_out", Delta: int64(s.DrainsTimedOut)},
		{Name: "hop_no_route", Delta: int64(s.NoRoute)},
		{Name: "hop_tokens", Delta: int64(s.Tokens)},
		{Name: "hop_data_again", Delta: int64(s.DataAgain)},
		{Name: "hop_data_redundant", Delta: int64(s.Redundant)},
		{Name: "hop_memory_peak_bytes", Delta: int64(s.MemoryPeak)},
	})
}

func nonZero(in []proto.Counter) []proto.Counter {
	out := in[:0]
	for _, c := range in {
		if c.Delta != 0 {
			out = append(out, c)
		}
	}
	return out
}
