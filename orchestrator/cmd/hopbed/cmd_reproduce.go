package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/reference"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/render"
)

func reproduceCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name:      "reproduce",
		Usage:     "run the experiments of a paper and say which of its statements hold",
		ArgsUsage: "PAPER|PAPER/FIGURE",
		Description: "Runs every experiment of the paper, or of one of its figures, into one database, and sets\n" +
			"what the paper states beside what came out: matches, same direction, differs, or not\n" +
			"testable. hopbed list names the papers.\n\n" +
			"With --from FILE the argument is the number of a stored run instead: it is run again, and\n" +
			"hopbed says whether the medium did exactly the same (back end sim).\n\n" +
			"Exit status: that of hopbed run; statements that do not hold are a result, not an error.\n" +
			"With --from: 0 the same, 3 not the same.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "backend", Value: "sim", Usage: "`NAME` of the back end: sim or netns"},
			&cli.BoolFlag{Name: "quick", DisableDefaultText: true, Usage: "the experiments' shortened variants: nothing is concluded, but where it points to is said"},
			&cli.StringFlag{Name: "db", DefaultText: "PAPER.db", Usage: "`FILE` of the database for the results"},
			&cli.StringFlag{Name: "report", Usage: "write a report to `FILE`, .html, .md or .json, with the verdicts on top"},
			&cli.BoolFlag{Name: "resume", DisableDefaultText: true, Usage: "run what the database does not have yet"},
			&cli.StringFlag{Name: "repeat", Usage: "make `N` repetitions of each point"},
			&cli.StringFlag{Name: "seed", Usage: "take `N` as the base of every random choice"},
			&cli.StringFlag{Name: "from", Usage: "run a run of the database `FILE` again"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, DisableDefaultText: true, Usage: "no progress and no warnings"},
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Len() != 1:
				return usagef("which paper? hopbed list names those that can be reproduced")
			case c.IsSet("from"):
				for _, f := range []string{"backend", "quick", "report", "resume", "repeat", "seed"} {
					if c.IsSet(f) {
						return usagef("--%s does not go with --from: a stored run is run again as it was", f)
					}
				}
				return againAction(c, stderr)
			case c.String("backend") != "sim" && c.String("backend") != "netns":
				return usagef("--backend %s: papers are reproduced on sim or on netns", c.String("backend"))
			}
			return reproduceAction(c, stderr)
		},
	}
}

func reproduceAction(c *cli.Context, stderr *os.File) (err error) {
	paper, figures, err := figuresOf(c.Args().First())
	if err != nil {
		return err
	}
	if r := c.String("report"); r != "" {
		if err := checkReportPath(r); err != nil {
			return err
		}
	}
	var changes []spec.Assignment
	var own []string
	for _, key := range []string{"repeat", "seed"} {
		if c.IsSet(key) {
			changes, own = append(changes, spec.Assignment{Key: key, Value: c.String(key)}), append(own, key)
		}
	}
	on, form := c.String("backend"), full
	if c.Bool("quick") {
		form = quick
	}
	jobs, err := jobsOf(figures, on, form, changes)
	if err != nil {
		return byOption(err, own)
	}
	db := c.String("db")
	if db == "" {
		db = paper.ID + ".db"
	}
	survivePipes()
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	endOrderly(ctx)
	obs := newObserver(c.Bool("quiet"), false, stderr, &progressWriter{stderr, stop})
	began := time.Now()
	st, err := store.Open(ctx, db)
	if err != nil {
		return err
	}
	defer st.Close()
	o := run.Options{Store: st, Observe: obs, Resume: c.Bool("resume"), Version: version(), Host: hostFacts()}
	sums, failure := carryOut(ctx, jobs, on, o)
	c.Context = context.WithoutCancel(c.Context)
	if total := addUp(sums); total.Interrupted || len(sums) == 0 {
		if failure == nil || total.Interrupted {
			failure = &exit{exitInterrupted, errors.Join(errors.New("interrupted: what is finished is stored; go on with the same command and --resume"), failure)}
		}
		return failure
	}
	pack, err := concludePack(c, st, paper, figures, campaigns(sums))
	if err != nil {
		return errors.Join(failure, err)
	}
	if err := printPack(c.App.Writer, pack, on, time.Since(began)); err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	if !addUp(sums).OK() {
		return &exit{exitNotValid, errors.New(shortfalls(sums))}
	}
	return nil
}

