package hop

import (
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

// The wait follows mean and deviation, within its bounds; wires and nodes
// without the switch keep theirs.
func TestAdaptivePollInterval(t *testing.T) {
	n := &Node{cfg: DefaultConfig()}
	n.cfg.PollAdaptive = true
	f := &flow{}
	b := &block{f: f, port: &port{}}
	ms := func(d int) vtime.Duration { return vtime.Duration(d) * vtime.Millisecond }
	if got := n.pollInterval(b); got != n.cfg.PollFloor {
		t.Errorf("without a sample the wait is %v, want %v", got, n.cfg.PollFloor)
	}
	for range 100 {
		f.srtt.sample(ms(3))
	}
	if got := n.pollInterval(b); got != adaptiveFloor || n.pollCeil(b) != adaptiveSpan*adaptiveFloor {
		t.Errorf("after steady samples of 3 ms: %v to %v", got, n.pollCeil(b))
	}
	for i := range 100 {
		f.srtt.sample(ms(5 + 90*(i&1)))
	}
	if got := n.pollInterval(b); got < ms(95) || got > n.cfg.PollCeil || n.pollCeil(b) != n.cfg.PollCeil {
		t.Errorf("after samples of 5 and 95 ms in turn: %v to %v", got, n.pollCeil(b))
	}
	f.srtt = rtt{}
	f.srtt.sample(ms(3))
	b.port.wire = true
	if got := n.pollInterval(b); got != n.cfg.PollFloor {
		t.Errorf("on a wire the wait is %v", got)
	}
	b.port.wire, n.cfg.PollAdaptive = false, false
	if got := n.pollInterval(b); got != n.cfg.PollFloor {
		t.Errorf("without the switch the wait is %v", got)
	}
}
