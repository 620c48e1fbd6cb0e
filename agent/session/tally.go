//go:build linux

package session

import (
	"time"

	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
)

// tally reads the counters of the links that the kernel emulates at both ends of
// the measured interval.
type tally struct {
	s             *session
	clock         clock
	from, end     vtime.Time
	stop, done    chan struct{}
	before, after []tc.Counters
	err           error
}

// startTally begins, if the node has such links.
func (s *session) startTally(c clock, from, end vtime.Time) {
	if len(s.cfg.Shapers) == 0 {
		return
	}
	s.tally = &tally{s: s, clock: c, from: from, end: end, stop: make(chan struct{}), done: make(chan struct{})}
	go s.tally.run()
}

// stopTally ends it and notes what it has read. A run that is stopped within the
// interval is counted until then; one that is stopped before has no counters.
func (s *session) stopTally() {
	t := s.tally
	if t == nil {
		return
	}
	close(t.stop)
	<-t.done
	s.tally = nil
	if t.err == nil {
		s.facts.Shapers, t.err = since(t.before, t.after)
	}
	if t.err != nil {
		s.facts.Missing = append(s.facts.Missing, "counters of emulated links: "+t.err.Error())
	}
}

func (t *tally) run() {
	defer close(t.done)
	if !t.wait(t.from) {
		return
	}
	if t.before, t.err = t.s.countShapers(); t.err != nil {
		return
	}
	t.wait(t.end)
	t.after, t.err = t.s.countShapers()
}

// wait reports whether the moment came before the stop.
func (t *tally) wait(at vtime.Time) bool {
	timer := time.NewTimer(at.Sub(t.clock.Now()).Std())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.stop:
		return false
	}
}
