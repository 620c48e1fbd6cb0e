//go:build linux

package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// switcher has the node's transports lose their memory when the experiment switches
// the node off, and begin afresh when it is switched on.
type switcher struct {
	s          *session
	clock      clock
	todo       []proto.Switch
	end        vtime.Time
	stop, done chan struct{}
	applied    []proto.Switched
}

// checkSwitches refuses a schedule that makes no sense.
func checkSwitches(c *proto.Configure) error {
	bad := func(detail string) error {
		return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: "switches", Detail: detail}
	}
	for i, w := range c.Switches {
		switch {
		case w.T < 0 || i > 0 && w.T <= c.Switches[i-1].T:
			return bad(fmt.Sprintf("the moment %v is not after the one before it", vtime.Duration(w.T)))
		case w.Up != (i%2 == 1):
			return bad(fmt.Sprintf("at %v the node is in that state already", vtime.Duration(w.T)))
		}
	}
	if len(c.Switches) > 0 && slices.ContainsFunc(c.Flows, func(f proto.Flow) bool { return f.Src == c.Node || f.Dst == c.Node }) {
		return bad("a flow begins or ends at this node: what its end has in memory would be gone")
	}
	return nil
}

// startSwitches begins the schedule.
func (s *session) startSwitches(c clock, end vtime.Time) {
	if len(s.cfg.Switches) == 0 {
		return
	}
	s.switcher = &switcher{s: s, clock: c, todo: s.cfg.Switches, end: end, stop: make(chan struct{}), done: make(chan struct{})}
	go s.switcher.run()
}

// stopSwitches ends the schedule, and notes what of it was carried out.
func (s *session) stopSwitches() {
	if w := s.switcher; w != nil {
		close(w.stop)
		<-w.done
		s.facts.Switched, s.switcher = w.applied, nil
	}
}

func (w *switcher) run() {
	defer close(w.done)
	for _, next := range w.todo {
		if next.T >= w.end {
			return
		}
		timer := time.NewTimer(next.T.Sub(w.clock.Now()).Std())
		select {
		case <-timer.C:
		case <-w.stop:
			timer.Stop()
			return
		}
		w.applied = append(w.applied, w.apply(next))
	}
}

// apply tells every transport that has something to lose.
func (w *switcher) apply(next proto.Switch) proto.Switched {
	out := proto.Switched{T: next.T, Up: next.Up}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, ep := range w.s.endpoints {
		r, ok := ep.(transport.Restarter)
		if !ok {
			continue
		}
		if !next.Up {
			r.NodeDown(w.clock.Now())
			continue
		}
		if err := r.NodeUp(w.clock.Now()); err != nil && out.Err == nil {
			out.Err = proto.AsError(err, proto.CodeSystem)
		}
	}
	out.Late = w.clock.Now().Sub(next.T)
	return out
}
