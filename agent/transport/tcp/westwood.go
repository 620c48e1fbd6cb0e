package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// westwood is Westwood+ (Mascolo et al.; Linux's tcp_westwood.c): Reno's
// growth; after a loss the threshold is the bandwidth estimate times the
// minimal RTT. The estimate samples the acknowledged bytes once per RTT (at
// least 50 ms) and smooths them twice with a gain of an eighth.
type westwood struct {
	bwNS, bwFast int64 // unsmoothed and smoothed, bytes per tick-independent second
	start        vtime.Time
	acked        int64 // bytes in this sample
	una          uint64
	rtt, rttMin  vtime.Duration
	dupAcked     int64 // bytes already counted through duplicate ACKs
	firstACK     bool
	resetMin     bool
}

const (
	westwoodMinRTT  = 50 * vtime.Millisecond
	westwoodInitRTT = 20 * vtime.Second
)

func (ww *westwood) Init(now vtime.Time, w *Window) {
	*ww = westwood{start: now, una: w.SndUna, rtt: westwoodInitRTT, rttMin: westwoodInitRTT, firstACK: true, resetMin: true}
}

func (ww *westwood) filter(a, b int64) int64 { return (7*a + b) >> 3 }

// sample closes the bandwidth sample if a round trip has passed.
func (ww *westwood) sample(now vtime.Time) {
	d := now.Sub(ww.start)
	if ww.rtt <= 0 || d <= max(ww.rtt, westwoodMinRTT) {
		return
	}
	bw := ww.acked * int64(vtime.Second) / int64(d)
	if ww.bwNS == 0 && ww.bwFast == 0 {
		ww.bwNS, ww.bwFast = bw, bw
	} else {
		ww.bwNS = ww.filter(ww.bwNS, bw)
		ww.bwFast = ww.filter(ww.bwFast, ww.bwNS)
	}
	ww.acked = 0
	ww.start = now
}

func (ww *westwood) updateMin() {
	if ww.resetMin {
		ww.rttMin, ww.resetMin = ww.rtt, false
		return
	}
	ww.rttMin = min(ww.rtt, ww.rttMin)
}

// Acked takes the RTT and counts the bytes that the ACK reports as delivered;
// duplicate ACKs count a segment each.
func (ww *westwood) Acked(now vtime.Time, w *Window, _ int, rtt vtime.Duration) {
	if rtt > 0 {
		ww.rtt = rtt
	}
	if ww.firstACK {
		ww.una, ww.firstACK = w.SndUna, false
	}
	ww.sample(now)
	mss := int64(w.MSS)
	n := int64(w.SndUna - ww.una)
	switch {
	case n == 0: // a duplicate ACK
		ww.dupAcked += mss
		n = mss
	case n > mss: // partial or delayed
		if ww.dupAcked >= n {
			ww.dupAcked -= n
			n = mss
		} else {
			n -= ww.dupAcked
			ww.dupAcked = 0
		}
	}
	ww.una = w.SndUna
	ww.acked += n
	ww.updateMin()
}

// pipe is the bandwidth times the minimal RTT in segments.
func (ww *westwood) pipe(w *Window) int {
	return max(int(ww.bwFast*int64(ww.rttMin)/int64(vtime.Second)/int64(w.MSS)), 2)
}

// Ssthresh halves as Reno does; the estimate replaces it at the end of the
// reduction or at the timeout.
func (ww *westwood) Ssthresh(w *Window) int { return max(w.Cwnd>>1, 2) }
func (ww *westwood) Undo(w *Window) int     { return max(w.Cwnd, w.PriorCwnd) }

func (ww *westwood) Avoid(now vtime.Time, w *Window, acked int) { new(reno).Avoid(now, w, acked) }

func (ww *westwood) Event(_ vtime.Time, w *Window, e CAEvent) {
	switch e {
	case CompleteCWR:
		w.Ssthresh = ww.pipe(w)
		w.Cwnd = w.Ssthresh
	case LossEvent:
		w.Ssthresh = ww.pipe(w)
		ww.resetMin = true // the route may have changed
	}
}

func (ww *westwood) State(vtime.Time, *Window, CAState) {}
