//go:build linux

package program

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// statusStarved is the exit status with which a program says that the network did
// not let it begin: an outcome, not a fault (EX_TEMPFAIL of sysexits.h).
const statusStarved = 75

// ahead is how far in the future a program's moment may be: its clock is ours,
// but its arithmetic is in floating point.
const ahead = vtime.Millisecond

// execSide is the part of this node's program in one flow.
type execSide struct {
	ep    *execEndpoint
	flow  proto.Flow
	side  proto.Side
	argv  []string
	sched transport.Schedule
	stop  vtime.Time
	epoch int64 // CLOCK_MONOTONIC at the run's moment 0, in ns
	// early is the program, where it was started before its goroutine.
	early *process

	mu       sync.Mutex
	meter    *meter
	received uint64
	counters counters
	spoken   bool
	result   proto.FlowResult
	// running is the program, while it runs, and lost one that was killed with its
	// node. dark is set while the node is switched off; woken gets a word when it no
	// longer is.
	running, lost *process
	dark          bool
	woken         chan struct{}
}

// begin starts a program that has to be there before the flow begins.
func (s *execSide) begin(sched transport.Schedule) error {
	s.sched, s.stop = sched, sched.FlowStop(&s.flow)
	s.epoch = probe.MonotonicNS() - int64(sched.Clock.Now())
	from, to := s.flow.Measured(sched.Warmup, sched.End)
	s.mu.Lock()
	s.meter = newMeter(from, to, s.flow.Start, s.flow.Workload.Size)
	s.mu.Unlock()
	var err error
	if s.received, err = receivedBytes(); err != nil {
		return err
	}
	if s.side == proto.Source {
		return nil
	}
	s.early, err = s.start()
	return err
}

func (s *execSide) start() (*process, error) {
	argv := append([]string(nil), s.argv...)
	argv[0] = place(argv[0], s.flow.Options.Program.Dir)
	p, err := s.ep.spawner.start(command{argv: argv, dir: s.flow.Options.Program.Dir, env: s.variables(), nested: true})
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: s.argv[0], Detail: err.Error()}
	}
	return p, nil
}

// run lets the program run until the flow's stop, and again whenever its node comes
// back.
func (s *execSide) run() {
	p := s.early
	if p == nil && !sock.SleepUntil(s.ep.ctx, s.sched.Clock, s.flow.Start) {
		return
	}
	for {
		if p == nil {
			var err error
			if p, err = s.start(); err != nil {
				s.fail(proto.CodeSystem, err.Error())
				return
			}
		}
		s.began(p)
		heard := make(chan error, 1)
		go func() {
			_, err := listen(p.out, s.take)
			if err != nil {
				p.signal(unix.SIGKILL)
				p.out.close()
			}
			heard <- err
		}()
		ended := s.wait(p.exited)
		p.stop()
		output := <-heard
		if !s.wasLost(p) {
			s.judge(p, ended, output)
			return
		}
		if !s.wait(s.woken) {
			return
		}
		p = nil
	}
}

// wait waits for what comes, the flow's stop or the end of the endpoint; false is
// one of the latter two.
func (s *execSide) wait(what <-chan struct{}) bool {
	timer := time.NewTimer(s.stop.Sub(s.sched.Clock.Now()).Std())
	defer timer.Stop()
	select {
	case <-what:
		return true
	case <-timer.C:
	case <-s.ep.ctx.Done():
	}
	return false
}

// began notes which program runs; on a node that is switched off none does.
func (s *execSide) began(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running = p; s.dark {
		s.lost = p
		p.signal(unix.SIGKILL)
	}
}

// wasLost tells whether a program that has ended was killed with its node.
func (s *execSide) wasLost(p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	return s.lost == p
}

// NodeDown implements transport.Restarter: the programs of relays are killed.
func (e *execEndpoint) NodeDown(vtime.Time) {
	for _, s := range e.sides {
		if s.side != proto.Relay {
			continue
		}
		s.mu.Lock()
		s.dark = true
		p := s.running
		if p != nil {
			s.lost = p
			p.signal(unix.SIGKILL)
		}
		s.mu.Unlock()
		if p != nil {
			<-p.exited
		}
	}
}

// NodeUp implements transport.Restarter: they are started again.
func (e *execEndpoint) NodeUp(vtime.Time) error {
	for _, s := range e.sides {
		if s.side != proto.Relay {
			continue
		}
		s.mu.Lock()
		s.dark = false
		s.mu.Unlock()
		select {
		case s.woken <- struct{}{}:
		default: // there is one already
		}
	}
	return nil
}

