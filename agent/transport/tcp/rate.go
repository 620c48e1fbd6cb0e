package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// rateState is the delivery-rate estimator
// (draft-cheng-iccrg-delivery-rate-estimation; tcp_rate.c in Linux).
type rateState struct {
	delivered   uint64 // segments, SACKed ones included
	deliveredAt int64  // µs of the last delivery
	firstTx     int64  // µs: transmission of the most recently delivered segment
	appLimited  uint64 // delivered at which the application-limited phase ends; 0 = none
	lostTotal   uint64

	// The last sample that was not limited by the application.
	sampleDelivered, sampleInterval int64

	// The sample of the ACK being processed.
	cur         RateSample
	priorMstamp int64
	lastEnd     uint64
	interval    int64
}

// rateSent notes the state in a segment that is about to be sent (§3.2).
func (c *Conn) rateSent(r *sent) {
	if c.snd.packets == 0 {
		c.rs.firstTx, c.rs.deliveredAt = r.at, r.at
	}
	r.txFirst, r.txDeliveredAt = c.rs.firstTx, c.rs.deliveredAt
	r.txDelivered = c.rs.delivered
	r.txAppLimited = c.rs.appLimited != 0
}

func (c *Conn) rateBegin() {
	c.rs.cur = RateSample{}
	c.rs.priorMstamp, c.rs.lastEnd, c.rs.interval = 0, 0, 0
}

// rateDelivered updates the sample with a segment just acknowledged (§3.3);
// the sample is that of the segment sent last.
func (c *Conn) rateDelivered(r *sent) {
	if r.txDeliveredAt == 0 {
		return
	}
	rs := &c.rs
	if rs.cur.PriorDelivered == 0 && rs.priorMstamp == 0 || sentAfter(r.at, rs.firstTx, r.end(), rs.lastEnd) {
		rs.cur.PriorDelivered = r.txDelivered
		rs.priorMstamp = r.txDeliveredAt
		rs.cur.AppLimited = r.txAppLimited
		rs.lastEnd = r.end()
		rs.firstTx = r.at
		rs.interval = r.at - r.txFirst
	}
	if r.tag&tagSacked != 0 {
		r.txDeliveredAt = 0 // counted; the cumulative ACK must not count it again
	}
}

// rateEnd completes the sample of the ACK.
func (c *Conn) rateEnd(delivered, lost int, reneg bool) *RateSample {
	rs := &c.rs
	if rs.appLimited != 0 && rs.delivered > rs.appLimited {
		rs.appLimited = 0
	}
	if delivered > 0 {
		rs.deliveredAt = c.us
	}
	s := &rs.cur
	s.AckedSacked, s.Losses = delivered, lost
	if rs.priorMstamp == 0 || reneg {
		s.Delivered, s.Interval = -1, 0
		return s
	}
	s.Delivered = int(rs.delivered - s.PriorDelivered)
	us := max(rs.interval, c.us-rs.priorMstamp)
	if us < c.minRTT() {
		s.Interval = 0 // too short to be a round trip: not believable
		return s
	}
	s.Interval = vtime.Duration(us) * vtime.Microsecond
	if !s.AppLimited || int64(s.Delivered)*rs.sampleInterval >= rs.sampleDelivered*us {
		rs.sampleDelivered, rs.sampleInterval = int64(s.Delivered), us
	}
	return s
}

// rateCheckAppLimited marks a phase in which the application, not the window,
// limits the flow: less than a segment unsent, the window not full, nothing
// lost that waits for retransmission.
func (c *Conn) rateCheckAppLimited() {
	if c.snd.unsent() < int64(c.snd.mss) && c.snd.inFlight() < c.w.Cwnd && c.snd.lost <= c.snd.retrans {
		c.rs.appLimited = max(c.rs.delivered+uint64(c.snd.inFlight()), 1)
	}
}

func (c *Conn) countDelivered(n int) { c.rs.delivered += uint64(n) }
