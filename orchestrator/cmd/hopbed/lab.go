package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/deploy/sshclient"
	"github.com/hopbed/hopbed/deploy/sshconfig"
	"github.com/hopbed/hopbed/experiments/spec"
)

// labAccess is a lab and how its nodes are reached.
type labAccess struct {
	Inventory *inventory.Inventory
	Dialer    sshclient.Dialer
	Agents    agents.Source
}

// labFlags are the options of commands that go to real nodes.
func labFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "inventory", Usage: "`FILE` that lists the real nodes, such as lab.yaml"},
		&cli.StringSliceFlag{Name: "tags", Usage: "take only nodes of the inventory that have this `TAG` (repeatable)"},
		&cli.StringFlag{Name: "agents", Usage: "`FOLDER` with the agents' programs (hopbed-agent-ARCH), instead of those beside hopbed or built from its source"},
		&cli.BoolFlag{Name: "accept-new", DisableDefaultText: true, Usage: "take the keys of hosts that known_hosts does not know, and write them there; keys that differ are refused all the same"},
	}
}

// openLab reads the inventory that the command line names, else the experiment's,
// and prepares the way to its nodes. Nothing is reached yet.
func openLab(c *cli.Context, e *spec.Experiment, warn func(string)) (*labAccess, error) {
	path := c.String("inventory")
	if path == "" && e != nil && e.Base().Topology.Inventory != "" {
		if path = filepath.FromSlash(e.Base().Topology.Inventory); !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(e.File), path)
		}
	}
	if path == "" {
		return nil, usagef("which nodes? Give --inventory FILE, or topology.inventory in the experiment")
	}
	inv, err := inventory.Read(path)
	if err != nil {
		return nil, err
	}
	all := inv.Nodes // a jump host need not have the tags
	if tags := c.StringSlice("tags"); len(tags) > 0 {
		if inv, err = inv.Tagged(tags); err != nil {
			return nil, err
		}
	}
	env, err := sshconfig.OfProcess()
	if err != nil {
		return nil, err
	}
	cfg, err := sshconfig.Load(sshconfig.Default(env), env)
	if err != nil {
		return nil, err
	}
	return &labAccess{
		Inventory: inv,
		Agents:    &agents.Finder{Dir: c.String("agents")},
		Dialer: sshclient.New(sshclient.Options{
			Config: cfg, Nodes: all, Passphrase: askPassphrase(), AcceptNew: c.Bool("accept-new"),
			Warn: func(node, what string) { warn(fmt.Sprintf("node %s: %s", node, what)) },
		}),
	}, nil
}

// askPassphrase asks on the terminal, nil where there is none.
func askPassphrase() func(context.Context, string, bool) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if !term.IsTerminal(int(tty.Fd())) {
		tty.Close()
		return nil
	}
	return func(_ context.Context, file string, again bool) ([]byte, error) {
		wrong := ""
		if again {
			wrong = "that was not it; "
		}
		fmt.Fprintf(tty, "%spassphrase of %s (empty: leave the key out): ", wrong, file)
		b, err := term.ReadPassword(int(tty.Fd()))
		fmt.Fprintln(tty)
		return b, err
	}
}
