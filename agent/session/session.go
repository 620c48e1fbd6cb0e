//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/linkprobe/probenode"
	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/route"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/internal/procfs"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Options are what the program gives to its session.
type Options struct {
	Version    string // of the program, for the controller's log
	Transports *transport.Table
	// Guarded is where the changes outlive the agent; nil: they end with it, as
	// those of a namespace of its own do.
	Guarded *undo.Worker
	// GiveUp ends the process when its end takes too long; nil: it may take.
	GiveUp func(why string)
}

// state is how far the conversation has come.
type state int

const (
	fresh      state = iota // hello must come
	greeted                 // may be configured
	configured              // may be started
	running                 // flows are scheduled
	stopped                 // may be collected
)

func (s state) String() string {
	return [...]string{"not greeted", "not configured", "configured", "running", "stopped"}[s]
}

type session struct {
	opt   Options
	srv   *proto.Server
	heard *heard

	greeted   atomic.Bool    // hello came …
	watchdog  vtime.Duration // … with this; 0 = none
	watched   bool
	state     state
	cfg       *proto.Configure
	sysctls   []proto.Sysctl // those ordered and those derived from them
	links     map[string]int // indices of the interfaces and the bridge
	caps      route.Caps     // of congestion windows
	undo      *undo.Stack
	claims    claims          // of interfaces, against other agents
	name      string          // of the node, in what it says
	probes    *probenode.Node // of the links; nil: none
	view      *board.View     // queue board, once it was given …
	viewPipes []int           // … with these queues of wired interfaces

	// mu serialises the use of endpoints between orders and the sampler.
	mu        sync.Mutex
	endpoints []transport.Endpoint
	sampler   *sampler
	pulse     *pulse    // nil: no messages here
	switcher  *switcher // nil: the node stays on

	counters probe.Counters
	tally    *tally // counts the kernel's emulation in the measured interval
	host     probe.Host
	facts    proto.NodeFacts

	dropped atomic.Int64 // events and logs that found the outbox full, or were too many
	logged  atomic.Int64 // lines of the flows in this run
	outbox  chan message
	ended   chan struct{}
	flushed sync.WaitGroup
}

