package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/journal"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:  "clean",
		Usage: "remove what a killed run left, by its journal; a running hopbed is left alone",
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
			if len(all) == 0 && err == nil {
				fmt.Fprintln(w, "nothing to clean")
			}
			return err
		},
	}
}
