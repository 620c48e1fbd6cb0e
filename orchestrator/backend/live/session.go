//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/board"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// session is one run's live state.
type session struct {
	b       *Backend
	s       *plan.Scenario
	rec     *store.RunRecord
	board   *board.Board
	driver  node.Driver
	handles []node.Handle
	clients []*proto.Client
	emu     *emulator.Proc
	gather  *gatherer
	tell    backend.Progress
	capture *backend.Capture // nil: none
}

// within bounds a phase; who waits beyond it is told what that means.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("nothing within %v: it hangs, it was stopped, or the host is starved", d))
}

// start brings the nodes and the medium up and configures every node.
func (r *session) start(ctx context.Context) error {
	ctx, cancel := within(ctx, r.b.limits.start)
	defer cancel()
	n := len(r.s.Topology.Nodes)
	r.tell(fmt.Sprintf("start %d nodes", n), 0, 0)
	var err error
	if r.board, err = board.Create(n, len(r.s.Topology.Pipes)); err != nil {
		return err
	}
	if r.driver, err = r.b.opt.NewDriver(); err != nil {
		return err
	}
	specs := make([]node.Spec, n)
	for i, nd := range r.s.Topology.Nodes {
		files, err := r.board.NodeFiles(i)
		if err != nil {
			return err
		}
		specs[i] = node.Spec{ID: i, Name: nd.Name, Files: files}
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
	err = r.each(ctx, func(ctx context.Context, _ int, c *proto.Client) error {
		_, err := c.Hello(ctx, proto.Hello{Controller: r.b.opt.Controller, Tag: r.b.opt.Tag})
		return err
	})
	if err != nil {
		return err
	}
	r.raiseAgents()
	r.tell("start the medium", 0, 0)
	if err := r.startEmulator(ctx); err != nil {
		return err
	}
	r.tell("configure", 0, 0)
	flows := backend.Orders(r.s, tap.Addr)
	readbacks := make([]*proto.Readback, n)
	err = r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		cfg, err := configureNode(r.s, i, flows)
		if err != nil {
			return err
		}
		readbacks[i], err = c.Configure(ctx, cfg)
		return err
	})
	for i, rb := range readbacks {
		if rb != nil {
			applyReadback(r.rec, i, rb)
		}
	}
	return err
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

func (r *session) startEmulator(ctx context.Context) error {
	cfg := emulatorConfig(r.s, r.handles)
	var err error
	opt := emulator.Options{Board: r.board, Env: r.b.opt.Env, Journal: r.b.opt.Journal}
	if c := r.capture; c != nil {
		cfg.Capture = &emulator.Capture{SnapLen: c.SnapLen, At: c.At, Comment: c.Comment}
		opt.Packets, opt.Events = c.Packets, c.Events
	}
	r.emu, err = emulator.Start(ctx, cfg, opt)
	if err != nil {
		return err
	}
	go func() {
		<-r.emu.Done()
		if err := r.emu.Err(); err != nil {
			r.gather.fail(err)
		}
	}()
	return nil
}

// measure starts the flows on one schedule, waits, and collects.
func (r *session) measure(ctx context.Context) error {
	c := r.s.Config()
	from, to := vtime.Time(c.Warmup), vtime.Time(c.Warmup+c.Duration)
	epoch := monotonic() + startLead.Nanoseconds()
	if err := r.emu.Begin(ctx, epoch, from, to); err != nil {
		return err
	}
	err := r.each(ctx, func(ctx context.Context, _ int, cl *proto.Client) error {
		return cl.Start(ctx, proto.Start{EpochNS: epoch, Warmup: from, End: to})
	})
	if err != nil {
		return err
	}
	if late := monotonic() - epoch; late > 0 {
		r.rec.Run.InvalidReasons = append(r.rec.Run.InvalidReasons,
			fmt.Sprintf("the start order reached the last node %v after the flows' common start", time.Duration(late).Round(time.Millisecond)))
	}
	if err := r.waitUntil(ctx, epoch, to); err != nil {
		return err
	}
	r.tell("collect", vtime.Duration(to), vtime.Duration(to))
	return r.collect(ctx)
}

// waitUntil lets the run go on until its end, a failure, or the user's stop.
func (r *session) waitUntil(ctx context.Context, epoch int64, end vtime.Time) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	c := r.s.Config()
	for {
		at := vtime.Time(monotonic() - epoch)
		if at >= end {
			return nil
		}
		phase := "warm-up"
		if at >= vtime.Time(c.Warmup) {
			phase = "measure"
		}
		r.tell(phase, vtime.Duration(max(at, 0)), vtime.Duration(end))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.gather.failed:
			return r.gather.failure()
		case <-tick.C:
		}
	}
}

func (r *session) collect(ctx context.Context) error {
	ctx, cancel := within(ctx, r.b.limits.collect)
	defer cancel()
	if err := r.each(ctx, func(ctx context.Context, _ int, c *proto.Client) error { return c.Stop(ctx) }); err != nil {
		return err
	}
	results := make([]*proto.Results, len(r.clients))
	err := r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		var err error
		results[i], err = c.Collect(ctx)
		return err
	})
	if err != nil {
		return err
	}
	report, err := r.emu.Stop(ctx)
	if err != nil {
		return err
	}
	backend.CollectFlows(r.rec, r.s, results)
	collectNodes(r.rec, results)
	names := make([]string, len(r.handles))
	for i, h := range r.handles {
		names[i] = h.Name()
	}
	judgeAgents(&r.rec.Run, names, results)
	c := r.s.Config()
	judgeSwitches(&r.rec.Run, r.s.Topology, names, results, vtime.Time(c.Warmup+c.Duration))
	collectMedium(r.rec, r.s, report)
	collectCapture(r.capture, report.Capture)
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
	if r.emu != nil {
		select {
		case <-r.emu.Done():
		default:
			r.emu.Kill()
		}
	}
	for _, c := range r.clients {
		_ = c.Close() // the end of its input is the agent's order to revert and exit
	}
	if r.driver != nil {
		errs = append(errs, r.driver.Close(cctx))
	}
	if r.board != nil {
		errs = append(errs, r.board.Close())
	}
	return errors.Join(errs...)
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
