//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// session is the live state of one scenario: nodes and what joins them. A run
// brings it up, configures it, measures and closes it; what only needs the
// network (link probes, a network kept standing) leaves the measuring out.
type session struct {
	b       *Backend
	s       *plan.Scenario
	rec     *store.RunRecord // facts, warnings and the verdict go there
	fabric  fabric
	driver  node.Driver
	handles []node.Handle
	clients []*proto.Client
	hellos  []proto.HelloReply
	clocks  []clock
	gather  *gatherer
	tell    backend.Progress
	quiet   context.CancelFunc // ends the heartbeats; nil: there are none
}

// newSession prepares a session; nothing exists before up. Whoever has called up
// calls close, whatever up returned. tell may be nil, as may c.
func (b *Backend) newSession(s *plan.Scenario, tell backend.Progress, c *backend.Capture) *session {
	if tell == nil {
		tell = func(string, vtime.Duration, vtime.Duration) {}
	}
	r := &session{b: b, s: s, tell: tell, gather: newGatherer(s)}
	if b.opt.Lab != nil {
		r.fabric = b.newReal(s, c)
	} else {
		r.fabric = &emulated{b: b, s: s, capture: c}
	}
	r.rec = backend.NewRecord(s, func(i int) string { return r.fabric.addr(i).String() })
	maps.Copy(r.rec.Run.Facts, b.opt.Facts)
	return r
}

// within bounds a phase; who waits beyond it is told what that means.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("nothing within %v: it hangs, it was stopped, or the host is starved", d))
}

// start brings the network up and makes the nodes those of the run.
func (r *session) start(ctx context.Context) error {
	ctx, cancel := within(ctx, r.b.limits.start)
	defer cancel()
	if err := r.up(ctx); err != nil {
		return err
	}
	_, err := r.configure(ctx, backend.Orders(r.s, r.fabric.addr))
	return err
}

// up starts the nodes and what joins them, and greets every agent.
func (r *session) up(ctx context.Context) error {
	r.tell(fmt.Sprintf("start %d nodes", len(r.s.Topology.Nodes)), 0, 0)
	specs, err := r.fabric.specs()
	if err != nil {
		return err
	}
	if r.driver, err = r.fabric.driver(); err != nil {
		return err
	}
	if r.handles, err = r.driver.Start(ctx, specs); err != nil {
		return err
	}
	for i, h := range r.handles {
		c := proto.NewClient(h.Conn())
		r.clients = append(r.clients, c)
		r.gather.drains.Add(1)
		go r.gather.drain(i, h.Name(), c)
		go r.watch(h)
	}
	r.hellos = make([]proto.HelloReply, len(r.clients))
	err = r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		var err error
		r.hellos[i], err = c.Hello(ctx, proto.Hello{Controller: r.b.opt.Controller, Tag: r.b.opt.Tag, Watchdog: r.b.opt.Watchdog})
		return err
	})
	if err != nil {
		return err
	}
	if r.b.opt.Watchdog > 0 {
		var beating context.Context
		beating, r.quiet = context.WithCancel(context.Background())
		for i := range r.clients {
			go r.beat(beating, i)
		}
	}
	if err := r.readClocks(ctx); err != nil {
		return err
	}
	r.raiseAgents()
	return r.fabric.start(ctx, r)
}

// configure makes every node that of the scenario, with these flows, and
// returns what was read back. What was read back is in the record's facts.
func (r *session) configure(ctx context.Context, flows []proto.Flow) ([]*proto.Readback, error) {
	r.tell("configure", 0, 0)
	readbacks := make([]*proto.Readback, len(r.clients))
	err := r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		cfg, err := r.fabric.order(i, flows)
		if err != nil {
			return err
		}
		readbacks[i], err = c.Configure(ctx, cfg)
		return err
	})
	unverified := map[int][]string{}
	for i, rb := range readbacks {
		if rb != nil {
			applyReadback(r.rec, i, rb)
			unverified[i] = radioFacts(r.rec.Nodes[i].Facts, rb.Radio)
		}
	}
	warnUnverified(&r.rec.Run, r.rec.Nodes, unverified)
	return readbacks, err
}

// each calls f for every agent in parallel and returns the first error, with
// the node's name.
func (r *session) each(ctx context.Context, f func(context.Context, int, *proto.Client) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(64)
	for i, c := range r.clients {
		g.Go(func() error {
			err := f(ctx, i, c)
			var named *proto.Error
			if err != nil && !(errors.As(err, &named) && named.Node != "") {
				err = fmt.Errorf("node %s: %w", r.handles[i].Name(), err)
			}
			return err
		})
	}
	return g.Wait()
}

// watch reports an agent that ends on its own.
func (r *session) watch(h node.Handle) {
	<-h.Done()
	if err := h.Err(); err != nil {
		r.gather.fail(err)
	}
}

// revert makes every node what it was.
func (r *session) revert(ctx context.Context) error {
	return r.each(ctx, func(ctx context.Context, _ int, c *proto.Client) error {
		rv, err := c.Revert(ctx)
		if err == nil && len(rv.Failed) > 0 {
			err = &rv.Failed[0]
		}
		return err
	})
}

// close removes everything that the run made. When the user has asked to stop
// it does not wait for politeness.
func (r *session) close(ctx context.Context) error {
	limit := closeTimeout
	if ctx.Err() != nil {
		limit = hurriedClose
	}
	cctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs []error
	if r.quiet != nil {
		r.quiet()
	}
	r.fabric.kill()
	for _, c := range r.clients {
		_ = c.Close() // the end of its input is the agent's order to revert and exit
	}
	if r.driver != nil {
		errs = append(errs, r.driver.Close(cctx))
	}
	errs = append(errs, r.fabric.close())
	return errors.Join(errs...)
}

// explain prefers the failure of an agent or of the emulator to what followed
// from it, such as an order that could not be delivered.
func (r *session) explain(err error) error {
	var gone *proto.Gone
	if errors.As(err, &gone) {
		// A conversation ends before its process does.
		select {
		case <-r.gather.failed:
		case <-time.After(300 * time.Millisecond):
		}
	}
	if cause := r.gather.failure(); err != nil && cause != nil && !errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// keepLastWords keeps what the agents wrote to standard error with a failed
// run.
func (r *session) keepLastWords() {
	for i, h := range r.handles {
		if text := h.Stderr(); text != "" {
			r.rec.Events = append(r.rec.Events, store.Event{Node: store.Some(int64(i)), Kind: "stderr", Text: text})
		}
	}
}

// monotonic reads CLOCK_MONOTONIC in nanoseconds: the clock that the agents and
// the emulator on this host share.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		// The clock exists on every Linux; without it nothing here can work.
		fmt.Fprintln(os.Stderr, "hopbed: CLOCK_MONOTONIC:", err)
		os.Exit(1)
	}
	return ts.Nano()
}
