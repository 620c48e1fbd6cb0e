//go:build linux

package session

import (
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/workload"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A pulse that comes late is a standstill as long, within the measured interval.
func TestPulse(t *testing.T) {
	s := &session{cfg: &proto.Configure{Node: 1, Flows: []proto.Flow{{Transport: "tcp/reno", Src: 1, Dst: 3, Workload: workload.Spec{Kind: workload.Continual}}}}}
	s.startPulse(clock{}, 0, vtime.Time(vtime.Second))
	if s.pulse != nil {
		t.Error("without messages there is nothing to look for")
	}
	s.cfg.Node, s.cfg.Flows[0].Workload = 2, workload.Spec{Kind: workload.VoIP}
	if s.startPulse(clock{}, 0, vtime.Time(vtime.Second)); s.pulse != nil {
		t.Error("the kernel forwards TCP")
	}
	s.cfg.Flows[0].Transport = "hop"
	// The first pulse was due 300 ms ago, as after a standstill of that length.
	c := clock{probe.MonotonicNS() - int64(300*vtime.Millisecond)}
	s.startPulse(c, 0, vtime.Time(vtime.Hour))
	time.Sleep(50 * time.Millisecond)
	s.stopPulse()
	if s.facts.Standstill < 300*vtime.Millisecond {
		t.Errorf("a standstill of %v, 300 ms and more are right", s.facts.Standstill)
	}
	s.facts.Standstill = 0
	s.startPulse(c, 0, vtime.Time(200*vtime.Millisecond)) // the interval was over by then
	time.Sleep(10 * time.Millisecond)
	s.stopPulse()
	if s.facts.Standstill > 200*vtime.Millisecond {
		t.Errorf("%v of an interval of 200 ms", s.facts.Standstill)
	}
}
