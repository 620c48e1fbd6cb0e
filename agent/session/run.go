//go:build linux

package session

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// clock is the run's time on this host.
type clock struct{ epoch int64 }

func (c clock) Now() vtime.Time { return vtime.Time(probe.MonotonicNS() - c.epoch) }

// start schedules the flows.
func (s *session) start(st proto.Start) error {
	if err := s.need(proto.TypeStart, configured); err != nil {
		return err
	}
	if st.Warmup < 0 || st.End <= st.Warmup {
		return &proto.Error{Code: proto.CodeOrder, What: "start", Detail: fmt.Sprintf("the measured interval [%v, %v) is empty", st.Warmup, st.End)}
	}
	c := clock{st.EpochNS}
	if late := c.Now(); late > 0 {
		return &proto.Error{Code: proto.CodeTimeout, What: "start", Detail: fmt.Sprintf("the run's moment 0 was %v ago: the order came too late", vtime.Duration(late)),
			Remedy: "the controller should leave more time, or the host is overloaded"}
	}
	s.endProbes() // a measurement nobody asked about
	counters, err := probe.ReadCounters()
	if err != nil {
		return err
	}
	s.counters, s.host = counters, probe.ReadHost()
	sched := transport.Schedule{Clock: c, Warmup: st.Warmup, End: st.End}
	s.mu.Lock()
	for _, ep := range s.endpoints {
		if err = ep.Start(sched); err != nil {
			break
		}
	}
	s.mu.Unlock()
	s.state = running
	if err != nil {
		s.stopFlows()
		return err
	}
	every := s.cfg.SampleInterval
	if every == 0 {
		every = interval
	}
	if len(s.cfg.Flows) == 0 {
		every = max(every, idleInterval)
	}
	s.sampler = &sampler{s: s, clock: c, every: every, end: st.End, stop: make(chan struct{}), done: make(chan struct{})}
	go s.sampler.run()
	s.startPulse(c, st.Warmup, st.End)
	s.startTally(c, st.Warmup, st.End)
	s.startSwitches(c, st.End)
	return nil
}

// stopFlows ends sampling and every flow, and takes the facts. It takes about
// a second at most and may be called at any time.
func (s *session) stopFlows() {
	if s.state != running {
		return
	}
	if s.sampler != nil {
		close(s.sampler.stop)
		<-s.sampler.done
		s.sampler.lateness(&s.facts)
		s.sampler = nil
	}
	s.stopPulse()
	s.stopTally()
	s.stopSwitches()
	s.mu.Lock()
	var wg sync.WaitGroup
	for _, ep := range s.endpoints {
		wg.Go(ep.Stop)
	}
	wg.Wait()
	s.sendRecorded()
	for s.sendMessages(s.messages()) {
	}
	probe.ReadHost().Since(s.host, &s.facts)
	if after, err := probe.ReadCounters(); err != nil {
		s.facts.Missing = append(s.facts.Missing, "protocol counters: "+err.Error())
	} else {
		s.facts.Counters = after.Since(s.counters)
	}
	for _, ep := range s.endpoints {
		ep.Facts(&s.facts)
	}
	s.mu.Unlock()
	s.state = stopped
}

// sendRecorded sends the samples that are known only now.
func (s *session) sendRecorded() {
	var late []proto.Sample
	for _, ep := range s.endpoints {
		if r, ok := ep.(transport.Recorder); ok {
			late = r.Recorded(late)
		}
	}
	for part := range slices.Chunk(late, maxBatch) {
		// The reader of orders sees a broken stream.
		_ = s.srv.Send(proto.TypeSamples, proto.Samples{Node: s.cfg.Node, Samples: part})
	}
}

// messages returns a batch of what became of messages. The caller holds mu.
func (s *session) messages() (batch []proto.Message) {
	for _, ep := range s.endpoints {
		if r, ok := ep.(transport.Reporter); ok {
			batch = r.Messages(batch, proto.MaxMessages)
		}
	}
	return batch
}

// sendMessages sends a batch; false when there is nothing in it.
func (s *session) sendMessages(batch []proto.Message) bool {
	if len(batch) == 0 {
		return false
	}
	// The reader of orders sees a broken stream.
	_ = s.srv.Send(proto.TypeSamples, proto.Samples{Node: s.cfg.Node, Samples: []proto.Sample{}, Messages: batch})
	return true
}

// maxBatch bounds a batch of late samples: a sample is some hundred bytes, a
// message at most proto.MaxLine.
const maxBatch = 2000

// sampler takes a sample of every flow at each multiple of the interval, until
// the end of the run, and sends them once a second.
type sampler struct {
	s          *session
	clock      clock
	every      vtime.Duration
	end        vtime.Time
	stop, done chan struct{}
	late       []vtime.Duration // of each round
}

// idleInterval is the time between the rounds of a node without flows: they
// only measure how late its timers are.
const idleInterval = vtime.Second

// lateness fills the sampler's part of the facts.
func (p *sampler) lateness(f *proto.NodeFacts) {
	f.Samples = len(p.late)
	if len(p.late) == 0 {
		return
	}
	slices.Sort(p.late)
	f.SampleLateP99 = p.late[(len(p.late)-1)*99/100]
	f.SampleLateMax = p.late[len(p.late)-1]
}

// batchEvery is the time between two batches.
const batchEvery = vtime.Second

// relayEvery is the least time between two samples of a flow at a relay. Ends
// are sampled at the interval of the order; relays outnumber them, and their
// queues matter over seconds: at 100 ms they were two thirds of a mesh's rows.
const relayEvery = vtime.Second

func (p *sampler) run() {
	defer close(p.done)
	var batch []proto.Sample
	flush := func() {
		if len(batch) > 0 {
			// The reader of orders sees a broken stream.
			_ = p.s.srv.Send(proto.TypeSamples, proto.Samples{Node: p.s.cfg.Node, Samples: batch})
			batch = batch[:0]
		}
		for {
			// Not under the lock, because the controller may not read.
			p.s.mu.Lock()
			messages := p.s.messages()
			p.s.mu.Unlock()
			if !p.s.sendMessages(messages) {
				return
			}
		}
	}
	defer flush()
	next, sent, relays := vtime.Time(0), vtime.Time(0), vtime.Time(0)
	for next <= p.end {
		timer := time.NewTimer(next.Sub(p.clock.Now()).Std())
		select {
		case <-timer.C:
		case <-p.stop:
			timer.Stop()
			return
		}
		now := p.clock.Now()
		p.late = append(p.late, now.Sub(next))
		p.s.mu.Lock()
		old := len(batch)
		for _, ep := range p.s.endpoints {
			batch = ep.Sample(now, batch)
		}
		p.s.mu.Unlock()
		if next < relays {
			kept := slices.DeleteFunc(batch[old:], func(s proto.Sample) bool { return s.Side == proto.Relay })
			batch = batch[:old+len(kept)]
		} else {
			relays = next.Add(relayEvery)
		}
		if now.Sub(sent) >= batchEvery {
			flush()
			sent = now
		}
		// A moment that has passed is left out: its sample would only repeat
		// this one's.
		for next = next.Add(p.every); next <= now && next <= p.end; {
			next = next.Add(p.every)
		}
	}
}
