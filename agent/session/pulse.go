//go:build linux

package session

import (
	"slices"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// pulse measures the longest standstill of an agent in the measured interval, to a
// pulse's length. A standstill is added to the delay of every message that is due
// in it, so that where messages are carried the rounds of samples, which may be a
// second apart, are too far between to judge by.
type pulse struct {
	clock      clock
	from, end  vtime.Time
	stop, done chan struct{}
	worst      vtime.Duration
}

// pulseEvery is the time between two looks: that of a telephone's packets.
const pulseEvery = 20 * vtime.Millisecond

// startPulse begins, if this agent handles messages.
func (s *session) startPulse(c clock, from, end vtime.Time) {
	if !slices.ContainsFunc(s.cfg.Flows, func(f proto.Flow) bool { return handlesMessages(s.cfg.Node, &f) }) {
		return
	}
	s.pulse = &pulse{clock: c, from: from, end: end, stop: make(chan struct{}), done: make(chan struct{})}
	go s.pulse.run()
}

// stopPulse ends it and notes what it has found.
func (s *session) stopPulse() {
	if p := s.pulse; p != nil {
		close(p.stop)
		<-p.done
		s.facts.Standstill, s.pulse = p.worst, nil
	}
}

func (p *pulse) run() {
	defer close(p.done)
	timer := time.NewTimer(p.from.Sub(p.clock.Now()).Std())
	defer timer.Stop()
	for next := p.from; next <= p.end; {
		select {
		case <-timer.C:
		case <-p.stop:
			return
		}
		now := p.clock.Now()
		p.worst = max(p.worst, min(now, p.end).Sub(next))
		next = now.Add(pulseEvery)
		timer.Reset(pulseEvery.Std())
	}
}

// handlesMessages reports whether messages of a flow pass through the agent of a
// node: what TCP and UDP send end to end, relays forward in the kernel.
func handlesMessages(node int, f *proto.Flow) bool {
	if !f.Workload.HasMessages() {
		return false
	}
	family, _ := transport.Split(f.Transport)
	return f.Src == node || f.Dst == node || family != "tcp" && family != "coop-tcp" && family != "udp"
}