// Run speaks the protocol over in and out until the controller says bye, in
// ends, the controller is silent for longer than its watchdog, ctx ends, or the
// conversation breaks. It then has stopped every flow and put back what it
// changed. The error is nil after bye and after the end of in.
func Run(ctx context.Context, in io.Reader, out io.Writer, opt Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := newOutlet(out)
	defer o.abandon()
	context.AfterFunc(ctx, o.hurry)
	h := &heard{Reader: in}
	s := &session{opt: opt, srv: proto.NewServer(h, o), heard: h, outbox: make(chan message, 4096), ended: make(chan struct{})}
	defer close(s.ended)
	go s.post()
	var keepers []undo.Keeper
	if g := opt.Guarded; g != nil {
		keepers = g.Keepers()
		go func() {
			select {
			case <-g.Lost():
				cancel(errors.New("the guardian process was killed: everything is put back and the agent ends"))
			case <-s.ended:
			}
		}()
	}
	s.undo = undo.NewStack(undoers(&s.caps), func(err error) { s.log("warn", err.Error()) }, keepers...)
	end := &limit{giveUp: opt.GiveUp}
	defer end.end()
	context.AfterFunc(ctx, func() { end.enter(stopping) })

	// The buffer lets the end of the input be seen while an order waits for a
	// controller that does not read its reply.
	orders, readings := make(chan proto.Envelope, 1024), make(chan reading, 16)
	go s.tellTime(readings, s.ended)
	go func() {
		defer close(orders)
		for {
			e, err := s.srv.Next()
			if err != nil {
				// An order that is being carried out must see this, too.
				cancel(err)
				return
			}
			if e.Type == proto.TypeClock && s.greeted.Load() {
				select {
				case readings <- reading{e, readClock()}:
					continue
				default: // nobody reads the answers: in turn, then
				}
			}
			select {
			case orders <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	bye := false
	for !bye {
		select {
		case e, ok := <-orders:
			if !ok {
				orders = nil // ctx is done
				continue
			}
			var err error
			if bye, err = s.order(ctx, e); err != nil {
				cancel(err)
			}
			if e.Type == proto.TypeHello && s.watchdog > 0 && !s.watched {
				s.watched = true
				go s.watch(ctx, s.watchdog, cancel)
			}
			continue
		case <-ctx.Done():
		}
		break
	}
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*proto.Error](cause); ok && e.Code == proto.CodeTimeout {
		// Where the network is only slow, the controller learns why.
		_ = s.srv.Send(proto.TypeFailure, proto.Failure{Node: s.nodeID(), Error: *e})
	}
	s.stopFlows()
	end.enter(reverting)
	for _, e := range s.revert().Failed {
		s.log("warn", "revert: "+e.Error())
	}
	end.enter(leaving)
	s.flush()
	if g := opt.Guarded; g != nil {
		if err := g.Finish(s.undo.Len()); err != nil {
			return err
		}
	}
	if !bye && cause != nil && !errors.Is(cause, io.EOF) && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// order carries out one order and answers it. An error means that the
// controller cannot be spoken to any more.
func (s *session) order(ctx context.Context, e proto.Envelope) (bye bool, err error) {
	body, failure := s.execute(ctx, e)
	if failure != nil {
		f := *proto.AsError(failure, proto.CodeSystem)
		if f.Node == "" && s.cfg != nil {
			f.Node = s.cfg.Name
		}
		return false, s.srv.Fail(e, &f)
	}
	if e.Type == proto.TypeBye {
		// What is left is put back before the reply, so that the controller may
		// kill the agent when it has it.
		s.stopFlows()
		if failed := s.revert().Failed; len(failed) > 0 {
			return true, s.srv.Fail(e, &failed[0])
		}
		s.flush()
		return true, s.srv.Reply(e, nil)
	}
	return false, s.srv.Reply(e, body)
}

func (s *session) execute(ctx context.Context, e proto.Envelope) (any, error) {
	if e.Type != proto.TypeHello && s.state == fresh {
		return nil, &proto.Error{Code: proto.CodeOrder, What: string(e.Type), Detail: "hello must come first"}
	}
	switch e.Type {
	case proto.TypeHello:
		var h proto.Hello
		if err := proto.DecodeBody(e, &h); err != nil {
			return nil, err
		}
		if h.Watchdog != 0 && h.Watchdog < minWatchdog {
			return nil, &proto.Error{Code: proto.CodeOrder, What: "watchdog", Got: h.Watchdog.String(), Detail: fmt.Sprintf("want 0 (none) or %v and more", minWatchdog)}
		}
		switch {
		case s.state == fresh:
			s.state, s.watchdog = greeted, h.Watchdog
		case h.Watchdog != s.watchdog:
			return nil, &proto.Error{Code: proto.CodeOrder, What: "watchdog", Wanted: h.Watchdog.String(), Got: s.watchdog.String(), Detail: "the first hello decides"}
		}
		s.greeted.Store(true)
		return hello(s.opt.Version)
	case proto.TypeConfigure:
		c := new(proto.Configure)
		if err := proto.DecodeBody(e, c); err != nil {
			return nil, err
		}
		return s.configure(ctx, c)
	case proto.TypeProbe:
		var p proto.Probe
		if err := proto.DecodeBody(e, &p); err != nil {
			return nil, err
		}
		return nil, s.startProbes(p)
	case proto.TypeStart:
		var st proto.Start
		if err := proto.DecodeBody(e, &st); err != nil {
			return nil, err
		}
		return nil, s.start(st)
	}
	if err := proto.DecodeBody(e, nil); err != nil {
		return nil, err
	}
	switch e.Type {
	case proto.TypeReadback:
		if err := s.need(e.Type, configured, running, stopped); err != nil {
			return nil, err
		}
		return s.readback(ctx)
	case proto.TypeClock:
		return readClock(), nil
	case proto.TypeHeard:
		return s.heardProbes()
	case proto.TypeStop:
		if err := s.need(e.Type, running, stopped); err != nil {
			return nil, err
		}
		s.stopFlows()
		return nil, nil
	case proto.TypeCollect:
		if err := s.need(e.Type, stopped); err != nil {
			return nil, err
		}
		return s.collect(), nil
	case proto.TypeRevert:
		s.stopFlows()
		return s.revert(), nil
	case proto.TypeBye:
		return nil, nil
	}
	return nil, &proto.Error{Code: proto.CodeOrder, What: string(e.Type), Detail: "this agent does not know the order"}
}

func (s *session) need(order proto.Type, states ...state) error {
	var names []string
	for _, st := range states {
		if s.state == st {
			return nil
		}
		names = append(names, st.String())
	}
	return &proto.Error{Code: proto.CodeOrder, What: string(order), Wanted: "a node that is " + strings.Join(names, " or "), Got: "a node that is " + s.state.String()}
}

func hello(version string) (*proto.HelloReply, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "uname", Detail: err.Error()}
	}
	ccs, err := readSysctl("net.ipv4.tcp_available_congestion_control")
	if err != nil {
		return nil, err
	}
	boot, err := procfs.BootID()
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeUnavailable, What: "boot id", Detail: err.Error(), Remedy: "mount /proc"}
	}
	ifaces, err := interfaces()
	if err != nil {
		return nil, err
	}
	return &proto.HelloReply{
		Agent: version, PID: os.Getpid(), Kernel: unix.ByteSliceToString(u.Release[:]), Machine: unix.ByteSliceToString(u.Machine[:]),
		CPUs: runtime.NumCPU(), CongestionControls: strings.Fields(ccs), MonotonicNS: probe.MonotonicNS(),
		Nice: niceness(), BootID: boot, UID: os.Geteuid(), Interfaces: ifaces,
	}, nil
}

// collect gathers the results; the flows have stopped.
func (s *session) collect() *proto.Results {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &proto.Results{Node: s.cfg.Node, Flows: []proto.FlowResult{}, Facts: s.facts}
	for _, ep := range s.endpoints {
		r.Flows = append(r.Flows, ep.Results()...)
	}
	for i := range r.Flows {
		if e := r.Flows[i].Error; e != nil && e.Node == "" {
			e.Node = s.cfg.Name
		}
	}
	return r
}

// revert closes the transports and undoes the configuration.
func (s *session) revert() proto.Reverted {
	s.mu.Lock()
	eps := s.endpoints
	s.endpoints = nil
	s.mu.Unlock()
	var failed []proto.Error
	s.endProbes()
	for _, ep := range eps {
		if err := ep.Close(); err != nil {
			failed = append(failed, *proto.AsError(err, proto.CodeSystem))
		}
	}
	r := s.putBack(context.Background())
	r.Failed = append(failed, r.Failed...)
	s.claims.drop() // not before everything is as it was
	s.cfg, s.sysctls = nil, nil
	s.facts = proto.NodeFacts{}
	s.logged.Store(0)
	if s.state != fresh {
		s.state = greeted
	}
	return r
}

// interval is the default time between samples.
const interval = 100 * vtime.Millisecond
