//go:build !linux

package main

import (
	"context"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/internal/reexec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
)

// parts are the roles in which hopbed starts itself again: none here.
func parts() reexec.Table { return nil }

// unavailable says that emulated nodes need Linux.
func unavailable(what string) error {
	return &backend.ErrUnsupported{Backend: "netns", What: what,
		Because: "it needs the network namespaces of Linux, and this is " + runtime.GOOS, Do: "use --backend sim, which runs everywhere"}
}

func openNetns(context.Context, *opening) (backend.Backend, error) {
	return nil, unavailable("hopbed run")
}

func openSSH(context.Context, *opening) (backend.Backend, error) {
	return nil, &backend.ErrUnsupported{Backend: site.Name, What: "hopbed run",
		Because: "its controller needs the clock of Linux, and this is " + runtime.GOOS, Do: "run hopbed on a Linux host that reaches the nodes"}
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
