//go:build linux

package probe

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// caStates are the names of enum tcp_ca_state (linux/tcp.h).
var caStates = [...]string{"open", "disorder", "cwr", "recovery", "loss"}

// infinite is the kernel's initial slow-start threshold (TCP_INFINITE_SSTHRESH,
// net/tcp.h); it means "none yet" and is reported as 0.
const infinite = 0x7fffffff

// TCPInfo fills the sender's part of a sample from the connection's
// TCP_INFO. Fields that an old kernel does not have stay 0 (bytes_sent and
// bytes_retrans: Linux 4.19, total_rto: 6.7). The kernel counts time in
// microseconds. The error is the kernel's, for a socket that is not a
// connection any more.
func TCPInfo(fd int, s *proto.Sample) error {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	us := func(v uint32) vtime.Duration { return vtime.Duration(v) * vtime.Microsecond }
	s.CwndPackets = int64(i.Snd_cwnd)
	if i.Snd_ssthresh < infinite {
		s.SsthreshPackets = int64(i.Snd_ssthresh)
	}
	s.SRTT, s.RTTVar, s.RTO = us(i.Rtt), us(i.Rttvar), us(i.Rto)
	if i.Min_rtt != ^uint32(0) { // no sample yet
		s.MinRTT = us(i.Min_rtt)
	}
	s.Sent, s.Retrans, s.Acked = vtime.Bytes(i.Bytes_sent), vtime.Bytes(i.Bytes_retrans), vtime.Bytes(i.Bytes_acked)
	s.RetransPackets, s.LostPackets = int64(i.Total_retrans), int64(i.Lost)
	s.DeliveredPackets, s.DeliveryRate = int64(i.Delivered), vtime.BitRate(i.Delivery_rate*8)
	s.Timeouts = int64(i.Total_rto)
	// tcp_packets_in_flight, net/tcp.h.
	s.InFlight = int64(i.Unacked) - int64(i.Sacked) - int64(i.Lost) + int64(i.Retrans)
	if int(i.Ca_state) < len(caStates) {
		s.CAState = caStates[i.Ca_state]
	}
	s.SendWindow, s.NotSent = vtime.Bytes(i.Snd_wnd), vtime.Bytes(i.Notsent_bytes)
	return nil
}
