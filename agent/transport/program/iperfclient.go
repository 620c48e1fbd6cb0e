//go:build linux

package program

import (
	"fmt"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	// retryPause is the time between two attempts to begin a test.
	retryPause = 250 * vtime.Millisecond
	// overrun is how much longer than the flow the client would test: it is the
	// flow's stop that ends it.
	overrun = 3 * vtime.Second
	// hold is how long the client is held still at the flow's stop before it is
	// told to end: it sends nothing, and the server's own stop comes before its
	// word, which would cost the server's last interval.
	hold = 100 * vtime.Millisecond
)

// send runs the flow's client from the flow's start to its stop. Where it could
// not begin its test it is started again: the network may let it later.
func (s *iperfSide) send() {
	if !sock.SleepUntil(s.ep.ctx, s.sched.Clock, s.flow.Start) {
		return
	}
	for {
		now := s.sched.Clock.Now()
		s.test.length = s.stop.Sub(now) + overrun
		s.result.Attempts++
		p, r, done, err := s.start(s.ep.tool.client(&s.test))
		if err != nil {
			s.fail(proto.CodeSystem, err.Error())
			return
		}
		ended := s.wait(p, s.stop)
		if !ended {
			p.signal(unix.SIGSTOP)
			if s.ep.ctx.Err() == nil {
				sleep(hold)
			}
		}
		p.stop()
		<-done
		s.report = r.got()
		now = s.sched.Clock.Now()
		again := ended && !s.report.connected && s.report.broken == "" && network.MatchString(s.words(p))
		if again && now.Add(retryPause) < s.stop && sock.SleepUntil(s.ep.ctx, s.sched.Clock, now.Add(retryPause)) {
			continue
		}
		s.settleClient(p, ended, now)
		return
	}
}

// settleClient makes the report into the source's account.
func (s *iperfSide) settleClient(p *process, ended bool, now vtime.Time) {
	r := s.report
	s.result.Total, s.result.CC = r.sum(), r.cc
	var retransmits, packets int64
	for i := range r.intervals {
		retransmits, packets = retransmits+r.intervals[i].retransmits, packets+r.intervals[i].packets
	}
	if s.test.udp() {
		s.result.DatagramsSent = packets
	} else if r.connected {
		s.result.Counters = []proto.Counter{{Name: "retransmitted_segments", Delta: retransmits}}
	}
	if r.begun {
		s.result.Established = s.at(0)
		s.result.SetupTime = s.result.Established.Sub(s.flow.Start)
		s.ep.node.Event(proto.Event{Flow: s.flow.ID, Side: s.side, Kind: proto.Connected, T: s.result.Established})
	}
	if got := s.samples(nil); len(got) > 0 {
		s.result.Last = &got[len(got)-1]
	}
	name := s.ep.tool.program
	switch {
	case s.ep.ctx.Err() != nil && now < s.stop:
		// The run was stopped.
	case r.broken != "":
		s.fail(proto.CodeFlow, name+" at the source: "+r.broken)
	case !r.connected:
		s.unconnected(p, ended)
	case ended && s.flow.Workload.Size > 0 && p.status() == 0:
		s.result.Finished, s.result.FinishedAt = true, now
	case ended && now < s.stop-vtime.Time(slack):
		s.fail(proto.CodeFlow, fmt.Sprintf("%s at the source ended at %v, before the flow's stop at %v: %s", name, short(now), short(s.stop), s.words(p)))
	}
}

// network are the words of a client whose test did not begin because of the
// network or of the other end; after any others another attempt would end like
// this one.
var network = regexp.MustCompile(`(?i)unable to (connect|receive|send|read|write)|connect failed|timed out|refused|unreachable|no route|reset by peer|closed|broken pipe|busy|terminated|temporarily`)

// unconnected judges a test that never began: an outcome of the network, unless
// the program ended by itself for another reason.
func (s *iperfSide) unconnected(p *process, ended bool) {
	if ended && !network.MatchString(s.words(p)) {
		s.fail(proto.CodeFlow, s.ep.tool.program+" at the source: "+s.words(p))
		return
	}
	if s.ep.tool.atEnd(s.ep.version) && p.status() == 128+int(unix.SIGKILL) && s.report.said == "" {
		text := fmt.Sprintf("%s at the source did not end when it was told to, and left no report", s.ep.tool.program)
		if !s.ep.tool.stuck(s.ep.version) {
			s.fail(proto.CodeFlow, text)
			return
		}
		s.ep.node.Log("warn", fmt.Sprintf("flow %d: %s, as this version often does: what its sender did is not known", s.flow.ID, text))
		return
	}
	e := &proto.Error{Code: proto.CodeTimeout, What: fmt.Sprintf("flow %d set-up", s.flow.ID),
		Detail: fmt.Sprintf("%s could not begin its test before %v", s.ep.tool.program, short(s.stop))}
	if ended {
		e.Detail += ": " + s.words(p)
	}
	s.result.Error = e
	s.ep.node.Event(proto.Event{Flow: s.flow.ID, Side: s.side, Kind: proto.Failed, T: s.sched.Clock.Now(), Error: e})
}
