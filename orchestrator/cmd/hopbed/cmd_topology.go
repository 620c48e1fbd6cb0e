package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/experiments/topology/interchange"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

func topologyCommand(stderr *os.File) *cli.Command {
	rep := &cli.IntFlag{Name: "repetition", Value: 1, Usage: "the placement of repetition `N`"}
	of := func(more ...cli.Flag) []cli.Flag { return append(append(changeFlags(), rep), more...) }
	out := &cli.StringFlag{Name: "o", Usage: "write to `FILE` instead of standard output"}
	return &cli.Command{
		Name:  "topology",
		Usage: "look at the network of an experiment, measure its links, exchange it with other tools",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "nodes, links and route lengths", ArgsUsage: "FILE|NAME", Flags: of(),
				Action: withScenario(func(c *cli.Context, s *plan.Scenario) error {
					if err := printNodes(c.App.Writer, s.Topology); err != nil {
						return err
					}
					fmt.Fprintf(c.App.Writer, "\n%sflows by hops: %s\n", s.Topology.Figures(), hopHistogram(s))
					tellUnmeasured(c.App.ErrWriter, s)
					return nil
				}),
			},
			{
				Name: "etx", Usage: "every usable link with its delivery and ETX, of the model or measured", ArgsUsage: "FILE|NAME",
				Description: "Without --measure the links are those of the radio model. With it the nodes are brought up on\n" +
					"the back end, broadcast probes as the block routing says (change it with --set\n" +
					"routing.probes=…, routing.period, routing.size, routing.rate), and are gone again; each direction is shown with its\n" +
					"95 % interval, beside what the model says of full data frames. --inventory measures real nodes;\n" +
					"no experiment is needed then.",
				Flags: of(append(labFlags(),
					&cli.BoolFlag{Name: "measure", DisableDefaultText: true, Usage: "measure the links by probes"},
					&cli.StringFlag{Name: "backend", DefaultText: "netns, or ssh with --inventory", Usage: "`NAME` of the back end to measure on"},
					&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, DisableDefaultText: true, Usage: "no progress"})...),
				Action: func(c *cli.Context) error {
					if c.Bool("measure") || c.IsSet("inventory") {
						return measureETX(c, stderr)
					}
					for _, f := range []string{"backend", "tags", "agents", "accept-new"} {
						if c.IsSet(f) {
							return usagef("--%s belongs to --measure", f)
						}
					}
					return withScenario(modelETX)(c)
				},
			},
			{
				Name: "import", Usage: "turn the topology file of another tool into a part of an experiment file", ArgsUsage: "FILE",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "format", DefaultText: "by what the file holds", Usage: "`FORMAT` of the file: " + strings.Join(interchange.Formats(), ", ")},
					&cli.BoolFlag{Name: "largest", DisableDefaultText: true, Usage: "take only the largest set of nodes that reach each other"},
					out,
				},
				Action: importTopology,
			},
			{
				Name: "export", Usage: "nodes, links and flows as JSON, or the links in the format of another tool", ArgsUsage: "FILE|NAME",
				Flags:  of(&cli.StringFlag{Name: "format", Value: exportJSON, Usage: "`FORMAT`: " + strings.Join(exportFormats(), ", ")}, out),
				Action: withScenario(exportAs),
			},
			{
				Name: "draw", Usage: "draw nodes and links as SVG", ArgsUsage: "FILE|NAME",
				Flags:  of(&cli.BoolFlag{Name: "spread", DisableDefaultText: true, Usage: "place nodes by their links, not by their positions"}, out),
				Action: withScenario(drawTopology),
			},
		},
	}
}

// tellUnmeasured says that routes are not those that runs will have.
func tellUnmeasured(w io.Writer, s *plan.Scenario) {
	if s.Unmeasured() {
		fmt.Fprintln(w, "the routes are those of the radio model: the experiment measures its links before its first run")
	}
}

// modelETX shows the links of the radio model.
func modelETX(c *cli.Context, s *plan.Scenario) error {
	tw := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "from\tto\tdistance\tSNR\tdelivery\treverse\tETX")
	for _, l := range s.Topology.Links {
		if !l.Usable {
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%.1f m\t%.1f dB\t%.4f\t%.4f\t%.3f\n", clean(s.Topology.Nodes[l.From].Name), clean(s.Topology.Nodes[l.To].Name),
			float64(l.Distance), float64(l.SNR), l.Delivery, l.Reverse, l.ETX)
	}
	return tw.Flush()
}

// sameNetwork is the number of points with the network of the first.
func sameNetwork(points []spec.Point) int {
	n := 0
	for _, p := range points {
		if reflect.DeepEqual(p.Config.Topology, points[0].Config.Topology) {
			n++
		}
	}
	return n
}

// differing is the first variable with which the network changes.
func differing(points []spec.Point) string {
	for _, p := range points {
		if reflect.DeepEqual(p.Config.Topology, points[0].Config.Topology) {
			continue
		}
		for i, q := range p.Params {
			if q.Value != points[0].Params[i].Value {
				return q.Name
			}
		}
	}
	return ""
}

