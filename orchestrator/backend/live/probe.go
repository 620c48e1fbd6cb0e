//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hopbed/hopbed/agent/linkprobe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

var _ backend.Prober = (*Backend)(nil)

// Probe implements backend.Prober: nodes come up as for a run, probe, and are gone
// again.
func (b *Backend) Probe(ctx context.Context, s *plan.Scenario, tell backend.Progress) (survey *etx.Survey, err error) {
	r := b.newSession(s, tell, nil)
	defer func() {
		r.tell("tear down", 0, 0)
		err = errors.Join(err, r.close(ctx))
		r.gather.finish(r.rec)
		if err != nil {
			survey = nil
		}
	}()
	if err := r.startProbing(ctx); err != nil {
		return nil, classify(r.explain(err))
	}
	survey, err = r.probe(ctx)
	return survey, r.explain(err)
}

func (r *session) startProbing(ctx context.Context) error {
	ctx, cancel := within(ctx, r.b.limits.start)
	defer cancel()
	if err := r.up(ctx); err != nil {
		return err
	}
	_, err := r.configure(ctx, nil)
	return err
}

// probe lets the nodes send and listen over the same time.
func (r *session) probe(ctx context.Context) (*etx.Survey, error) {
	order := backend.ProbeOrder(r.s, rand.Uint64())
	span := linkprobe.Span(order.Count, order.Period) + backend.ProbeTail
	epoch := monotonic() + r.lead().Nanoseconds()
	if err := r.fabric.begin(ctx, epoch, 0, vtime.Time(span)); err != nil {
		return nil, err
	}
	nodes := r.s.Topology.Nodes
	err := r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		if !nodes[i].Radio {
			return nil
		}
		o := order
		o.EpochNS = r.epochOf(i, epoch)
		return c.Probe(ctx, o)
	})
	if err != nil {
		return nil, err
	}
	if err := r.waitProbing(ctx, epoch, span); err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, r.b.limits.collect)
	defer cancel()
	heard := make([]*proto.Heard, len(r.clients))
	err = r.each(ctx, func(ctx context.Context, i int, c *proto.Client) error {
		if !nodes[i].Radio {
			return nil
		}
		var err error
		heard[i], err = c.Heard(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.fabric.stop(ctx); err != nil {
		return nil, err
	}
	// A host that was too slow for a run was so for probes.
	r.fabric.collect(r.rec)
	reasons := append(r.rec.Run.InvalidReasons, backend.LateProbes(r.s.Topology, heard)...)
	if len(reasons) > 0 {
		return nil, &backend.Spoiled{Reasons: reasons}
	}
	survey, err := backend.Surveyed(r.s.Topology, order.Count, heard)
	if err != nil {
		return nil, err
	}
	return survey, r.revert(ctx)
}

func (r *session) waitProbing(ctx context.Context, epoch int64, span vtime.Duration) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	what := fmt.Sprintf("probe the links of %d nodes", len(r.s.Topology.Nodes)-len(r.s.Topology.Mute()))
	for {
		at := vtime.Duration(monotonic() - epoch)
		if at >= span {
			return nil
		}
		r.tell(what, max(at, 0), span)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.gather.failed:
			return r.gather.failure()
		case <-tick.C:
		}
	}
}
