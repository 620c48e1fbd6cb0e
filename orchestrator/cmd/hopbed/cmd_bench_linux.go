package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/orchestrator/bench"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what this machine can emulate, and what Hop carries on it",
		Subcommands: []*cli.Command{
			{
				Name: "medium", Usage: "frames per second and lateness of the live medium, cells of two nodes, a mesh of TCP flows and wired pairs",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "cells", Usage: "numbers of nodes in cells of two, `N,N,…`", Value: "16,32,64,128"},
					&cli.StringFlag{Name: "wires", Usage: "numbers of nodes wired in pairs, `N,N,…`", Value: "128"},
					&cli.IntFlag{Name: "mesh", Usage: "a mesh of `N` nodes, with as many TCP flows; 0 for none", Value: 100},
				},
				Action: func(c *cli.Context) error {
					cells, err := counts(c.String("cells"))
					if err != nil {
						return err
					}
					wires, err := counts(c.String("wires"))
					if err != nil {
						return err
					}
					mesh := c.Int("mesh")
					switch {
					case mesh == 0:
						mesh = -1
					case mesh < 2 || mesh > 1000:
						return usagef("--mesh %d: want a number of nodes from 2 to 1000, or 0 for no mesh", mesh)
					}
					return withLab(c.Context, func(lab bench.Common) error {
						_, err := bench.Medium(c.Context, c.App.Writer, bench.MediumOptions{Common: lab, Cells: cells, Mesh: mesh, Wires: wires})
						return err
					})
				},
			},
			{
				Name: "hop", Usage: "what Hop carries over a veth pair between two namespaces, beside TCP and UDP of iperf3",
				Flags: []cli.Flag{
					&cli.DurationFlag{Name: "span", Usage: "measure each flow for `TIME`", Value: 5 * time.Second},
					&cli.IntFlag{Name: "repeat", Usage: "make `N` rounds", Value: 1},
				},
				Action: func(c *cli.Context) error {
					span, repeat := c.Duration("span"), c.Int("repeat")
					switch {
					case span < time.Second || span > 10*time.Minute:
						return usagef("--span %v: want 1s to 10m", span)
					case repeat < 1 || repeat > 100:
						return usagef("--repeat %d: want 1 to 100", repeat)
					}
					return withLab(c.Context, func(lab bench.Common) error {
						_, err := bench.Hop(c.Context, c.App.Writer, bench.HopOptions{Common: lab, Span: span, Repeat: repeat})
						return err
					})
				},
			},
			{
				Name: "nodes", Usage: "time to bring namespaces up and down",
				Flags: []cli.Flag{&cli.StringFlag{Name: "counts", Usage: "numbers of nodes, `N,N,…`", Value: "10,100,400"}},
				Action: func(c *cli.Context) error {
					n, err := counts(c.String("counts"))
					if err != nil {
						return err
					}
					return withLab(c.Context, func(lab bench.Common) error {
						_, err := bench.Nodes(c.Context, c.App.Writer, bench.NodesOptions{Common: lab, Counts: n})
						return err
					})
				},
			},
		},
	}
}

// withLab gives f the privileges and the journal that nodes need.
func withLab(ctx context.Context, f func(bench.Common) error) (err error) {
	if err := ensureRoot(ctx); err != nil {
		return err
	}
	survivePipes()
	dir, err := journal.DefaultDir()
	if err != nil {
		return err
	}
	j, err := journal.Open(dir, journal.NewTag())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return f(bench.Common{Tag: j.Tag(), Journal: j.Record})
}

func counts(s string) ([]int, error) {
	var out []int
	for _, f := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 2 || n > 1000 {
			return nil, usagef("%q: want numbers of nodes from 2 to 1000, separated by commas", s)
		}
		out = append(out, n)
	}
	return out, nil
}
