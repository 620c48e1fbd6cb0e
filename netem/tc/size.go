package tc

import (
	"math"

	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	packet      = 1500 // bytes of a full packet, by which queues are sized
	smallest    = 64   // bytes of the smallest packet
	fastest     = 10 * vtime.GbitPerSecond
	leastQueue  = 50
	leastFlight = 1000 // netem's own default, which is too small for what is fast and far
)

// SizedLimit is the length of the queue, in packets, of a link whose description
// leaves it out: the rate × delay of full packets, at least 50 and at most one second
// of the rate.
func SizedLimit(rate vtime.BitRate, delay vtime.Duration) int {
	second := packets(rate, vtime.Second, packet)
	return int(min(max(packets(rate, delay, packet), leastQueue), max(second, leastQueue), maxLimit))
}

// packets is how many packets of n bytes leave at a rate in a time, rounded up.
func packets(rate vtime.BitRate, d vtime.Duration, n float64) float64 {
	return math.Ceil(float64(rate) / 8 * d.Seconds() / n)
}

// inFlight is the limit of the stage that delays, before the queue. Whatever is
// more than the link can serve during the delay and keep in its queue would be
// refused by the queue anyway; so the limit never drops what the link could carry.
func (s *Shape) inFlight(queue int) int {
	d := s.Delay + 4*s.Jitter.Spread
	if s.Jitter.Spread > 0 {
		d = s.Delay + 4*table(s.Jitter.Distribution).spread(s.Jitter.Spread)
	}
	n := float64(queue)
	if s.Rate > 0 {
		n += packets(s.Rate, d, smallest)
	} else {
		n += packets(fastest, d, packet)
	}
	return int(min(max(n, leastFlight), maxLimit))
}