// take counts what the program says.
func (s *execSide) take(w saying) error {
	now := s.sched.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoken = true
	if err := s.counters.set(w.counters); err != nil || !w.hasBytes {
		return err
	}
	at := now
	if w.t > 0 {
		at = vtime.Time(int64(w.t*1e9) - s.epoch)
		if at > now.Add(ahead) {
			return fmt.Errorf("\"t\" is %v in the future", at.Sub(now))
		}
	}
	at = vtime.Max(at, s.flow.Start) // nothing came before that
	switch {
	case w.bytes < s.meter.total:
		return fmt.Errorf("\"bytes\" goes back from %d to %d: it is the total since the flow began", int64(s.meter.total), int64(w.bytes))
	case at < s.meter.at && w.t > 0:
		return fmt.Errorf("\"t\" goes back by %v", s.meter.at.Sub(at))
	}
	before := s.meter.finished
	s.meter.advance(vtime.Max(at, s.meter.at), w.bytes)
	if s.meter.finished != before && s.side == proto.Destination {
		s.ep.node.Event(proto.Event{Flow: s.flow.ID, Side: s.side, Kind: proto.Finished, T: s.meter.finished})
	}
	return nil
}

func (s *execSide) fail(code proto.Code, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.Error != nil {
		return
	}
	s.result.Error = &proto.Error{Code: code, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: detail}
	if code == proto.CodeTimeout {
		s.result.Error.What += " set-up"
	}
	s.ep.node.Event(proto.Event{Flow: s.flow.ID, Side: s.side, Kind: proto.Failed, T: s.sched.Clock.Now(), Error: s.result.Error})
}

// judge decides how the program's part ended. output is what was wrong with what
// it wrote.
func (s *execSide) judge(p *process, ended bool, output error) {
	now := s.sched.Clock.Now()
	s.mu.Lock()
	finished := s.meter.finished != vtime.Never
	total, spoken := s.meter.total, s.spoken
	until := vtime.Min(s.stop, now)
	if ended && !finished {
		until = s.meter.at
	}
	s.result.MeasuredFrom, s.result.MeasuredTo = s.meter.from, vtime.Max(s.meter.from, vtime.Min(s.meter.to, until))
	s.mu.Unlock()
	if s.ep.ctx.Err() != nil && now < s.stop {
		return // the run was stopped
	}
	early := ended && now < s.stop-vtime.Time(slack)
	status := p.status()
	asked := status == 128+int(unix.SIGTERM) || status == 128+int(unix.SIGKILL)
	received, err := receivedBytes()
	switch {
	case output != nil:
		s.fail(proto.CodeFlow, fmt.Sprintf("%s: %v", p.name, output))
	case status == statusStarved:
		s.fail(proto.CodeTimeout, p.name+" says that the network did not let it begin")
	case early && status != 0, !ended && status != 0 && !asked:
		s.fail(proto.CodeFlow, p.ended())
	case early && !finished && s.side == proto.Destination:
		s.fail(proto.CodeFlow, fmt.Sprintf("%s at %v, before the flow's stop at %v", p.ended(), short(now), short(s.stop)))
	case !spoken && s.side == proto.Destination:
		s.fail(proto.CodeFlow, p.name+" wrote nothing: a program that receives says {\"bytes\": 0} when it has nothing yet")
	case err == nil && s.side == proto.Destination && received >= s.received && uint64(total) > received-s.received:
		s.fail(proto.CodeFlow, fmt.Sprintf("%s says that %v arrived, but the node's interfaces received only %d B", p.name, total, received-s.received))
	}
}

// sample is what the program has said so far.
func (s *execSide) sample(now vtime.Time) (proto.Sample, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.flow.Start || s.meter == nil || !s.spoken || s.side == proto.Relay {
		return proto.Sample{}, false
	}
	o := proto.Sample{Flow: s.flow.ID, Side: s.side, T: now, Sparse: true}
	switch s.side {
	case proto.Source:
		o.Sent = s.meter.total
	case proto.Destination:
		o.Delivered = s.meter.total
	}
	return o, true
}

// outcome is the side's account, after Stop.
func (s *execSide) outcome() proto.FlowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.result
	r.Counters = s.counters
	if s.meter == nil {
		return r
	}
	r.Total = s.meter.total
	if s.side == proto.Destination {
		r.Bytes = s.meter.bytes()
	}
	if s.meter.finished != vtime.Never {
		r.Finished, r.FinishedAt = true, s.meter.finished
	}
	return r
}
