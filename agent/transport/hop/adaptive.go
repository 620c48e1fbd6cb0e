package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Adaptive polling (not in the paper): on a radio that nobody else uses an
// answer takes 3 ms, and a wait of 50 ms, doubling to 200 ms, is what a lost BSYN
// or BACK costs. In a mesh full of hidden senders the answers come late and
// scattered, and repeating sooner would add to what delays them. The time between
// BSYN and BACK tells the two apart, its deviation most of all.

const (
	// adaptiveFloor is the shortest wait: a few exchanges of full length at
	// 11 Mb/s.
	adaptiveFloor = 10 * vtime.Millisecond
	// adaptiveSpan bounds the doubling: twice.
	adaptiveSpan = 4
)

// adapts reports whether the block's wait for a bitmap is adaptive: on radios,
// once there is a sample.
func (n *Node) adapts(b *block) bool {
	return n.cfg.PollAdaptive && b.f.srtt.srtt > 0 && !b.port.wire
}

// adaptive is the wait as RFC 6298 (2.3) has it: mean and four deviations.
func (r *rtt) adaptive(most vtime.Duration) vtime.Duration {
	return min(max(r.srtt+4*r.rttvar, adaptiveFloor), most)
}
