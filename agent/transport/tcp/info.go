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
	Reordering                     int
	ReordSeen                      int
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

	Timeouts     uint64 // RTOs fired (TcpExtTCPTimeouts: SYN, RTO; probes are apart)
	TLPProbes    uint64
	TLPRecovers  uint64 // probes that repaired a loss
	FastRecovers uint64 // entries into Recovery
	Undos        uint64 // reductions undone, of every kind
	SpuriousRTOs uint64 // of them found by F-RTO
	DelayedACKs  uint64 // ACKs sent by the delayed-ACK timer
	ZeroProbes   uint64 // zero-window probes

	DeliveryRate  uint64 // bytes/s, the last sample
	PacingRate    uint64 // bytes/s
	BusyTime      vtime.Duration
	RwndLimited   vtime.Duration
	SndbufLimited vtime.Duration
}
