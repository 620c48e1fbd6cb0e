package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/check"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
)

// Bounds of what is done to a node.
const (
	pushWithin  = 5 * time.Minute // an agent through a slow link
	cleanWithin = time.Minute
)

func deployCommand() *cli.Command {
	nodes := &cli.StringFlag{Name: "nodes", Usage: "only the nodes with these `NAMES`, separated by commas"}
	flags := func(more ...cli.Flag) []cli.Flag { return append(append(labFlags(), nodes), more...) }
	return &cli.Command{
		Name:  "deploy",
		Usage: "look at the real nodes of an inventory, and bring the agent to them",
		Subcommands: []*cli.Command{
			{
				Name:   "check",
				Usage:  "say of every node whether experiments can use it, each lack with its remedy; nothing is changed",
				Flags:  flags(&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "as JSON"}),
				Action: deployCheck,
			},
			{
				Name:   "push",
				Usage:  "put the agent on every node that has another one or none",
				Flags:  flags(),
				Action: deployPush,
			},
			{
				Name:   "clean",
				Usage:  "put back what killed agents have left on the nodes",
				Flags:  flags(),
				Action: deployClean,
			},
		},
	}
}

// chosenNodes are the nodes of the inventory that the command line means.
func chosenNodes(c *cli.Context, inv *inventory.Inventory) ([]inventory.Node, error) {
	if !c.IsSet("nodes") {
		return inv.Nodes, nil
	}
	var out []inventory.Node
	for _, name := range strings.Split(c.String("nodes"), ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(inv.Nodes, func(n inventory.Node) bool { return n.Name == name })
		if i < 0 {
			return nil, usagef("--nodes %s: %s has no node %q", c.String("nodes"), inv.Path, name)
		}
		if slices.ContainsFunc(out, func(n inventory.Node) bool { return n.Name == name }) {
			return nil, usagef("--nodes %s: %s stands there twice", c.String("nodes"), name)
		}
		out = append(out, inv.Nodes[i])
	}
	return out, nil
}

func openDeploy(c *cli.Context) (*labAccess, []inventory.Node, error) {
	lab, err := openLab(c, nil, func(s string) { fmt.Fprintln(c.App.ErrWriter, "hopbed:", clean(s)) })
	if err != nil {
		return nil, nil, err
	}
	nodes, err := chosenNodes(c, lab.Inventory)
	return lab, nodes, err
}

func deployCheck(c *cli.Context) error {
	lab, nodes, err := openDeploy(c)
	if err != nil {
		return err
	}
	found := check.Run(c.Context, check.Options{Dialer: lab.Dialer, Agents: lab.Agents}, nodes)
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.Bool("json") {
		enc := json.NewEncoder(c.App.Writer)
		enc.SetIndent("", "  ")
		err = enc.Encode(found)
	} else {
		err = check.Table(c.App.Writer, found)
	}
	if err != nil {
		return err
	}
	for _, n := range found {
		if !n.Usable {
			return &exit{code: exitError} // the table has said why
		}
	}
	return nil
}

// onNodes does something on every node, many at once, and writes a line for each as
// it is done; errors are counted, and said in the lines.
func onNodes(ctx context.Context, w io.Writer, lab *labAccess, nodes []inventory.Node, within time.Duration,
	do func(ctx context.Context, c sshclient.Client, n *inventory.Node, f agents.Facts) (string, error)) error {
	var mu sync.Mutex
	failed := 0
	errs := sshclient.Each(ctx, len(nodes), check.DefaultParallel, func(i int) error {
		n := &nodes[i]
		said, err := func() (string, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %v", within))
			defer cancel()
			c, err := lab.Dialer.Dial(ctx, n)
			if err != nil {
				return "", err
			}
			defer c.Close()
			f, err := agents.Examine(ctx, c, n)
			if err != nil {
				return "", err
			}
			said, err := do(ctx, c, n, f)
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return said, err
		}()
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed++
			said = "failed: " + strings.TrimPrefix(err.Error(), "node "+n.Name+": ")
		}
		fmt.Fprintf(w, "%s: %s\n", clean(n.Name), clean(strings.ReplaceAll(said, "\n", "; ")))
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		return ctx.Err()
	}
	if failed > 0 {
		return &exit{exitError, fmt.Errorf("%d of %d nodes failed: see above", failed, len(nodes))}
	}
	return nil
}

func deployPush(c *cli.Context) error {
	lab, nodes, err := openDeploy(c)
	if err != nil {
		return err
	}
	return onNodes(c.Context, c.App.Writer, lab, nodes, pushWithin, func(ctx context.Context, cl sshclient.Client, n *inventory.Node, f agents.Facts) (string, error) {
		b, err := lab.Agents.Agent(ctx, f.Arch)
		if err != nil {
			return "", err
		}
		began := time.Now()
		p, err := agents.Push(ctx, cl, n, f, b)
		if err != nil {
			return "", err
		}
		if !p.Uploaded {
			return fmt.Sprintf("unchanged: %s", p.Path), nil
		}
		return fmt.Sprintf("uploaded: %s (%s, %.1f MB, %s, %v)", p.Path, f.Arch, float64(b.Size)/1e6, b.From, time.Since(began).Round(100*time.Millisecond)), nil
	})
}

func deployClean(c *cli.Context) error {
	lab, nodes, err := openDeploy(c)
	if err != nil {
		return err
	}
	return onNodes(c.Context, c.App.Writer, lab, nodes, cleanWithin, func(ctx context.Context, cl sshclient.Client, n *inventory.Node, f agents.Facts) (string, error) {
		b, err := lab.Agents.Agent(ctx, f.Arch)
		if err != nil {
			return "", err
		}
		p, err := agents.Push(ctx, cl, n, f, b) // what another version left, this one can put back
		if err != nil {
			return "", err
		}
		out, err := agents.Clean(ctx, cl, f, p)
		if out == "" {
			out = "nothing to clean"
		}
		return out, err
	})
}
