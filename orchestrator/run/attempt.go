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

// attempt is one try at one run of the plan.
type attempt struct {
	at     int // position among the runs to carry out
	run    plan.Run
	number int // from 1
}

// info names the attempt for people.
func (a attempt) info(o Options) RunInfo {
	r := a.run
	return RunInfo{
		Index: r.Index, Total: len(o.Plan.Runs), Label: r.Label(), Repetition: r.Repetition, Attempt: a.number,
		Length: time.Duration(float64(r.Length().Std())/o.Backend.Speed()) + o.Backend.Overhead(),
	}
}

// result is what an attempt gave: a sealed record, the user's stop, or an error
// for which no record can be laid out.
type result struct {
	attempt
	rec         *store.RunRecord
	err         error // of the run; it is also in the record
	unkept      error // of its files
	interrupted bool
	planErr     error
}

// carryOut makes one attempt. It stores nothing and may run beside others.
func carryOut(ctx context.Context, o Options, c *store.Campaign, a attempt, tell backend.Progress) *result {
	out := &result{attempt: a}
	if ctx.Err() != nil {
		out.interrupted = true
		return out
	}
	s, err := a.run.Scenario()
	if err != nil {
		// The same file fails in the same way in every attempt and in every
		// other run of the repetition.
		out.planErr = err
		return out
	}
	files := o.Files.Begin(s, c.Backend)
	started := time.Now()
	out.rec, out.err = o.Backend.Run(ctx, s, tell, files.Capture())
	if ctx.Err() != nil && out.err != nil {
		// The user stopped it: no result, and not the run's fault.
		files.Discard()
		out.interrupted, out.rec = true, nil
		return out
	}
	if out.rec == nil {
		out.rec = backend.NewRecord(s, func(int) string { return "" })
	}
	seal(out.rec, o, c, a.run, started, out.err)
	out.unkept = files.End(out.rec)
	return out
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
	// A day's samples are millions; a busy machine stores some thousands a second.
	limit := time.Minute + time.Duration(len(rec.Samples)+len(rec.Messages))*time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), limit)
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
	for i := range rec.Flows {
		f := &rec.Flows[i]
		if !f.GoodputBps.OK || f.Role == store.RoleRequests {
			continue
		}
		out.Flows++
		out.SumBP += f.AggregateBps(&rec.Run)
		if f.LoadGiven() {
			out.Messages += f.Messages.V
			out.Delivered += f.MessagesDelivered.V
			continue
		}
		g = append(g, f.GoodputBps.V)
		if f.StarvedBelow(StarvedBPS) {
			out.Starved++
		}
	}
	out.Bulk = len(g)
	sort.Float64s(g)
	if n := len(g); n > 0 {
		out.MedianBP = (g[(n-1)/2] + g[n/2]) / 2
	}
	return out
}
