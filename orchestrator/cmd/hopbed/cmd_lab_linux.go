package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/lab"
)

// setHelp lists what can be set.
func setHelp() string {
	wire, air, node := spec.LiveKeys()
	row := func(what string, keys []string) string {
		return fmt.Sprintf("  %-11s %s", what, strings.Join(keys, " "))
	}
	return strings.Join([]string{row("a wire", wire), row("radio link", air), row("a node", node)}, "\n")
}

func selectLab(name string) (*lab.Client, error) {
	place, err := labPlace()
	if err != nil {
		return nil, err
	}
	return place.Select(name)
}

func execAction(c *cli.Context, stderr *os.File) error {
	args, name := c.Args().Slice(), ""
options:
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		value, given := strings.CutPrefix(args[0], "--lab=")
		switch {
		case given:
			name, args = value, args[1:]
		case args[0] == "--lab" && len(args) > 1:
			name, args = args[1], args[2:]
		case args[0] == "--":
			args = args[1:]
			break options
		case args[0] == "--help" || args[0] == "-h":
			return cli.ShowSubcommandHelp(c)
		default:
			return usagef("%s is no option of hopbed exec: options of the command come behind the node, hopbed exec NODE COMMAND %s", args[0], args[0])
		}
	}
	if len(args) == 0 {
		return usagef("in which node? hopbed exec NODE [COMMAND…]; hopbed status shows the nodes")
	}
	endOrderly(c.Context) // signals are the program's
	l, err := selectLab(name)
	if err != nil {
		return &exit{lab.StatusHopbed, err}
	}
	end, err := l.Exec(lab.Program{Node: args[0], Argv: args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: stderr})
	if err != nil {
		return &exit{lab.ExitStatus(err), err}
	}
	if end.Code != 0 {
		return &exit{code: end.Code}
	}
	return nil
}

func setAction(c *cli.Context) error {
	o := lab.Order{}
	for _, a := range c.Args().Slice() {
		if !strings.Contains(a, "=") {
			if len(o.Set) > 0 {
				return usagef("%q stands behind KEY=VALUE: targets come first", a)
			}
			o.Targets = append(o.Targets, a)
			continue
		}
		v, err := spec.ParseAssignment(a)
		if err != nil {
			return usagef("%q: want KEY=VALUE, such as loss=5%%", a)
		}
		o.Set = append(o.Set, v)
	}
	switch {
	case len(o.Targets) == 0:
		return usagef("what is to be set? hopbed set TARGET… KEY=VALUE…, such as hopbed set n01-n02 loss=5%%")
	case len(o.Set) == 0:
		return usagef("nothing is to be set of %s: give KEY=VALUE, such as loss=5%%", strings.Join(o.Targets, " "))
	case c.Bool("wire") && c.Bool("radio"):
		return usagef("--wire or --radio, not both")
	case c.Bool("wire"):
		o.Medium = lab.Wire
	case c.Bool("radio"):
		o.Medium = lab.Radio
	}
	l, err := selectLab(c.String("lab"))
	if err != nil {
		return err
	}
	changed, err := l.Set(o)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, changed)
	}
	for _, g := range grouped(changed) {
		if g.Was == g.Is {
			fmt.Fprintf(c.App.Writer, "%s: %s is %s already\n", clean(g.Target), clean(g.Key), clean(g.Is))
			continue
		}
		fmt.Fprintf(c.App.Writer, "%s: %s is %s, was %s\n", clean(g.Target), clean(g.Key), clean(g.Is), clean(g.Was))
	}
	return nil
}

// grouped joins equal changes of several targets.
func grouped(changed []lab.Changed) []lab.Changed {
	var out []lab.Changed
	for _, c := range changed {
		i := slices.IndexFunc(out, func(o lab.Changed) bool { return o.Key == c.Key && o.Was == c.Was && o.Is == c.Is })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].Target += " " + c.Target
	}
	return out
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func statusAction(c *cli.Context) error {
	if c.Args().Len() > 1 {
		return usagef("one lab at a time: %q is too much", c.Args().Get(1))
	}
	place, err := labPlace()
	if err != nil {
		return err
	}
	all, err := place.List()
	if err != nil {
		return err
	}
	name := c.Args().First()
	if name == "" && len(all) != 1 {
		return printLabs(c, place, all)
	}
	l, err := place.Select(name)
	if err != nil {
		return err
	}
	s, err := l.Status()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, s)
	}
	return printLab(c.App.Writer, s, false)
}

func printLabs(c *cli.Context, place *lab.Place, all []lab.Entry) error {
	if c.Bool("json") {
		if all == nil {
			all = []lab.Entry{}
		}
		return printJSON(c.App.Writer, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.App.Writer, "no lab stands: hopbed up FILE brings one up")
		return nil
	}
	tw := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "lab\tsince\texperiment\tstate")
	var errs []error
	for _, e := range all {
		state := "stands"
		if !e.Alive {
			state = "is no more: its keeper was killed"
			if e.Ended != "" {
				state = "is no more: " + e.Ended
			}
			errs = append(errs, place.Forget(e.Name)) // it has been told
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", e.Name, e.Since.Local().Format(time.DateTime), clean(e.Experiment), clean(state))
	}
	return errors.Join(append(errs, tw.Flush())...)
}

