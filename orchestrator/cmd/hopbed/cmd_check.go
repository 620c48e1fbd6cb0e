package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/backend/sim"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

func listCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "show the shipped experiments, how long each takes in real time, and the papers that can be reproduced",
		Action: func(c *cli.Context) error {
			w := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "name\truns\ton netns, about\ttitle")
			for _, n := range library.Names() {
				e, err := read(n)
				if err != nil {
					return err
				}
				p := plan.Build(e)
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", n, len(p.Runs), roundTime(p.WallTime(wallPerRun)), e.Base().Title)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			return listPapers(c.App.Writer)
		},
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "validate an experiment and show its plan; changes nothing",
		ArgsUsage: "FILE|NAME",
		Flags: append(changeFlags(),
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print the plan as JSON"}),
		Action: func(c *cli.Context) error {
			e, err := load(c)
			if err != nil {
				return err
			}
			p := plan.Build(e)
			if slices.Contains(e.Base().Backends, sim.Name) {
				// What the file's own back end of virtual time lacks is known without a
				// host; what a kernel has is seen where it runs.
				if err := sim.New().Preflight(c.Context, p); err != nil {
					return err
				}
			}
			if onRealNodes(e) {
				p = planOn(site.Name, p)
			}
			note := layingOut(c.App.ErrWriter, p, 2*time.Second)
			if c.Bool("json") {
				return planJSON(c.App.Writer, p, note)
			}
			return printPlan(c.App.Writer, p, note)
		},
	}
}

// onRealNodes tells that a file is meant for real nodes alone.
func onRealNodes(e *spec.Experiment) bool {
	on := e.Base().Backends
	if len(on) == 0 {
		return e.Base().Topology.Inventory != ""
	}
	return !slices.ContainsFunc(on, func(b spec.Backend) bool { return b != spec.BackendSSH })
}

// layOutForCheck lays a run out as far as can be known: of real nodes whose links
// are still to be measured, without its flows.
func layOutForCheck(r plan.Run) (s *plan.Scenario, measured bool, err error) {
	if r.Unmeasured() && r.Real() {
		s, err = r.Network()
		return s, true, err
	}
	s, err = r.Scenario()
	return s, false, err
}

// wallPerRun is the time that bringing a netns run's nodes up and down takes
// beside its length.
const wallPerRun = time.Second

// maxNetworks bounds the repetitions whose networks a plan shows.
const maxNetworks = 5

// layingOut returns a function that says on w, once it takes longer than
// patience, how many networks of a plan have been laid out.
func layingOut(w io.Writer, p *plan.Plan, patience time.Duration) func(done int) {
	next := time.Now().Add(patience)
	return func(done int) {
		if now := time.Now(); now.After(next) {
			next = now.Add(5 * time.Second)
			fmt.Fprintf(w, "laying out every run's network, to find what does not fit before it runs: %d of %d\n", done, len(p.Runs))
		}
	}
}

func printPlan(w io.Writer, p *plan.Plan, note func(done int)) error {
	e, base := p.Experiment, p.Experiment.Base()
	fmt.Fprintln(w, nameAndTitle(base))
	if base.Reference != "" {
		fmt.Fprintf(w, "compared with: %s\n", base.Reference)
	}
	if len(base.Backends) > 0 {
		fmt.Fprintf(w, "back ends: %s (unless --backend says otherwise)\n", strings.Join(backendsOf(base), ", then "))
	}
	on := defaultBackend
	if onRealNodes(e) {
		on = site.Name
	}
	fmt.Fprintf(w, "%d points × %d repetitions = %d runs of %v (%s, %v measured); about %v on %s\n",
		len(e.Points()), base.Repeat, len(p.Runs), base.Warmup+base.Duration, warmupText(base), base.Duration, roundTime(p.WallTime(wallPerRun)), on)
	if n, d := p.SurveyTime(); n > 0 {
		until := "; until then routes and flows are shown as the radio model has them"
		if onRealNodes(e) {
			until = ""
		}
		fmt.Fprintf(w, "before the first run the links of %d networks are measured, %v in all%s\n", n, roundTime(d.Std()), until)
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "run\trepetition\tseed\tpoint\tlength")
	for i, r := range p.Runs {
		if i == 60 {
			fmt.Fprintf(tw, "…\t\t\t%d more\t\n", len(p.Runs)-i)
			break
		}
		fmt.Fprintf(tw, "%d\t%d\t%d\t%s\t%v\n", i+1, r.Repetition, r.Seed, clean(r.Label()), r.Length())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	printFlows(w, p)
	printImport(w, base)
	if err := printNetworks(w, p, note); err != nil {
		return err
	}
	for i, t := range p.Warnings() {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, "warning:", t)
	}
	return nil
}

