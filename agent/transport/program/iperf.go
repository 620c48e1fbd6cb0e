//go:build linux

package program

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Iperf3 is the driver of "iperf3/CC" and "iperf3/udp".
type Iperf3 struct{}

// Iperf2 is the driver of "iperf2/CC" and "iperf2/udp".
type Iperf2 struct{}

// Family returns "iperf3".
func (Iperf3) Family() string { return iperf3Tool.family }

// Family returns "iperf2".
func (Iperf2) Family() string { return iperf2Tool.family }

// Wanted is false: the kernel forwards.
func (Iperf3) Wanted(*transport.Node) bool { return false }

// Wanted is false: the kernel forwards.
func (Iperf2) Wanted(*transport.Node) bool { return false }

// Check refuses workloads that the program does not carry and the options of
// other transports.
func (Iperf3) Check(f *proto.Flow) error { return iperf3Tool.check(f) }

// Check refuses workloads that the program does not carry and the options of
// other transports.
func (Iperf2) Check(f *proto.Flow) error { return iperf2Tool.check(f) }

// Open looks for the program and its version.
func (Iperf3) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	return openIperf(&iperf3Tool, n, flows)
}

// Open looks for the program and its version.
func (Iperf2) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	return openIperf(&iperf2Tool, n, flows)
}

// Available says whether this host has the program of a transport's family, with
// its version. The error of a program that is missing has the code
// proto.CodeUnavailable. Families that are no program of this package have no
// error.
func Available(family string) (version string, err error) {
	for _, t := range []*tool{&iperf3Tool, &iperf2Tool} {
		if t.family == family {
			v, err := t.find()
			return v.text, err
		}
	}
	return "", nil
}

// askWithin bounds the question for a version.
const askWithin = 5 * time.Second

// found are the versions of programs by path: they do not change while an agent
// lives, and every flow asks.
var found sync.Map

