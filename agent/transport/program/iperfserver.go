//go:build linux

package program

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

const (
	// slack is how close to the flow's stop the end of a program is taken for the
	// stop itself: both ends are stopped at the same moment by two timers, and each
	// tells the other.
	slack = 150 * vtime.Millisecond
	// restartPause is the time between a server's end without a test and the next
	// one.
	restartPause = 50 * vtime.Millisecond
	// maxRestarts bounds how often a server is started that ends at once.
	maxRestarts = 100
)

// serve runs the flow's server until the flow's stop, and judges what it said.
// iperf3's server ends after one client: where that never began its test, because the
// network did not let it, another takes its place.
func (s *iperfSide) serve() {
	argv := s.ep.tool.server(&s.test)
	for restarts := 0; ; restarts++ {
		p, r, done, err := s.start(argv)
		if err != nil {
			s.fail(proto.CodeSystem, err.Error())
			return
		}
		ended := s.wait(p, s.stop)
		p.stop()
		<-done
		s.report = r.got()
		now := s.sched.Clock.Now()
		tested := len(s.report.intervals) > 0 || s.report.broken != ""
		if ended && !tested && now < s.stop-vtime.Time(slack) && s.ep.ctx.Err() == nil {
			if restarts >= maxRestarts {
				s.fail(proto.CodeFlow, "the server ends without a test: "+s.words(p))
				return
			}
			if sock.SleepUntil(s.ep.ctx, s.sched.Clock, now.Add(restartPause)) {
				continue
			}
		}
		s.settleServer(p, ended)
		return
	}
}

// words are what the program said of its own end.
func (s *iperfSide) words(p *process) string {
	text := p.ended()
	if s.report.said != "" {
		text += ": " + s.report.said
	}
	return text
}

// settleServer makes the report into the flow's result.
func (s *iperfSide) settleServer(p *process, ended bool) {
	r := s.report
	from, to := s.flow.Measured(s.sched.Warmup, s.sched.End)
	m := newMeter(from, to, s.at(0), s.flow.Workload.Size)
	var sum vtime.Bytes
	for i := range r.intervals {
		sum += r.intervals[i].bytes
		m.advance(s.at(r.intervals[i].to), sum)
	}
	s.tail(m)
	s.result.Bytes, s.result.Total = m.bytes(), m.total
	s.result.CC = r.cc
	if m.finished != vtime.Never {
		s.result.Finished, s.result.FinishedAt = true, m.finished
		s.ep.node.Event(proto.Event{Flow: s.flow.ID, Side: s.side, Kind: proto.Finished, T: m.finished})
	}
	now := s.sched.Clock.Now()
	// The server was there until now, or its report ends with its test.
	until := vtime.Min(s.stop, now)
	if ended && !s.result.Finished {
		until = s.at(r.reach())
	}
	s.result.MeasuredFrom, s.result.MeasuredTo = from, vtime.Max(from, vtime.Min(to, until))
	s.result.Last = &proto.Sample{Flow: s.flow.ID, Side: s.side, T: vtime.Max(m.at, 0), Delivered: m.total, Sparse: true}
	s.countServer()
	s.judgeServer(p, ended, m)
}

// tail adds what the program's own sum has beyond its intervals, where that is a
// time of its own. What has none is not counted, and said.
func (s *iperfSide) tail(m *meter) {
	r := s.report
	more := r.total - m.total
	if !r.hasTotal || more <= 0 {
		return
	}
	if r.untilEnd > r.end() {
		m.advance(s.at(r.untilEnd), r.total)
		return
	}
	if more > r.total/1000 {
		s.ep.node.Log("warn", fmt.Sprintf("flow %d: %s says %v in all, %v more than its intervals have; these are not counted", s.flow.ID, s.ep.tool.program, r.total, more))
	}
}

// countServer fills the counters of datagrams.
func (s *iperfSide) countServer() {
	if !s.test.udp() {
		return
	}
	var packets, lost int64
	var jitter vtime.Duration
	n := 0
	for i := range s.report.intervals {
		v := &s.report.intervals[i]
		packets, lost = packets+v.packets, lost+min(v.lost, v.packets)
		if v.packets > 0 {
			jitter, n = jitter+v.jitter, n+1
		}
	}
	s.result.Datagrams, s.result.Reordered = packets-lost, s.report.outOfOrder
	s.result.Counters = []proto.Counter{{Name: "datagrams_expected", Delta: packets}, {Name: "datagrams_lost", Delta: lost}}
	if n > 0 {
		s.result.Counters = append(s.result.Counters, proto.Counter{Name: "jitter_us", Delta: int64(jitter/vtime.Duration(n)) / 1000})
	}
}

// judgeServer decides whether the figures can be used.
func (s *iperfSide) judgeServer(p *process, ended bool, m *meter) {
	r := s.report
	name := s.ep.tool.program
	switch err := r.verify(s.test.every); {
	case r.broken != "":
		s.fail(proto.CodeFlow, name+" at the destination: "+r.broken)
		return
	case err != nil:
		s.fail(proto.CodeFlow, name+" at the destination: "+err.Error())
		return
	}
	received, err := receivedBytes()
	if err == nil && received >= s.received && uint64(m.total) > received-s.received {
		s.fail(proto.CodeFlow, fmt.Sprintf("%s says that %v arrived, but the node's interfaces received only %d B", name, m.total, received-s.received))
		return
	}
	if s.result.Finished || s.ep.ctx.Err() != nil && s.sched.Clock.Now() < s.stop {
		return
	}
	reach := s.at(r.reach())
	early := reach < s.stop-vtime.Time(slack)
	switch {
	case ended && early && r.connected:
		s.fail(proto.CodeFlow, fmt.Sprintf("%s at the destination ended at %v, before the flow's stop at %v: %s", name, short(reach), short(s.stop), s.words(p)))
	case ended && p.status() != 0 && !r.connected:
		s.fail(proto.CodeFlow, "the server ended without a test: "+s.words(p))
	case early && r.connected && !(r.hasTotal && r.total == r.sum()) && s.at(r.reach()+s.test.every) < s.stop-vtime.Time(slack):
		want := int(s.stop.Sub(s.at(0)) / s.test.every)
		s.fail(proto.CodeFlow, fmt.Sprintf("the last intervals of %s are missing: %d of about %d came, to %v", name, len(r.intervals), want, short(reach)))
	}
}

// short is a moment of the run for people.
func short(t vtime.Time) time.Duration { return vtime.Duration(t).Std().Round(time.Millisecond) }

// sleep waits a little, whatever happens.
func sleep(d vtime.Duration) { time.Sleep(d.Std()) }
