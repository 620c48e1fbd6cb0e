package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/journal"
)

func cleanCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name:  "clean",
		Usage: "remove what a killed run left, by its journal; a running hopbed is left alone",
		Action: func(c *cli.Context) error {
			dir, err := journal.DefaultDir()
			if err != nil {
				return err
			}
			return sweep(c.Context, dir, stderr, true)
		},
	}
}