// carryOut runs the campaigns of a pack one after the other. One that fails
// altogether does not keep the others from being run.
func carryOut(ctx context.Context, jobs []*job, on string, o run.Options) (sums []run.Summary, err error) {
	backends, shut, err := openBackends(ctx, []string{on}, &opening{warn: o.Observe.Warn})
	defer func() { err = errors.Join(err, shut()) }()
	if err != nil {
		return nil, err
	}
	// Of all before the first run, as of one experiment.
	plans := make([]*plan.Plan, len(jobs))
	for i, j := range jobs {
		p, left, err := withAvailable(ctx, backends[0], j.experiment)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.name, err)
		}
		for _, l := range left {
			o.Observe.Warn(fmt.Sprintf("%s: %v; it is left out, and what needs it is not testable", j.name, l))
		}
		if _, err := layOut(ctx, p, nil, on); err != nil {
			return nil, fmt.Errorf("%s: %w", j.name, err)
		}
		plans[i] = p
	}
	var errs []error
	for i, p := range plans {
		o.Plan, o.Backend = p, backends[0]
		sum, err := run.Execute(ctx, o)
		if sum.CampaignID != 0 {
			sums = append(sums, sum)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", jobs[i].name, err))
		}
		if ctx.Err() != nil && len(sums) > 0 {
			sums[len(sums)-1].Interrupted = true
		}
		if sum.Interrupted || ctx.Err() != nil || err != nil && !backend.IsFatal(err) {
			break
		}
	}
	return sums, errors.Join(errs...)
}

// concludePack writes the report, where one is wanted, and returns the verdicts.
func concludePack(c *cli.Context, st *store.Store, paper *reference.Paper, figures []*reference.Experiment, ids []int64) (*claims.Pack, error) {
	judge := func(ctx context.Context, sets []*dataset.Set) (*claims.Pack, error) {
		return verdicts(ctx, paper, figures, sets)
	}
	path := c.String("report")
	if path == "" {
		sets, err := setsOf(c.Context, st, ids)
		if err != nil {
			return nil, err
		}
		return judge(c.Context, sets)
	}
	format, err := reportFormat(path)
	if err != nil {
		return nil, err
	}
	r, err := render.Build(c.Context, st, ids, render.Options{Version: version(), Pack: judge})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return r.Pack, writeFile(path, func(w io.Writer) error { return format(r, w) })
}

// printPack shows a line for each statement, and below it those of its parts that
// do not match.
func printPack(w io.Writer, p *claims.Pack, on string, wall time.Duration) error {
	fmt.Fprintf(w, "%s\n%s, %s\n\n", clean(p.Title), dataset.BackendText(on), roundTime(wall))
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "no.\tverdict\tpart\tours (95 %)\tn\twanted\tremark")
	for i := range p.Statements {
		s := &p.Statements[i]
		if s.Number == 0 {
			continue
		}
		fmt.Fprintf(tw, "%d\t%s\t\t\t\t\t\n", s.Number, verdictShown(s.Verdict(), s.Indication()))
		for j := range s.Findings {
			f := &s.Findings[j]
			_, id, _ := strings.Cut(strings.TrimPrefix(f.ID, p.Paper+"/"), "/")
			why := ""
			if f.Verdict != claims.Matches || strings.Contains(f.Why, ", but ") {
				why = f.Why
			}
			ours := "–"
			if f.Ours.N > 0 {
				if ours = fmt.Sprintf("%.3g", f.Ours.Value); f.Ours.HasInterval {
					ours += fmt.Sprintf(" (%.3g–%.3g)", f.Ours.Lo, f.Ours.Hi)
				}
			}
			fmt.Fprintf(tw, "\t%s\t%s\t%s\t%d\t%s\t%s\n", verdictShown(f.Verdict, f.Indication), id, ours, f.Ours.N, f.Threshold.String(), clean(why))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var sum []string
	counts := p.Counts()
	for _, v := range []claims.Verdict{claims.Matches, claims.SameDirection, claims.Differs, claims.NotTested} {
		if n := counts[v]; n > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", n, v))
		}
	}
	_, err := fmt.Fprintf(w, "\n%s: %s\n", dataset.CountOf(len(slices.DeleteFunc(slices.Clone(p.Statements), func(s claims.Statement) bool { return s.Number == 0 })), "statement"), strings.Join(sum, ", "))
	return err
}

func verdictShown(v, indication claims.Verdict) string {
	if v != indication {
		return fmt.Sprintf("%s (points to: %s)", v, indication)
	}
	return string(v)
}
