package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

func upCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "bring an experiment's network up and keep it standing, for work by hand",
		ArgsUsage: "FILE|NAME",
		Description: "Starts the file's nodes, radios, wires and routes, without its flows, and keeps them until\n" +
			"hopbed down. hopbed exec runs anything in a node, hopbed set changes links and radios while\n" +
			"it stands, hopbed status shows it. What the file lets happen in the course of a run\n" +
			"(topology.changes, schedules of wires) does not happen by itself.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", DefaultText: "the file's", Usage: "name the lab `LAB`: several stand at once under different names"},
			&cli.StringSliceFlag{Name: "set", Usage: "change a value of the file, `KEY=VALUE` (repeatable), such as radio.rate=5.5mbit"},
			&cli.StringFlag{Name: "seed", Usage: "take `N` as the base of every random choice"},
			&cli.IntFlag{Name: "repetition", Value: 1, Usage: "the network of repetition `N`"},
			&cli.StringFlag{Name: "point", DefaultText: "the first", Usage: "the network of the `POINT` of the matrix with this label, such as 'range=250m'"},
			&cli.BoolFlag{Name: "no-routes", DisableDefaultText: true, Usage: "leave the nodes without routes: a routing daemon, or you, will make them"},
			&cli.BoolFlag{Name: "ipv6", DisableDefaultText: true, Usage: "leave IPv6 on in the nodes, and let it pass over links (routing daemons need it)"},
			&cli.BoolFlag{Name: "foreground", DisableDefaultText: true, Usage: "stay in the foreground; Ctrl-C takes the network down"},
			&cli.BoolFlag{Name: "keeper", Hidden: true},
		},
		Action: func(c *cli.Context) error { return upAction(c, stderr) },
	}
}

// standing is what `hopbed up` is to bring up.
type standing struct {
	name     string
	file     string
	scenario *plan.Scenario
	notes    []string
}

// chooseStanding lays out the network that the command line means.
func chooseStanding(c *cli.Context) (*standing, error) {
	e, err := load(c)
	if err != nil {
		return nil, err
	}
	s := &standing{name: c.String("name"), file: e.File}
	if s.name == "" {
		s.name = e.Base().Name
	}
	run, err := chooseRun(c, e, s)
	if err != nil {
		return nil, err
	}
	if s.scenario, err = run.Network(); err != nil {
		return nil, err
	}
	cfg, t := run.Config(), s.scenario.Topology
	note := func(format string, a ...any) { s.notes = append(s.notes, fmt.Sprintf(format, a...)) }
	if run.Measured() {
		note("routes are those of the radio model: nothing was measured")
	}
	if len(t.Changes) > 0 {
		note("what topology.changes switches does not happen by itself: hopbed set NODE|LINK up=false does it")
	}
	for i := range t.Pipes {
		if len(t.Pipes[i].Config[0].Schedule)+len(t.Pipes[i].Config[1].Schedule) > 0 {
			note("schedules of wires do not happen by themselves: hopbed set changes them")
			break
		}
	}
	for i := range cfg.Topology.Pipes {
		if cfg.Topology.Pipes[i].Emulator == spec.KernelEmulator {
			note("wires of a standing network are emulated in user space, where each can be changed: emulator: kernel is for runs")
			break
		}
	}
	if cfg.Topology.Inventory != "" {
		return nil, fmt.Errorf("%s: its nodes are real ones (topology.inventory): hopbed up makes emulated networks; describe the topology by generate, nodes or import", e.File)
	}
	return s, nil
}

func chooseRun(c *cli.Context, e *spec.Experiment, s *standing) (*plan.Run, error) {
	points := e.Points()
	label := points[0].Label()
	if c.IsSet("point") {
		var labels []string
		label = ""
		for _, p := range points {
			if labels = append(labels, p.Label()); p.Label() == c.String("point") {
				label = p.Label()
			}
		}
		if label == "" && c.String("point") != "" {
			meant := ""
			if m := spec.Suggest(c.String("point"), labels); m != "" {
				meant = "; did you mean " + m + "?"
			}
			return nil, usagef("--point %s: the experiment has no such point: hopbed check %s lists them%s", c.String("point"), c.Args().First(), meant)
		}
	} else if sameNetwork(points) < len(points) {
		s.notes = append(s.notes, fmt.Sprintf("the network of the point %s; others have another one: choose by --point", label))
	}
	for _, r := range plan.Build(e).Runs {
		if r.Repetition == c.Int("repetition") && r.Point.Label() == label {
			return &r, nil
		}
	}
	return nil, usagef("--repetition %d: the experiment has the repetitions 1 to %d", c.Int("repetition"), e.Base().Repeat)
}

// keeperArgs are the arguments with which the keeper brings up the same network.
func keeperArgs(c *cli.Context, name string) []string {
	args := []string{"up", "--keeper", "--name=" + name, fmt.Sprintf("--repetition=%d", c.Int("repetition"))}
	for _, s := range c.StringSlice("set") {
		args = append(args, "--set="+s)
	}
	for _, f := range []string{"seed", "point"} {
		if c.IsSet(f) {
			args = append(args, "--"+f+"="+c.String(f))
		}
	}
	for _, f := range []string{"no-routes", "ipv6"} {
		if c.Bool(f) {
			args = append(args, "--"+f)
		}
	}
	return append(args, "--", c.Args().First())
}

// indent puts a margin before every line.
func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
