package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// changeFlags are the options with which a command line changes an experiment.
func changeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quick", DisableDefaultText: true, Usage: "run the file's shortened variant; results are marked: not for conclusions"},
		&cli.StringSliceFlag{Name: "set", Usage: "change a value of the file, `KEY=VALUE` (repeatable), such as radio.rate=5.5mbit"},
		&cli.StringFlag{Name: "repeat", Usage: "number of repetitions, `N`"},
		&cli.StringFlag{Name: "seed", Usage: "base of every random choice, `N`"},
		&cli.StringFlag{Name: "duration", Usage: "measured interval, `TIME` such as 60s"},
	}
}

// load reads an experiment by the name of a shipped one or by a file's path,
// and applies the command line's changes.
func load(c *cli.Context) (*spec.Experiment, error) {
	name := c.Args().First()
	switch {
	case name == "":
		return nil, usagef("which experiment? Give a file or a name of: %s", strings.Join(library.Names(), ", "))
	case c.Args().Len() > 1:
		return nil, usagef("one experiment at a time: %q is too much", c.Args().Get(1))
	}
	e, err := read(name)
	if err != nil {
		return nil, err
	}
	if c.Bool("quick") {
		if err := e.ApplyQuick(); err != nil {
			return nil, err
		}
	}
	var sets []spec.Assignment
	for _, s := range c.StringSlice("set") {
		a, err := spec.ParseAssignment(s)
		if err != nil {
			return nil, &exit{exitUsage, err}
		}
		sets = append(sets, a)
	}
	for _, key := range []string{"repeat", "seed", "duration"} {
		if c.IsSet(key) {
			sets = append(sets, spec.Assignment{Key: key, Value: c.String(key)})
		}
	}
	if err := e.Set(sets...); err != nil {
		return nil, err
	}
	return e, nil
}

// read finds an experiment: a path wins over a shipped name only when it looks
// like one.
func read(name string) (*spec.Experiment, error) {
	if src, ok := library.Source(name); ok {
		return spec.Parse(name+".yaml (shipped)", src)
	}
	e, err := spec.Load(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("there is neither a file nor a shipped experiment %q: hopbed list shows those that are shipped", name)
	}
	return e, err
}

func runCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run an experiment and keep every result",
		ArgsUsage: "FILE|NAME",
		Description: "Runs every point of the experiment's matrix in every repetition, stores each finished\n" +
			"run at once, and repeats runs that the host spoiled. Ctrl-C keeps what is finished,\n" +
			"--resume goes on from there; a second Ctrl-C ends hopbed at once.\n\n" +
			"Exit status: 0 all runs complete and valid; 1 error; 2 usage; 3 finished, but some run\n" +
			"failed or is invalid; 130 interrupted.",
		Flags: append(changeFlags(),
			&cli.StringFlag{Name: "backend", Value: "netns", Usage: "where to run, `NAME`: " + strings.Join(backendNames(), ", ")},
			&cli.StringFlag{Name: "db", Value: "results.db", Usage: "database for the results, `FILE`"},
			&cli.StringFlag{Name: "report", Usage: "write a report afterwards, `FILE` .html, .md or .json"},
			&cli.BoolFlag{Name: "resume", DisableDefaultText: true, Usage: "go on with the unfinished campaign of the same file"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, DisableDefaultText: true, Usage: "no progress and no warnings; results and errors as usual"},
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "progress as JSON lines on standard error, the summary as JSON on standard output"},
		),
		Action: func(c *cli.Context) error {
			err := runAction(c, stderr)
			if code, text := verdict(err); text != "" && c.Bool("json") && code != exitUsage {
				// Standard error is a stream of JSON lines to its end.
				newJSON(stderr).emit("error", map[string]any{"status": code, "text": text})
				return &exit{code: code}
			}
			return err
		},
	}
}

func runAction(c *cli.Context, stderr *os.File) (err error) {
	e, err := load(c)
	if err != nil {
		return err
	}
	if r := c.String("report"); r != "" {
		// A report that cannot be written must not cost the runs before it.
		if err := checkReportPath(r); err != nil {
			return err
		}
	}
	if c.String("db") == "" {
		return usagef("--db needs the name of a file")
	}
	p := plan.Build(e)
	// Every scenario of the plan is laid out before anything is created: a mesh
	// that is not connected must not end a campaign in its third repetition.
	if err := layOut(c.Context, p); err != nil {
		return err
	}
	survivePipes()
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	endOrderly(ctx)
	obs := newObserver(c.Bool("quiet"), c.Bool("json"), stderr, &progressWriter{stderr, stop})
	b, err := newBackend(ctx, c.String("backend"), obs.Warn)
	if err != nil {
		return err
	}
	defer func() {
		// What could not be removed must not look like a clean end.
		err = errors.Join(err, b.Close())
	}()
	if err := b.Preflight(ctx, p); err != nil {
		return err
	}
	st, err := store.Open(ctx, c.String("db"))
	if err != nil {
		return err
	}
	defer st.Close()
	for _, w := range p.Warnings() {
		obs.Warn(w)
	}
	sum, err := run.Execute(ctx, run.Options{
		Plan: p, Backend: b, Store: st, Observe: obs, Resume: c.Bool("resume"), Version: version(), Host: hostFacts(),
	})
	if err != nil && !sum.Interrupted {
		return err
	}
	return conclude(c, st, sum, err, stderr)
}

// conclude writes what the runs gave, the report first: standard output may be
// closed. stopped is what went wrong when the user interrupted them.
func conclude(c *cli.Context, st *store.Store, sum run.Summary, stopped error, stderr *os.File) error {
	// What is finished is worth its summary even when the user stopped the rest.
	c.Context = context.WithoutCancel(c.Context)
	if sum.Interrupted {
		err := errors.Join(errors.New("interrupted: what is finished is stored; go on with the same command and --resume"), stopped)
		if c.Bool("json") {
			err = errors.Join(err, summarise(c, st, sum))
		}
		return &exit{exitInterrupted, err}
	}
	var errs []error
	if r := c.String("report"); r != "" {
		if err := writeReport(c.Context, st, []int64{sum.CampaignID}, r); err != nil {
			errs = append(errs, err)
		} else if c.Bool("json") {
			newJSON(stderr).emit("report", r)
		} else if !c.Bool("quiet") {
			fmt.Fprintln(stderr, "report:", r)
		}
	}
	errs = append(errs, summarise(c, st, sum))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !sum.OK() {
		return &exit{exitNotValid, fmt.Errorf("%s: hopbed results --campaign %d and the report say why", shortfall(sum), sum.CampaignID)}
	}
	return nil
}

// shortfall says how many runs gave no valid result.
func shortfall(sum run.Summary) string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 run " + what
		}
		return fmt.Sprintf("%d runs %s", n, what)
	}
	switch {
	case sum.Failed == 0:
		return count(sum.Invalid, "invalid")
	case sum.Invalid == 0:
		return count(sum.Failed, "failed")
	}
	return count(sum.Invalid, "invalid") + ", " + count(sum.Failed, "failed")
}

func layOut(ctx context.Context, p *plan.Plan) error {
	for _, r := range p.Runs {
		if ctx.Err() != nil {
			return &exit{exitInterrupted, ctx.Err()}
		}
		if _, err := r.Scenario(); err != nil {
			return err
		}
	}
	return nil
}

func checkReportPath(path string) error {
	if _, err := reportFormat(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("--report %s: the folder %s does not exist: make it first", path, dir)
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return fmt.Errorf("--report %s: that is a folder: name a file", path)
	}
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return fmt.Errorf("--report %s: the folder cannot be written: %w", path, cause(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
