package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// Info is the model's TCP_INFO: each field means what the kernel's field of
// the same name means (include/uapi/linux/tcp.h). Counters are cumulative.
type Info struct {
	State   State
	CAState CAState

	Cwnd, Ssthresh int // segments; Ssthresh is 0x7fffffff before the first loss
	MSS            int // payload of a full segment, bytes
	SndWnd, RcvWnd vtime.Bytes

	SRTT, RTTVar, MinRTT vtime.Duration // 0 before the first sample
	RTO                  vtime.Duration // with backoff
	RcvRTT               vtime.Duration // the receiver's estimate
	RcvSpace             vtime.Bytes    // the receiver's auto-tuning measure

	Unacked, Sacked, Lost, Retrans int // segments now: packets_out, sacked_out, lost_out, retrans_out
	InFlight                       int
	Reordering, ReordSeen          int
	NotSent                        vtime.Bytes

	SegsOut, SegsIn, DataSegsOut, DataSegsIn uint64
	BytesSent                                vtime.Bytes // payload, with retransmissions
	BytesRetrans                             vtime.Bytes
	BytesAcked                               vtime.Bytes
	BytesReceived                            vtime.Bytes // in order
	Delivered                                uint64      // segments delivered, SACKed ones included
	TotalRetrans                             uint64      // segments
	LostTotal                                uint64      // segments ever marked lost
	DSACKDups                                uint64
	Backoff                                  int

	Timeouts     uint64 // RTOs fired (TcpExtTCPTimeouts)
	TLPProbes    uint64
	TLPRecovers  uint64 // probes that repaired a loss
	FastRecovers uint64 // entries into Recovery
	Undos        uint64 // reductions undone, of every kind
	SpuriousRTOs uint64 // of them found by F-RTO
	DelayedACKs  uint64 // ACKs sent by the delayed-ACK timer
	ZeroProbes   uint64 // zero-window probes

	DeliveryRate uint64         // bytes/s, the last sample
	PacingRate   uint64         // bytes/s
	RwndLimited  vtime.Duration // time in which the peer's window was the limit
}

// Info returns the counters and estimates, the same as the kernel's TCP_INFO.
func (c *Conn) Info() Info {
	i := c.info
	s := &c.snd
	i.State, i.CAState = c.state, c.w.State
	i.Cwnd, i.Ssthresh, i.MSS = c.w.Cwnd, c.w.Ssthresh, s.mss
	i.SndWnd, i.RcvWnd = vtime.Bytes(s.wnd), vtime.Bytes(c.rcv.wnd)
	i.SRTT = usDuration(c.est.srtt8 >> 3)
	i.RTTVar = usDuration(c.est.mdev4 >> 2)
	if c.est.min.set {
		i.MinRTT = usDuration(c.minRTT())
	}
	i.RTO, i.Backoff = usDuration(c.est.rto), c.est.backoff
	i.RcvRTT, i.RcvSpace = usDuration(c.rcv.rtt8>>3), vtime.Bytes(c.rcv.space)
	i.Unacked, i.Sacked, i.Lost, i.Retrans = s.packets, s.sacked, s.lost, s.retrans
	i.InFlight = s.inFlight()
	i.Reordering, i.ReordSeen = c.rec.reordering, c.rec.reordSeen
	i.NotSent = vtime.Bytes(s.unsent())
	i.Delivered, i.LostTotal = c.rs.delivered, c.rs.lostTotal
	if c.rs.sampleInterval > 0 {
		i.DeliveryRate = uint64(c.rs.sampleDelivered) * uint64(s.mss) * 1_000_000 / uint64(c.rs.sampleInterval)
	}
	i.PacingRate = c.w.PacingRate
	if c.limitedSince != vtime.Never {
		i.RwndLimited += c.now.Sub(c.limitedSince)
	}
	return i
}

// MSS is Info().MSS, without the rest.
func (c *Conn) MSS() int { return c.snd.mss }

// BytesAcked is Info().BytesAcked, without the rest.
func (c *Conn) BytesAcked() vtime.Bytes { return c.info.BytesAcked }

// chrono accounts for the time in which the peer's window is the limit
// (TCP_CHRONO_RWND_LIMITED).
func (c *Conn) chrono(limited bool) {
	switch {
	case limited && c.limitedSince == vtime.Never:
		c.limitedSince = c.now
	case !limited && c.limitedSince != vtime.Never:
		c.info.RwndLimited += c.now.Sub(c.limitedSince)
		c.limitedSince = vtime.Never
	}
}
