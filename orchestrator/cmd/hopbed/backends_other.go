//go:build !linux

package main

import (
	"context"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/orchestrator/backend"
)

// parts are the roles in which hopbed starts itself again: none here.
func parts() reexec.Table { return nil }

// unavailable says that emulated nodes need Linux.
func unavailable(what string) error {
	return &backend.ErrUnsupported{Backend: "netns", What: what,
		Because: "it needs the network namespaces of Linux, and this is " + runtime.GOOS, Do: "use --backend sim, which runs everywhere"}
}

func openNetns(context.Context, func(string)) (backend.Backend, error) {
	return nil, unavailable("hopbed run")
}

// ensureRoot has nothing to do where there are no emulated nodes.
func ensureRoot(context.Context) error { return nil }

func benchCommand() *cli.Command {
	return &cli.Command{
		Name: "bench", Usage: "measure the emulated medium and the start of nodes (Linux)",
		Action: func(*cli.Context) error { return unavailable("hopbed bench") },
	}
}

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name: "clean", Usage: "remove what a killed run left (Linux)",
		Action: func(*cli.Context) error { return unavailable("hopbed clean") },
	}
}
