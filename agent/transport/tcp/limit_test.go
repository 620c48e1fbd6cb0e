package tcp

import "testing"

// TestLimitCwnd: the bound holds for growth, by slow start and by congestion
// avoidance, and touches neither the window nor the threshold by itself.
func TestLimitCwnd(t *testing.T) {
	c, err := New(DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.w.Cwnd, c.w.Ssthresh = 50, 40
	c.LimitCwnd(20)
	if c.w.Cwnd != 50 || c.w.Ssthresh != 40 {
		t.Errorf("at once: a window of %d, a threshold of %d", c.w.Cwnd, c.w.Ssthresh)
	}
	c.w.Increase(1, 1)
	if c.w.Cwnd != 20 {
		t.Errorf("congestion avoidance: %d", c.w.Cwnd)
	}
	c.w.Cwnd = 10
	c.w.SlowStart(100)
	if c.w.Cwnd != 20 || c.w.Ssthresh != 40 {
		t.Errorf("slow start: a window of %d, a threshold of %d", c.w.Cwnd, c.w.Ssthresh)
	}
	c.LimitCwnd(0)
	c.w.SlowStart(100)
	if c.w.Cwnd != 40 {
		t.Errorf("without the bound: %d", c.w.Cwnd)
	}
}
