package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/orchestrator/doctor"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what this host can do, each lack with its remedy",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "as JSON"}},
		Action: func(c *cli.Context) error {
			// What run can do is what counts: without root it makes itself root of a
			// user namespace first.
			noRoot := ensureRoot(c.Context)
			var done *exit
			if errors.As(noRoot, &done) {
				return done
			}
			checks := doctor.Examine(noRoot)
			if c.Bool("json") {
				enc := json.NewEncoder(c.App.Writer)
				enc.SetIndent("", "  ")
				if err := enc.Encode(checks); err != nil {
					return err
				}
			} else {
				for _, k := range checks {
					fmt.Fprintf(c.App.Writer, "%-5s %s: %s\n", k.State, k.Name, clean(k.Found))
					if k.Cost != "" {
						fmt.Fprintf(c.App.Writer, "      costs:  %s\n", k.Cost)
					}
					if k.Remedy != "" {
						fmt.Fprintf(c.App.Writer, "      remedy: %s\n", k.Remedy)
					}
				}
			}
			if !doctor.Ready(checks) {
				return &exit{exitError, errors.New("this host cannot run emulated nodes: see the lacks above")}
			}
			return nil
		},
	}
}
