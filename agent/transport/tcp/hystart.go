package tcp

import "github.com/hopbed/hopbed/netem/vtime"

// hystart ends slow start before it overflows the bottleneck's queue (Ha and
// Rhee, "Taming the elephants", 2008, in Linux's form; not RFC 9406's
// HyStart++): when a train of closely spaced ACKs spans half the minimal RTT,
// or when the least RTT of a round exceeds the minimum by an eighth (4–16 ms).
type hystart struct {
	found   bool
	start   int64  // µs: begin of the round
	lastACK int64  // µs of the last closely spaced ACK
	end     uint64 // sequence number that ends the round
	current int64  // least RTT of the round
	samples int
}

const (
	hystartLow     = 16 // smallest window, segments
	hystartSpacing = 2000
	hystartSamples = 8
)

func (h *hystart) round(now vtime.Time, w *Window) {
	h.start = int64(now) / 1000
	h.lastACK = h.start
	h.end = w.SndNxt
	h.current = 1<<63 - 1
	h.samples = 0
}

func (h *hystart) update(now vtime.Time, w *Window, rtt, least int64) {
	if w.SndUna > h.end {
		h.round(now, w)
	}
	if w.Cwnd < hystartLow {
		return
	}
	us := int64(now) / 1000
	if us-h.lastACK <= hystartSpacing {
		h.lastACK = us
		limit := least + hystartCushion(w.PacingRate)
		if !w.Pacing {
			limit >>= 1
		}
		if us-h.start > limit {
			h.found = true
			w.Ssthresh = w.Cwnd
		}
	}
	h.current = min(h.current, rtt)
	if h.samples < hystartSamples {
		h.samples++
	} else if h.current > least+min(max(least>>3, 4000), 16000) {
		h.found = true
		w.Ssthresh = w.Cwnd
	}
}

// hystartCushion allows for the time that bursts take to assemble: four of
// the largest at the pacing rate, at most 1 ms; µs.
func hystartCushion(rate uint64) int64 {
	if rate == 0 {
		return 0
	}
	return int64(min(1000, gsoMax*4*1_000_000/rate))
}