// printNetworks lays out every run and shows the networks: of the first
// repetitions, and those that differ between points.
func printNetworks(w io.Writer, p *plan.Plan, note func(done int)) error {
	type network struct {
		text        string
		label       string // of the first point that has it
		first, last int    // repetitions
	}
	var shown []network
	more := 0
	for i, r := range p.Runs {
		note(i)
		s, measured, err := layOutForCheck(r)
		if err != nil {
			return err
		}
		if r.Repetition > maxNetworks {
			continue
		}
		text := fmt.Sprintf("%sflows by hops: %s\n", s.Topology.Summary(), hopHistogram(s))
		if measured {
			text = fmt.Sprintf("%d real nodes; their links are measured before the first run, and pairs and routes follow from them\n", len(s.Topology.Nodes))
		}
		k := slices.IndexFunc(shown, func(n network) bool { return n.text == text })
		switch {
		case k >= 0:
			shown[k].last = r.Repetition
		case len(shown) == 2*maxNetworks:
			more++
		default:
			n := network{text: text, first: r.Repetition, last: r.Repetition}
			if r.Point.Index > 0 {
				n.label = ", " + clean(r.Label())
			}
			shown = append(shown, n)
		}
	}
	for _, n := range shown {
		if n.first == n.last {
			fmt.Fprintf(w, "\nrepetition %d%s:\n%s", n.first, n.label, n.text)
		} else {
			fmt.Fprintf(w, "\nrepetitions %d to %d%s:\n%s", n.first, n.last, n.label, n.text)
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "\n… and other networks in %d more of these runs: hopbed topology show\n", more)
	}
	if n := p.Experiment.Base().Repeat; n > maxNetworks {
		fmt.Fprintf(w, "\n… and repetitions %d to %d, which can be laid out as well\n", maxNetworks+1, n)
	}
	return nil
}

func backendsOf(c *spec.Config) []string {
	out := []string{}
	for _, b := range c.Backends {
		out = append(out, string(b))
	}
	return out
}

func nameAndTitle(c *spec.Config) string {
	if c.Title == "" {
		return c.Name
	}
	return c.Name + ": " + clean(c.Title)
}

func hopHistogram(s *plan.Scenario) string {
	var count [64]int
	for _, f := range s.Flows {
		if f.Role != spec.Requests {
			count[min(f.Hops(), 63)]++
		}
	}
	out := ""
	for h, n := range count {
		if n > 0 {
			if out != "" {
				out += ", "
			}
			out += fmt.Sprintf("%d × %d", n, h)
		}
	}
	return out
}

func planJSON(w io.Writer, p *plan.Plan, note func(done int)) error {
	type runJSON struct {
		Run        int               `json:"run"`
		Repetition int               `json:"repetition"`
		Seed       uint64            `json:"seed"`
		Params     map[string]string `json:"params"`
		LengthS    float64           `json:"length_s"`
	}
	base := p.Experiment.Base()
	out := struct {
		Name      string    `json:"name"`
		Title     string    `json:"title"`
		Quick     bool      `json:"quick"`
		WarmupS   float64   `json:"warmup_s"`
		DurationS float64   `json:"duration_s"`
		WallS     float64   `json:"expected_wall_s"`
		Backends  []string  `json:"backends"` // of the file
		Warnings  []string  `json:"warnings"`
		Runs      []runJSON `json:"runs"`
	}{
		Name: base.Name, Title: base.Title, Quick: p.Experiment.Quick, WarmupS: base.Warmup.Seconds(),
		DurationS: base.Duration.Seconds(), Backends: backendsOf(base), WallS: vtime.FromStd(p.WallTime(wallPerRun)).Seconds(), Warnings: p.Warnings(),
	}
	for i, r := range p.Runs {
		note(i)
		j := runJSON{Run: r.Index + 1, Repetition: r.Repetition, Seed: r.Seed, Params: map[string]string{}, LengthS: r.Length().Seconds()}
		for _, q := range r.Point.Params {
			j.Params[q.Name] = q.Value
		}
		out.Runs = append(out.Runs, j)
		if _, _, err := layOutForCheck(r); err != nil {
			return err
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func warmupText(c *spec.Config) string {
	if c.Warmup == 0 {
		return "no warm-up"
	}
	return c.Warmup.String() + " warm-up"
}

// printImport says what an imported network was not clear about.
func printImport(w io.Writer, c *spec.Config) {
	m := c.Topology.Import
	if m == nil || len(m.Notes) == 0 {
		return
	}
	fmt.Fprintf(w, "\nimported from %s (%s):\n", clean(m.File), m.Format)
	for _, n := range m.Notes {
		fmt.Fprintf(w, "  %s\n", clean(n))
	}
}
