package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/artifact"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/run"
	"github.com/hopbed/hopbed/orchestrator/store"
)

func runCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run an experiment and keep every result",
		ArgsUsage: "FILE|NAME",
		Description: "Runs every point of the experiment's matrix in every repetition, stores each finished\n" +
			"run at once, and repeats runs that the host spoiled. Ctrl-C keeps what is finished,\n" +
			"--resume goes on from there; a second Ctrl-C ends hopbed at once.\n\n" +
			"Where the file or --backend names several back ends, each carries out the whole plan as\n" +
			"a campaign of its own, and the report compares them. Nothing is pooled.\n\n" +
			"Exit status: 0 all runs complete and valid; 1 error; 2 usage; 3 finished, but some run\n" +
			"failed or is invalid; 130 interrupted.",
		Flags: append(append(append(changeFlags(), captureFlags()...), labFlags()...),
			&cli.BoolFlag{Name: "dry-run", DisableDefaultText: true, Usage: "print what each real node would be ordered, as commands; nothing is reached, changed or stored (back end ssh)"},
			&cli.StringFlag{Name: "via", Usage: "reach emulated nodes by `WAY`: ssh starts a server in each namespace, and everything goes the way of real nodes (back end netns)"},
			&cli.StringFlag{Name: "on-node-loss", Value: lossContinue, Usage: "`WHAT` to do when a real node is lost: continue with the next run, or stop; either way its run failed, and --resume completes the campaign"},
			&cli.StringFlag{Name: "backend", DefaultText: "the file's backends, else netns", Usage: "`NAME` of the back end, or several with commas: " + strings.Join(backendNames(), ", ")},
			&cli.StringFlag{Name: "db", Value: "results.db", Usage: "`FILE` of the database for the results"},
			&cli.StringFlag{Name: "report", Usage: "write a report to `FILE` afterwards, .html, .md or .json"},
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
	names, err := chosenBackends(c, e)
	if err != nil {
		return err
	}
	o, err := runOptions(c, e, names)
	if err != nil {
		return err
	}
	p := plan.Build(e)
	if c.Bool("dry-run") {
		return dryRun(c.App.Writer, planOn(site.Name, p), o.lab.Inventory)
	}
	files, err := captureFiles(c, p, names, sources(c.Args().First(), e))
	if err != nil {
		return err
	}
	// Every scenario of the plan is laid out before anything is created: a mesh
	// that is not connected must not end a campaign in its third repetition.
	hint := ""
	for _, n := range names {
		h, err := layOut(c.Context, planOn(n, p), files, n)
		if err != nil {
			return err
		}
		hint = cmp.Or(hint, h)
	}
	survivePipes()
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	endOrderly(ctx)
	obs := newObserver(c.Bool("quiet"), c.Bool("json"), stderr, &progressWriter{stderr, stop})
	o.warn = obs.Warn
	on, shut, err := openBackends(ctx, names, o)
	defer func() {
		// What could not be removed must not look like a clean end.
		err = errors.Join(err, shut())
	}()
	if err != nil {
		return err
	}
	// Of all before the first run: the second back end must not fail after hours
	// on the first.
	for _, b := range on {
		if err := b.Preflight(ctx, backend.PlanOn(b, p)); err != nil {
			return err
		}
	}
	st, err := store.Open(ctx, c.String("db"))
	if err != nil {
		return err
	}
	defer st.Close()
	if from, to, ok := st.Migrated(); ok {
		obs.Warn(fmt.Sprintf("%s was brought from format %d to format %d: an older hopbed cannot read it any more", c.String("db"), from, to))
	}
	for _, w := range p.Warnings() {
		obs.Warn(w)
	}
	if o.lab != nil {
		for _, w := range site.Warnings(p) {
			obs.Warn(w)
		}
	}
	sums, err := run.ExecuteAll(ctx, run.Options{
		Plan: p, Store: st, Observe: obs, Resume: c.Bool("resume"), Files: files, Version: version(), Host: hostFacts(),
	}, on)
	err = conclude(c, st, sums, err, stderr)
	if addUp(sums).Complete > 0 {
		showHint(c, hint, stderr)
	}
	return err
}

// What --on-node-loss may say.
const (
	lossContinue = "continue"
	lossStop     = "stop"
)

// runOptions are what the command line says of the back ends that it names.
func runOptions(c *cli.Context, e *spec.Experiment, names []string) (*opening, error) {
	o := &opening{}
	has := func(name string) bool { return slices.Contains(names, name) }
	switch v := c.String("via"); {
	case v != "" && v != "ssh":
		return nil, usagef("--via %s: there is one way beside the direct one: ssh", v)
	case v != "" && !has(defaultBackend):
		return nil, usagef("--via belongs to --backend %s: it is how emulated nodes are reached", defaultBackend)
	default:
		o.viaSSH = v != ""
	}
	switch v := c.String("on-node-loss"); v {
	case lossContinue, lossStop:
		o.stopOnLoss = v == lossStop
	default:
		return nil, usagef("--on-node-loss %s: want %s or %s", v, lossContinue, lossStop)
	}
	if !has(site.Name) {
		for _, f := range []string{"inventory", "tags", "agents", "accept-new", "dry-run", "on-node-loss"} {
			if c.IsSet(f) {
				return nil, usagef("--%s belongs to --backend %s: the other back ends have no real nodes", f, site.Name)
			}
		}
		return o, nil
	}
	if c.Bool("dry-run") && len(names) > 1 {
		return nil, usagef("--dry-run shows what real nodes would be ordered: give --backend %s alone", site.Name)
	}
	for _, f := range []string{"trace", "events"} {
		if c.String(f) != "" {
			return nil, &backend.ErrUnsupported{Backend: site.Name, What: "--" + f, Because: "the packets of real nodes pass elsewhere", Do: "leave it out, and run tcpdump on the nodes"}
		}
	}
	var err error
	// What ssh_config wants and is not followed is said when somebody hears it.
	o.lab, err = openLab(c, e, func(text string) {
		if o.warn != nil {
			o.warn(text)
		}
	})
	return o, err
}

// dryRun prints what the nodes of an inventory would be ordered.
func dryRun(w io.Writer, p *plan.Plan, inv *inventory.Inventory) error {
	if _, err := site.Check(p, inv); err != nil {
		return err
	}
	return site.Print(w, p, inv)
}

// layOut lays every scenario of a plan out. The hint is about the first whose
// capture, on the back end on, needs one.
func layOut(ctx context.Context, p *plan.Plan, files *artifact.Files, on string) (hint string, err error) {
	for _, r := range p.Runs {
		if ctx.Err() != nil {
			return "", &exit{exitInterrupted, ctx.Err()}
		}
		lay := r.Scenario
		if r.Unmeasured() {
			lay = r.Network // the pairs of flows follow from the links
		}
		s, err := lay()
		if err != nil {
			return "", err
		}
		if err := files.Fits(s); err != nil {
			return "", err
		}
		if hint == "" {
			hint = files.Hint(s, on)
		}
	}
	return hint, nil
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
