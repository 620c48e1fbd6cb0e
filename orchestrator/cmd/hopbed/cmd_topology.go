package main

import (
	"encoding/json"
	"fmt"
	"math"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

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
					tw := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
					fmt.Fprintln(tw, "node\tx\ty")
					for _, n := range s.Topology.Nodes {
						fmt.Fprintf(tw, "%s\t%.1f m\t%.1f m\n", clean(n.Name), float64(n.Position.X), float64(n.Position.Y))
					}
					if err := tw.Flush(); err != nil {
						return err
					}
					fmt.Fprintf(c.App.Writer, "\n%sflows by hops: %s\n", s.Topology.Summary(), hopHistogram(s))
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
				return f(c, s)
			}
		}
		return usagef("--repetition %d: the experiment has the repetitions 1 to %d", c.Int("repetition"), e.Base().Repeat)
	}
}

func exportTopology(c *cli.Context, s *plan.Scenario) error {
	type node struct {
		ID   int     `json:"id"`
		Name string  `json:"name"`
		X    float64 `json:"x_m"`
		Y    float64 `json:"y_m"`
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
		Flows []flow `json:"flows"`
	}{Seed: s.Topology.Seed}
	for _, n := range s.Topology.Nodes {
		out.Nodes = append(out.Nodes, node{n.ID, n.Name, float64(n.Position.X), float64(n.Position.Y)})
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
