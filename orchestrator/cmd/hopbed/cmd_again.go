package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// againAction runs a stored run again and compares the two.
func againAction(c *cli.Context, stderr *os.File) (err error) {
	id, err := strconv.ParseInt(c.Args().First(), 10, 64)
	if err != nil {
		return usagef("which run? Give its number: hopbed results --campaign ID lists them")
	}
	from, err := store.OpenRead(c.Context, c.String("from"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database %s", c.String("from"))
	} else if err != nil {
		return err
	}
	defer from.Close()
	old, err := from.Run(c.Context, id)
	if err != nil {
		return err
	}
	k, err := from.Campaign(c.Context, old.CampaignID)
	if err != nil {
		return err
	}
	p, err := planAgain(k, old)
	if err != nil {
		return err
	}
	db := c.String("db")
	if db == "" {
		dir, err := os.MkdirTemp("", "hopbed-again-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		db = filepath.Join(dir, "again.db")
	}
	now, err := runAgain(c, p, k.Backend, db, stderr)
	if err != nil {
		return err
	}
	return compareAgain(c, k, old, now)
}

// recordedFile opens what a stored experiment names: a shipped file, or one of the
// working directory.
func recordedFile(name string) ([]byte, error) {
	if b, err := library.File(name); err == nil {
		return b, nil
	}
	return os.ReadFile(name)
}

// planAgain is the plan of the one run of a campaign.
func planAgain(k *store.Campaign, old *store.Run) (*plan.Plan, error) {
	e, err := run.Recorded(fmt.Sprintf("campaign %d", k.ID), k.FileText, recordedFile)
	if errors.Is(err, run.ErrOtherFiles) {
		return nil, fmt.Errorf("campaign %d: %w: run this in the folder of the experiment, with the files as they were", k.ID, err)
	} else if err != nil {
		return nil, fmt.Errorf("campaign %d cannot be read by this hopbed: %w", k.ID, err)
	}
	p := plan.Build(e)
	if e.Base().Routing.Kind == spec.RoutingMeasured {
		return nil, fmt.Errorf("campaign %d ran over links that were measured before it: run it again as a whole, with hopbed run", k.ID)
	}
	i := slices.IndexFunc(p.Runs, func(r plan.Run) bool { return run.Key(r) == old.Key() })
	if i < 0 {
		return nil, fmt.Errorf("campaign %d has no run of %s in repetition %d with seed %d any more: it was made by %s", k.ID, old.Params, old.Repetition, old.Seed, k.Version)
	}
	one := p.Runs[i]
	one.Index = 0
	p.Runs = []plan.Run{one}
	return p, nil
}

// runAgain carries the plan's one run out into a database and returns it.
func runAgain(c *cli.Context, p *plan.Plan, on, db string, stderr *os.File) (r *store.Run, err error) {
	survivePipes()
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	endOrderly(ctx)
	obs := newObserver(true, false, stderr, &progressWriter{stderr, stop})
	backends, shut, err := openBackends(ctx, []string{on}, &opening{warn: obs.Warn})
	defer func() { err = errors.Join(err, shut()) }()
	if err != nil {
		return nil, err
	}
	if err := backends[0].Preflight(ctx, backend.PlanOn(backends[0], p)); err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, db)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	sum, err := run.Execute(ctx, run.Options{Plan: p, Backend: backends[0], Store: st, Observe: obs, Version: version(), Host: hostFacts()})
	if err != nil {
		return nil, err
	}
	if sum.Interrupted {
		return nil, &exit{exitInterrupted, errors.New("interrupted")}
	}
	all, err := st.Runs(c.Context, store.Filter{CampaignIDs: []int64{sum.CampaignID}})
	if err != nil || len(all) == 0 {
		return nil, errors.Join(err, fmt.Errorf("the run was not stored"))
	}
	last := &all[len(all)-1]
	if last.Error != "" {
		return nil, fmt.Errorf("this time the run failed: %s", clean2(last.Error))
	}
	return last, nil
}

// compareAgain says where a run came from and whether it was the same again.
func compareAgain(c *cli.Context, k *store.Campaign, old, now *store.Run) error {
	w := c.App.Writer
	fmt.Fprintf(w, "run %d of campaign %d (%s): %s, repetition %d, seed %d, back end %s\n", old.ID, k.ID, clean(k.Name), clean(old.Params.String()), old.Repetition, old.Seed, dataset.BackendText(k.Backend))
	fmt.Fprintf(w, "experiment sha256 %s\n\n", k.FileSHA256)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "\tthen\tnow")
	here := hostFacts()
	fmt.Fprintf(tw, "hopbed\t%s\t%s\n", clean(k.Version), clean(version()))
	fmt.Fprintf(tw, "begun\t%s\t%s\n", old.Started, now.Started)
	for _, name := range slices.Sorted(maps.Keys(k.HostFacts)) {
		if v := here[name]; v != "" && v != k.HostFacts[name] {
			fmt.Fprintf(tw, "%s\t%s\t%s\n", clean(name), clean(k.HostFacts[name]), clean(v))
		}
	}
	fmt.Fprintf(tw, "status\t%s\t%s\n", old.Status, now.Status)
	fmt.Fprintf(tw, "trace hash\t%s\t%s\n", old.TraceHash, now.TraceHash)
	if err := tw.Flush(); err != nil {
		return err
	}
	switch {
	case k.Backend != "sim":
		fmt.Fprintf(w, "\nIn real time no run is the same twice: compare their results.\n")
		return nil
	case old.TraceHash == "" || now.TraceHash == "":
		return &exit{exitNotValid, errors.New("one of the two has no trace hash: nothing can be said")}
	case old.TraceHash == now.TraceHash:
		fmt.Fprintf(w, "\nThe same: every event of the medium was what and when it was then.\n")
		return nil
	}
	fmt.Fprintf(w, "\nNot the same.\n")
	return &exit{exitNotValid, errors.New("the trace hashes differ: another version of hopbed, or a file that is not what it was")}
}
