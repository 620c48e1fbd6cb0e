package simnet

import (
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/vtime"
)

// noThreshold is the slow-start threshold before the first loss
// (TCP_INFINITE_SSTHRESH); a sample reports it as 0, as agents do.
const noThreshold = 0x7fffffff

// caNames are the recovery states as agents name them.
var caNames = func() (n [tcp.Loss + 1]string) {
	for s := range n {
		n[s] = strings.ToLower(tcp.CAState(s).String())
	}
	return n
}()

// fillTCP fills the sender's part of a sample as agents do from TCP_INFO.
func fillTCP(s *proto.Sample, c *tcp.Conn) {
	i := c.Info()
	s.CwndPackets = int64(i.Cwnd)
	if i.Ssthresh < noThreshold {
		s.SsthreshPackets = int64(i.Ssthresh)
	}
	s.SRTT, s.RTTVar, s.RTO, s.MinRTT = i.SRTT, i.RTTVar, i.RTO, i.MinRTT
	s.Sent, s.Retrans, s.Acked = i.BytesSent, i.BytesRetrans, i.BytesAcked
	s.RetransPackets, s.LostPackets = int64(i.TotalRetrans), int64(i.Lost)
	s.DeliveredPackets, s.DeliveryRate = int64(i.Delivered), vtime.BitRate(8*i.DeliveryRate)
	s.Timeouts, s.InFlight = int64(i.Timeouts), int64(i.InFlight)
	if int(i.CAState) < len(caNames) {
		s.CAState = caNames[i.CAState]
	}
	s.SendWindow, s.NotSent = i.SndWnd, i.NotSent
}