func printNodes(w io.Writer, t *topology.Topology) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if len(t.Pipes) == 0 {
		fmt.Fprintln(tw, "node\tx\ty")
		for _, n := range t.Nodes {
			fmt.Fprintf(tw, "%s\t%.1f m\t%.1f m\n", clean(n.Name), float64(n.Position.X), float64(n.Position.Y))
		}
		return tw.Flush()
	}
	fmt.Fprintln(tw, "node\tx\ty\tinterfaces")
	for i, n := range t.Nodes {
		x, y := fmt.Sprintf("%.1f m", float64(n.Position.X)), fmt.Sprintf("%.1f m", float64(n.Position.Y))
		if !n.Radio && n.Position == (wifi.Position{}) {
			x, y = "–", "–"
		}
		faces := strings.Join(t.InterfaceNames(i), ", ")
		if n.Bridge {
			faces = "br0 (" + faces + ")"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", clean(n.Name), x, y, clean(faces))
	}
	fmt.Fprintln(tw, "\nwire\tfrom\tto\tdirection")
	for _, p := range t.Pipes {
		for e := range p.Ends {
			at := func(e int) string { return clean(t.Nodes[p.Ends[e]].Name + " " + p.Interfaces[e]) }
			fmt.Fprintf(tw, "%d\t%s\t%s\t%s\n", p.ID, at(e), at(1-e), topology.DescribeDirection(&p.Config[e]))
		}
	}
	return tw.Flush()
}

func withScenario(f func(*cli.Context, *plan.Scenario) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		e, err := load(c)
		if err != nil {
			return err
		}
		for _, r := range plan.Build(e).Runs {
			if r.Repetition == c.Int("repetition") {
				s, err := r.Scenario()
				if err != nil {
					return err
				}
				if sameNetwork(e.Points()) < len(e.Points()) {
					fmt.Fprintf(c.App.ErrWriter, "the network of the point %s; others have another one: choose by --set 'matrix.%s=[…]'\n", clean(r.Label()), differing(e.Points()))
				}
				return f(c, s)
			}
		}
		return usagef("--repetition %d: the experiment has the repetitions 1 to %d", c.Int("repetition"), e.Base().Repeat)
	}
}

func exportTopology(w io.Writer, s *plan.Scenario) error {
	type node struct {
		ID         int      `json:"id"`
		Name       string   `json:"name"`
		X          *float64 `json:"x_m"` // null: the node has no place
		Y          *float64 `json:"y_m"`
		Radio      bool     `json:"radio"`
		Bridge     bool     `json:"bridge"`
		Interfaces []string `json:"interfaces"`
	}
	type pipe struct {
		ID        int     `json:"id"`
		From      int     `json:"from"`
		To        int     `json:"to"`
		Interface string  `json:"interface"` // at from
		Rate      int64   `json:"rate_bps,omitempty"`
		Delay     float64 `json:"delay_s"`
		Loss      float64 `json:"loss"`
		ETX       float64 `json:"etx,omitempty"` // missing where nothing passes
		Setting   string  `json:"setting"`
	}
	type link struct {
		From     int      `json:"from"`
		To       int      `json:"to"`
		Delivery float64  `json:"delivery"`
		SNR      float64  `json:"snr_db"`
		ETX      *float64 `json:"etx"`
		Usable   bool     `json:"usable"`
		Senses   bool     `json:"senses"`
	}
	type flow struct {
		ID   int   `json:"id"`
		Path []int `json:"path"`
	}
	out := struct {
		Seed  uint64 `json:"seed"`
		Nodes []node `json:"nodes"`
		Links []link `json:"links"`
		Pipes []pipe `json:"pipes"` // one for each direction
		Flows []flow `json:"flows"`
	}{Seed: s.Topology.Seed, Nodes: []node{}, Links: []link{}, Pipes: []pipe{}, Flows: []flow{}}
	for i, n := range s.Topology.Nodes {
		k := node{ID: n.ID, Name: n.Name, Radio: n.Radio, Bridge: n.Bridge, Interfaces: s.Topology.InterfaceNames(i)}
		if n.Radio {
			x, y := float64(n.Position.X), float64(n.Position.Y)
			k.X, k.Y = &x, &y
		}
		out.Nodes = append(out.Nodes, k)
	}
	for _, p := range s.Topology.Pipes {
		for e, cfg := range p.Config {
			k := pipe{p.ID, p.Ends[e], p.Ends[1-e], p.Interfaces[e], int64(cfg.Rate), cfg.Delay.Seconds(), cfg.Loss.Mean(), p.ETX(), topology.DescribeDirection(&cfg)}
			if math.IsInf(k.ETX, 0) {
				k.ETX = 0
			}
			out.Pipes = append(out.Pipes, k)
		}
	}
	for _, l := range s.Topology.Links {
		k := link{From: l.From, To: l.To, Delivery: l.Delivery, SNR: float64(l.SNR), Usable: l.Usable, Senses: l.Senses}
		if !math.IsInf(l.ETX, 0) {
			k.ETX = &l.ETX
		}
		out.Links = append(out.Links, k)
	}
	for _, f := range s.Flows {
		out.Flows = append(out.Flows, flow{f.ID, f.Path})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
