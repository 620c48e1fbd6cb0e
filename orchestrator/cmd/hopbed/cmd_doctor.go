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
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "as JSON"}},
		Action: func(c *cli.Context) error {
			checks := doctor.Examine()
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