// find looks the program up and asks for its version.
func (t *tool) find() (version, error) {
	path, err := exec.LookPath(t.program)
	if err != nil {
		return version{}, missing(t.program, t.pack)
	}
	if v, ok := found.Load(path); ok {
		return v.(version), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Args[0], cmd.WaitDelay = t.program, time.Second
	cmd.Env = environment([]string{"LC_ALL=C"})
	out, runErr := cmd.CombinedOutput() // iperf2 says its version on its standard error, with the status 1
	v, err := parseVersion(string(out))
	if err != nil {
		e := &proto.Error{Code: proto.CodeUnavailable, What: t.program, Detail: path + ": " + err.Error(), Remedy: "apt install " + t.pack}
		var exit *exec.ExitError
		if runErr != nil && !errors.As(runErr, &exit) {
			e.Detail = path + " --version: " + runErr.Error()
		}
		return v, e
	}
	if v.major != t.major {
		return v, &proto.Error{Code: proto.CodeUnavailable, What: t.program, Detail: fmt.Sprintf("%s is %s, and version %d is needed", path, v.text, t.major), Remedy: "apt install " + t.pack}
	}
	found.Store(path, v)
	return v, nil
}

// iperfEndpoint is the node's part in all flows of one program.
type iperfEndpoint struct {
	tool    *tool
	version version
	node    *transport.Node
	spawner *spawner
	sides   []*iperfSide

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
}

func openIperf(t *tool, n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	v, err := t.find()
	if err != nil {
		return nil, inFlow(err, flows[0].ID)
	}
	e := &iperfEndpoint{tool: t, version: v, node: n, spawner: newSpawner()}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, f := range flows {
		side, _ := n.Side(&f)
		if side == proto.Relay {
			continue
		}
		s := &iperfSide{ep: e, flow: f, side: side, test: test{flow: &f, version: v}}
		if !s.test.udp() {
			if err := sock.HasCC(s.test.cc()); err != nil {
				return nil, inFlow(errors.Join(err, e.Close()), f.ID)
			}
		}
		e.sides = append(e.sides, s)
	}
	return e, nil
}

// inFlow names the flow in an error.
func inFlow(err error, flow int) error {
	e := *proto.AsError(err, proto.CodeSystem)
	e.What = fmt.Sprintf("flow %d: %s", flow, e.What)
	return &e
}

// Setups says which version carries the flows.
func (e *iperfEndpoint) Setups() []proto.FlowSetup {
	var out []proto.FlowSetup
	for _, s := range e.sides {
		out = append(out, proto.FlowSetup{Flow: s.flow.ID, Side: s.side, Program: e.version.text})
	}
	return out
}

// Start starts the servers, and schedules the clients.
func (e *iperfEndpoint) Start(sched transport.Schedule) error {
	for _, s := range e.sides {
		if err := s.begin(sched); err != nil {
			return inFlow(err, s.flow.ID)
		}
	}
	for _, s := range e.sides {
		if s.side == proto.Destination {
			e.wg.Go(s.serve)
		} else {
			e.wg.Go(s.send)
		}
	}
	return nil
}

// Sample appends nothing: the program reports at its end, or late.
func (e *iperfEndpoint) Sample(_ vtime.Time, to []proto.Sample) []proto.Sample { return to }

// Recorded appends what the program reported, one sample for each interval.
func (e *iperfEndpoint) Recorded(to []proto.Sample) []proto.Sample {
	for _, s := range e.sides {
		to = s.samples(to)
	}
	return to
}

// Stop ends the programs, in about a second at most.
func (e *iperfEndpoint) Stop() {
	e.cancel()
	e.wg.Wait()
}

// Results returns one result per flow.
func (e *iperfEndpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, s := range e.sides {
		out = append(out, s.result)
	}
	return out
}

// Facts adds nothing: the namespace's counters are read for all transports.
func (e *iperfEndpoint) Facts(*proto.NodeFacts) {}

// Close ends what still runs.
func (e *iperfEndpoint) Close() error {
	e.Stop()
	e.once.Do(e.spawner.close)
	return nil
}

// iperfSide is this node's part in one flow. After begin only its own goroutine
// touches it, until Stop has returned.
type iperfSide struct {
	ep    *iperfEndpoint
	flow  proto.Flow
	side  proto.Side
	sched transport.Schedule
	stop  vtime.Time
	test  test

	received uint64 // by the node's interfaces before, in bytes
	report   *report
	result   proto.FlowResult
}

func (s *iperfSide) begin(sched transport.Schedule) (err error) {
	s.sched, s.stop = sched, sched.FlowStop(&s.flow)
	s.test.flow = &s.flow
	length := s.stop.Sub(s.flow.Start)
	if most := s.ep.tool.longest; most > 0 && length > most-minute {
		return &proto.Error{Code: proto.CodeOrder, What: s.ep.tool.program, Detail: fmt.Sprintf("the flow takes %v, and %s tests for %v at most", length, s.ep.tool.program, most)}
	}
	s.test.every = everyOf(length, s.ep.node.SampleInterval)
	s.report = &report{}
	s.result = proto.FlowResult{Flow: s.flow.ID, Side: s.side}
	s.received, err = receivedBytes()
	return err
}

const minute = 60 * vtime.Second

// start starts the program; what it writes is read in the background until done
// is closed.
func (s *iperfSide) start(argv []string) (p *process, r reader, done chan struct{}, err error) {
	p, err = s.ep.spawner.start(command{argv: argv, env: []string{"LC_ALL=C"}})
	if err != nil {
		return nil, nil, nil, &proto.Error{Code: proto.CodeSystem, What: argv[0], Detail: err.Error()}
	}
	r = s.ep.tool.reader(s.side == proto.Destination, s.ep.version, s.sched.Clock.Now)
	done = make(chan struct{})
	go func() {
		r.read(p.out)
		close(done)
	}()
	return p, r, done, nil
}

// wait waits until the program has ended, a moment has come, or the endpoint is
// stopped; ended is true in the first case.
func (s *iperfSide) wait(p *process, until vtime.Time) (ended bool) {
	timer := time.NewTimer(until.Sub(s.sched.Clock.Now()).Std())
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
	case <-s.ep.ctx.Done():
	}
	return false
}

// fail records why the flow's figures cannot be used.
func (s *iperfSide) fail(code proto.Code, detail string) {
	if s.result.Error != nil {
		return
	}
	s.result.Error = &proto.Error{Code: code, What: fmt.Sprintf("flow %d", s.flow.ID), Detail: detail}
	s.ep.node.Event(proto.Event{Flow: s.flow.ID, Side: s.side, Kind: proto.Failed, T: s.sched.Clock.Now(), Error: s.result.Error})
}

// at is a moment of the test on the run's clock.
func (s *iperfSide) at(d vtime.Duration) vtime.Time {
	return vtime.Max(s.report.begin, s.flow.Start).Add(d)
}

// samples appends the report as samples.
func (s *iperfSide) samples(to []proto.Sample) []proto.Sample {
	if s.report == nil {
		return to
	}
	var bytes vtime.Bytes
	var retransmits, packets, lost int64
	for i := range s.report.intervals {
		v := &s.report.intervals[i]
		bytes, retransmits = bytes+v.bytes, retransmits+v.retransmits
		packets, lost = packets+v.packets, lost+min(v.lost, v.packets)
		o := proto.Sample{Flow: s.flow.ID, Side: s.side, T: s.at(v.to), Sparse: true}
		if s.side == proto.Destination {
			o.Delivered, o.Datagrams, o.DatagramsLost = bytes, packets-lost, lost
		} else {
			o.Sent, o.RetransPackets, o.SRTT, o.RTTVar, o.DatagramsSent = bytes, retransmits, v.rtt, v.rttvar, packets
			if s.report.mss > 0 {
				o.CwndPackets = int64(math.Round(float64(v.cwnd) / float64(s.report.mss)))
			}
		}
		to = append(to, o)
	}
	return to
}
