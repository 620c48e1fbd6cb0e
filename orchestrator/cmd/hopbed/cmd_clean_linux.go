package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/agent/transport/bundle/daemon"
	"github.com/hopbed/hopbed/internal/journal"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:  "clean",
		Usage: "remove what a killed run left; a running hopbed is left alone",
		Action: func(c *cli.Context) error {
			dir, err := journal.DefaultDir()
			if err != nil {
				return err
			}
			all, err := sweep(c.Context, dir)
			w := c.App.Writer
			for _, k := range all {
				switch {
				case k.Alive:
					fmt.Fprintf(w, "%s: in use by %s, left alone\n", clean(k.Tag), clean(k.Owner))
				case len(k.Removed)+len(k.Left) == 0:
					fmt.Fprintf(w, "%s was killed and left nothing but its journal\n", clean(k.Owner))
				}
				for _, r := range k.Removed {
					fmt.Fprintf(w, "removed what %s left: %s\n", clean(k.Owner), clean(r))
				}
			}
			stored, err2 := daemon.SweepStorage(os.TempDir())
			for _, path := range stored {
				fmt.Fprintf(w, "removed bundles that a killed agent left: %s\n", clean(path))
			}
			if err = errors.Join(err, err2); len(all)+len(stored) == 0 && err == nil {
				fmt.Fprintln(w, "nothing to clean")
			}
			return err
		},
	}
}
