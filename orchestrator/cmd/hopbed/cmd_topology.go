package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

func topologyCommand() *cli.Command {
	rep := &cli.IntFlag{Name: "repetition", Value: 1, Usage: "the placement of repetition `N`"}
	return &cli.Command{
		Name:  "topology",
		Usage: "look at the network of an experiment",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "nodes, links and route lengths", ArgsUsage: "FILE|NAME", Flags: append(changeFlags(), rep),
				Action: withScenario(func(c *cli.Context, s *plan.Scenario) error {
					if err := printNodes(c.App.Writer, s.Topology); err != nil {
						return err
					}
					fmt.Fprintf(c.App.Writer, "\n%sflows by hops: %s\n", s.Topology.Figures(), hopHistogram(s))
					return nil
				}),
			},
			{
				Name: "etx", Usage: "every usable link with its delivery and ETX", ArgsUsage: "FILE|NAME", Flags: append(changeFlags(), rep),
				Action: withScenario(func(c *cli.Context, s *plan.Scenario) error {
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
				}),
			},
			{
				Name: "export", Usage: "nodes, links and flows as JSON", ArgsUsage: "FILE|NAME", Flags: append(changeFlags(), rep),
				Action: withScenario(exportTopology),
			},
		},
	}
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

func exportTopology(c *cli.Context, s *plan.Scenario) error {
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
	enc := json.NewEncoder(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