// printLab shows a lab; fresh says how to use it.
func printLab(w io.Writer, s *lab.Status, fresh bool) error {
	verb := "stands since " + s.Since.Local().Format(time.DateTime)
	if fresh {
		verb = "stands"
	}
	traits := []string{count(len(s.Nodes), "node")}
	if s.RadioLinks > 0 {
		traits = append(traits, count(s.RadioLinks/2, "radio link"))
	}
	if n := len(s.Wires) / 2; n > 0 {
		traits = append(traits, count(n, "wire"))
	}
	if !s.Routes {
		traits = append(traits, "no routes")
	}
	if s.IPv6 {
		traits = append(traits, "IPv6")
	}
	if s.Rootless {
		traits = append(traits, "without root")
	}
	fmt.Fprintf(w, "lab %s of %s %s: %s; the medium runs at %s\n\n", s.Name, clean(s.Experiment), verb, strings.Join(traits, ", "), clean(s.Priority))
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "node\taddress\tinterfaces\tstate")
	for _, n := range s.Nodes {
		state := "up"
		if !n.Up {
			state = "off"
		}
		if n.Radio != "" {
			state += "; " + n.Radio
		}
		if len(n.Processes) > 0 {
			state += "; runs " + strings.Join(n.Processes, ", ")
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", clean(n.Name), n.Addr, clean(strings.Join(n.Interfaces, " ")), clean(state))
	}
	for _, group := range []struct {
		head  string
		links []lab.LinkStatus
	}{{"wire", s.Wires}, {"radio link", s.Radio}} {
		if len(group.links) == 0 {
			continue
		}
		fmt.Fprintf(tw, "\n%s\tstate\n", group.head)
		for _, l := range group.links {
			fmt.Fprintf(tw, "%s:%s\t%s\n", clean(l.From), clean(l.To), clean(l.Text))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if s.Unnamed != "" {
		fmt.Fprintf(w, "\nnames of nodes are not known in nodes, use addresses: %s\n", clean(s.Unnamed))
	}
	if !fresh {
		fmt.Fprintf(w, "\n%slog: %s\n", lateness(s), clean(s.Log))
		return nil
	}
	a, b := s.Nodes[0].Name, s.Nodes[len(s.Nodes)-1].Name
	if s.Unnamed != "" {
		b = s.Nodes[len(s.Nodes)-1].Addr
	}
	tw = tabwriter.NewWriter(w, 0, 4, 3, ' ', 0)
	fmt.Fprintf(tw, "\nhopbed exec %s ping %s\truns anything in a node; without a command: a shell\n", a, b)
	example := s.Example
	if example == "" {
		example = a + " up=false"
	} else {
		example += " loss=5%"
	}
	fmt.Fprintf(tw, "hopbed set %s\tchanges it while it stands (hopbed set --help)\n", clean(example))
	fmt.Fprintf(tw, "hopbed status\tshows it\nhopbed down\ttakes it down\nlog\t%s\n", clean(s.Log))
	return tw.Flush()
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// lateness says how well the medium keeps time, by the bounds of runs.
func lateness(s *lab.Status) string {
	if s.Late == nil {
		return ""
	}
	what := "what is measured here stands on firm ground"
	switch {
	case *s.Late > emulator.WarnP99:
		what = "the host is too busy: delays and rates measured here are the host's as well"
	case *s.Late > emulator.ValidP99:
		what = "the host is busy: take what is measured here with care"
	}
	return fmt.Sprintf("lateness of the medium: 99%% of its events at most %v: %s\n", s.Late.Std().Round(time.Microsecond), what)
}

func downAction(c *cli.Context) error {
	if c.Args().Len() > 1 {
		return usagef("one lab at a time, or --all: %q is too much", c.Args().Get(1))
	}
	if !c.Bool("all") {
		l, err := selectLab(c.Args().First())
		if err != nil {
			return err
		}
		return down(c.App.Writer, l)
	}
	if c.Args().Present() {
		return usagef("--all, or the name of one")
	}
	place, err := labPlace()
	if err != nil {
		return err
	}
	all, err := place.List()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(c.App.Writer, "no lab stands")
	}
	var errs []error
	for _, e := range all {
		l, err := place.Select(e.Name)
		if _, ended := errors.AsType[*lab.Ended](err); ended {
			fmt.Fprintln(c.App.Writer, clean(err.Error())) // nothing is left to take down
			continue
		}
		if err == nil {
			err = down(c.App.Writer, l)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func down(w io.Writer, l *lab.Client) error {
	g, err := l.Down()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "lab %s is down: %s gone\n", l.Name, count(g.Nodes, "node"))
	if len(g.Processes) > 0 {
		fmt.Fprintf(w, "ended with it: %s\n", clean(strings.Join(g.Processes, ", ")))
	}
	if g.Left != "" {
		return fmt.Errorf("lab %s: %s", l.Name, g.Left)
	}
	return nil
}
