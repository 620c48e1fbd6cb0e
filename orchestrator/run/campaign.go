package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/artifact"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// Options is what a campaign needs.
type Options struct {
	Plan    *plan.Plan
	Backend backend.Backend
	Store   *store.Store
	Observe Observer
	// Resume goes on with the newest unfinished campaign of the same text. Where
	// there is none but a complete one, nothing is missing and nothing is run.
	Resume  bool
	Files   *artifact.Files // that runs leave beside the database; nil: none
	Version string          // of this program
	Host    store.Facts     // of this machine

	part part // among the campaigns of one command
}

// part says where a campaign stands among those of one command.
type part struct {
	number, of int           // from 1
	first      int64         // id of the first of them, 0 for none yet
	later      time.Duration // estimate for those after it
}

// Summary is how a campaign ended.
type Summary struct {
	CampaignID                int64
	Backend                   string
	Complete, Invalid, Failed int // of the whole plan, earlier invocations included
	Interrupted               bool
	// Unkept are the runs of which a file is missing or incomplete.
	Unkept int
	Wall   time.Duration
}

// OK says whether every run of the plan is complete and valid.
func (s Summary) OK() bool { return s.Invalid == 0 && s.Failed == 0 && !s.Interrupted }

// Execute carries out a plan. Every finished run is stored before the next one
// begins; where the back end carries out several at once, they are stored in the
// order of the plan, each as soon as those before it are. When ctx ends, the
// runs in progress are given up, what is finished stays, and the Summary says
// Interrupted. The error is for what makes going on pointless: a database that
// cannot be written, a host that cannot do it.
func Execute(ctx context.Context, o Options) (Summary, error) {
	began := time.Now()
	o.Plan = backend.PlanOn(o.Backend, o.Plan)
	if !o.Resume {
		if err := o.Files.Check(o.Plan.Runs, o.Backend.Name()); err != nil {
			return Summary{}, err
		}
	}
	c, done, err := openCampaign(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	sum := Summary{CampaignID: c.ID, Backend: c.Backend}
	if o.part.first != 0 {
		if err := o.Store.JoinCampaigns(ctx, o.part.first, c.ID); err != nil {
			return sum, err
		}
	}
	var todo []plan.Run
	var length vtime.Duration
	for _, r := range o.Plan.Runs {
		if _, ok := done[Key(r)]; ok {
			sum.Complete++
			continue
		}
		todo = append(todo, r)
		length += r.Length()
	}
	if c.Status == store.CampaignComplete {
		o.Observe.Warn(fmt.Sprintf("campaign %d of this file with these settings on %s is complete: nothing is missing; leave --resume out to run it again", c.ID, c.Backend))
		return sum, nil
	}
	if err := o.Files.Check(todo, c.Backend); err != nil {
		return sum, finish(o, c, sum, err)
	}
	o.Observe.CampaignStarted(Campaign{
		ID: c.ID, Name: c.Name, Backend: c.Backend, Quick: c.Quick, Runs: len(todo), Finished: sum.Complete,
		Expected: Estimate(o.Backend, len(todo), length) + surveyTime(o.Backend, o.Plan), Database: o.Store.Path(),
		Part: max(1, o.part.number), Parts: max(1, o.part.of), Later: o.part.later,
	})
	p, err := survey(ctx, o, c)
	if err != nil {
		if ctx.Err() != nil {
			sum.Interrupted, err = true, nil
		}
		return sum, finish(o, c, sum, err)
	}
	for i := range todo {
		todo[i] = p.Runs[todo[i].Index]
	}
	o.Plan = p
	err = newCrew(o, c, todo).work(ctx, &sum)
	sum.Wall = time.Since(began)
	o.Observe.CampaignDone(sum.Complete, sum.Invalid, sum.Failed, sum.Wall)
	return sum, finish(o, c, sum, err)
}

// Estimate is the wall time that runs of a total length need on a back end.
func Estimate(b backend.Backend, runs int, length vtime.Duration) time.Duration {
	one := time.Duration(float64(length.Std())/b.Speed()) + time.Duration(runs)*b.Overhead()
	return one / time.Duration(max(1, min(runs, backend.Parallelism(b))))
}

// Key tells a run of a plan from the others, as the store keeps it.
func Key(r plan.Run) store.RunKey {
	p := store.Params{}
	for _, q := range r.Point.Params {
		p[q.Name] = q.Value
	}
	return store.RunKey{Point: p.Key(), Repetition: r.Repetition, Seed: store.Seed(r.Seed)}
}

// openCampaign creates the campaign's row, or finds the one to go on with.
func openCampaign(ctx context.Context, o Options) (*store.Campaign, map[store.RunKey]int64, error) {
	e := o.Plan.Experiment
	base := e.Base()
	text := Text(e)
	if o.Resume {
		c, err := o.Store.Resumable(ctx, sha256Hex(text), store.Seed(base.Seed), o.Backend.Name(), e.Quick)
		if err != nil {
			return nil, nil, err
		}
		if c != nil {
			done, err := o.Store.Done(ctx, c.ID)
			if err != nil {
				return nil, nil, err
			}
			return c, done, o.Store.ReopenCampaign(ctx, c.ID)
		}
		if c, err = o.Store.Completed(ctx, sha256Hex(text), store.Seed(base.Seed), o.Backend.Name(), e.Quick); err != nil {
			return nil, nil, err
		}
		if c != nil {
			done, err := o.Store.Done(ctx, c.ID)
			return c, done, err
		}
		o.Observe.Warn("nothing to resume: no unfinished campaign of this file with these settings on " + o.Backend.Name() + " in " + o.Store.Path() + "; starting a new one")
	}
	c := &store.Campaign{
		Name: base.Name, Title: base.Title, Backend: o.Backend.Name(), Seed: store.Seed(base.Seed), Quick: e.Quick,
		Planned: int64(len(o.Plan.Runs)), Reference: base.Reference, FileText: text, FileSHA256: sha256Hex(text),
		Version: o.Version, HostFacts: facts(o.Host, e),
	}
	_, err := o.Store.CreateCampaign(ctx, c)
	return c, nil, err
}

// facts are those of the host, and of the files that the experiment names: their
// text is not kept.
func facts(host store.Facts, e *spec.Experiment) store.Facts {
	out := maps.Clone(host)
	if out == nil {
		out = store.Facts{}
	}
	for _, f := range e.Files() {
		out["file "+f.Path] = fmt.Sprintf("%d bytes, sha256 %s", f.Bytes, f.SHA256)
	}
	return out
}

// finish records the campaign's end. It must work when the user's context has
// ended already.
func finish(o Options, c *store.Campaign, sum Summary, cause error) error {
	limit := 10 * time.Second
	if sum.Interrupted {
		// The user waits. A status that cannot be written, because another
		// program holds the database, is told from a running campaign anyway.
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	status, note := store.CampaignComplete, ""
	switch {
	case cause != nil:
		status, note = store.CampaignFailed, cause.Error()
	case sum.Interrupted:
		status, note = store.CampaignInterrupted, "stopped by the user; go on with --resume"
	case !sum.OK():
		status = store.CampaignIncomplete
	}
	return errors.Join(cause, o.Store.FinishCampaign(ctx, c.ID, status, note))
}
