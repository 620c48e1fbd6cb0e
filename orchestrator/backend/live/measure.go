//go:build linux

package live

import (
	"context"
	"fmt"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
)

// measure starts the flows on one schedule, waits, and collects.
func (r *session) measure(ctx context.Context) error {
	c := r.s.Config()
	from, to := vtime.Time(c.Warmup), vtime.Time(c.Warmup+c.Duration)
	epoch := monotonic() + r.lead().Nanoseconds()
	if err := r.fabric.begin(ctx, epoch, from, to); err != nil {
		return err
	}
	err := r.each(ctx, func(ctx context.Context, i int, cl *proto.Client) error {
		return cl.Start(ctx, proto.Start{EpochNS: r.epochOf(i, epoch), Warmup: from, End: to})
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
	return r.collect(ctx, epoch)
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

func (r *session) collect(ctx context.Context, epoch int64) error {
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
	if err := r.fabric.stop(ctx); err != nil {
		return err
	}
	if err := r.readClocksAgain(ctx); err != nil {
		return err
	}
	clockFacts(r.rec, r.clocks)
	judgeClocks(&r.rec.Run, r.rec.Nodes, r.clocks)
	r.gather.messages.Clocks(&flowClocks{r.s, r.clocks, epoch})
	backend.CollectFlows(r.rec, r.s, results)
	collectNodes(r.rec, results)
	names := make([]string, len(r.handles))
	for i, h := range r.handles {
		names[i] = h.Name()
	}
	judgeAgents(&r.rec.Run, names, results)
	c := r.s.Config()
	judgeSwitches(&r.rec.Run, r.s.Topology, names, results, vtime.Time(c.Warmup+c.Duration))
	r.fabric.collect(r.rec)
	if e, ok := r.fabric.(*emulated); ok {
		e.kernel.collect(r.rec, r.s.Topology, results)
	}
	return r.revert(ctx)
}
