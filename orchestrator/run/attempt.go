package run

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// StarvedBPS is the goodput below which a flow counts as starved, in bit/s.
const StarvedBPS = 10_000

// untilValid carries out one run and repeats it, as often as the file allows,
// while the host spoils it. Every attempt is stored; the last one's status is
// returned. An error ends the campaign.
func untilValid(ctx context.Context, o Options, c *store.Campaign, r plan.Run) (store.RunStatus, error) {
	for attempt := 1; ; attempt++ {
		status, again, err := attemptRun(ctx, o, c, r, attempt)
		if err != nil || !again || attempt > r.Config().Limits.Reruns {
			return status, err
		}
	}
}

// attemptRun carries out a run once. again says whether another attempt may do
// better.
func attemptRun(ctx context.Context, o Options, c *store.Campaign, r plan.Run, attempt int) (status store.RunStatus, again bool, err error) {
	if ctx.Err() != nil {
		return store.RunInterrupted, false, nil
	}
	s, err := r.Scenario()
	if err != nil {
		// The same file fails in the same way in every attempt and in every
		// other run of the repetition.
		return store.RunFailed, false, err
	}
	info := RunInfo{
		Index: r.Index, Total: len(o.Plan.Runs), Label: r.Label(), Repetition: r.Repetition, Attempt: attempt,
		Length: time.Duration(float64(r.Length().Std())/o.Backend.Speed()) + o.Backend.Overhead(),
	}
	o.Observe.RunStarted(info)
	started := time.Now()
	rec, runErr := o.Backend.Run(ctx, s, func(phase string, at, length vtime.Duration) {
		o.Observe.RunProgress(phase, at, length)
	})
	if ctx.Err() != nil && runErr != nil {
		// The user stopped it: no result, and not the run's fault.
		return store.RunInterrupted, false, nil
	}
	if rec == nil {
		rec = backend.NewRecord(s, func(int) string { return "" })
	}
	seal(rec, o, c, r, started, runErr)
	if err := save(o, rec); err != nil {
		return store.RunFailed, false, err
	}
	o.Observe.RunDone(info, outcome(rec))
	if runErr != nil && backend.IsFatal(runErr) {
		return rec.Run.Status, false, runErr
	}
	return rec.Run.Status, rec.Run.Status != store.RunComplete && !backend.IsPermanent(runErr), nil
}

// seal fills in what the campaign knows and decides the run's status.
func seal(rec *store.RunRecord, o Options, c *store.Campaign, r plan.Run, started time.Time, runErr error) {
	run := &rec.Run
	run.CampaignID, run.Backend, run.Quick = c.ID, c.Backend, c.Quick
	run.Started, run.WallS = store.StampOf(started), time.Since(started).Seconds()
	for i := range rec.Flows {
		if f := rec.Flows[i]; f.Status == store.FlowFailed && runErr == nil {
			run.InvalidReasons = append(run.InvalidReasons, backend.FlowError(rec, i))
		}
	}
	switch {
	case runErr != nil:
		run.Status, run.Error = store.RunFailed, runErr.Error()
	case len(run.InvalidReasons) > 0:
		run.Status = store.RunInvalid
	default:
		run.Status = store.RunComplete
	}
}

// save stores a run even when the user has asked to stop: it is finished.
func save(o Options, rec *store.RunRecord) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := o.Store.SaveRun(ctx, rec); err != nil {
		return fmt.Errorf("a finished run could not be stored: %w", err)
	}
	return nil
}

// outcome sums a stored run up for observers.
func outcome(rec *store.RunRecord) Outcome {
	out := Outcome{
		RunID: rec.Run.ID, Status: string(rec.Run.Status), Warnings: rec.Run.Warnings,
		Reasons: rec.Run.InvalidReasons, Wall: vtime.FromSeconds(rec.Run.WallS).Std(),
	}
	if rec.Run.Error != "" {
		out.Reasons = append(out.Reasons, rec.Run.Error)
		return out
	}
	var g []float64
	for _, f := range rec.Flows {
		if !f.GoodputBps.OK {
			continue
		}
		g = append(g, f.GoodputBps.V)
		out.SumBP += f.GoodputBps.V
		if f.GoodputBps.V < StarvedBPS {
			out.Starved++
		}
	}
	out.Flows = len(g)
	sort.Float64s(g)
	if n := len(g); n > 0 {
		out.MedianBP = (g[(n-1)/2] + g[n/2]) / 2
	}
	return out
}
