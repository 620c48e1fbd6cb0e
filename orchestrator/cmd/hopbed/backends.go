package main

import (
	"context"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/sim"
)

// backends is the table of back ends. warn takes what the user should know
// before the runs.
var backends = []struct {
	name string
	open func(ctx context.Context, warn func(string)) (backend.Backend, error)
}{
	{"netns", openNetns},
	{sim.Name, func(context.Context, func(string)) (backend.Backend, error) { return sim.New(), nil }},
}

func backendNames() []string {
	var out []string
	for _, b := range backends {
		out = append(out, b.name)
	}
	return out
}

func newBackend(ctx context.Context, name string, warn func(string)) (backend.Backend, error) {
	for _, b := range backends {
		if b.name == name {
			return b.open(ctx, warn)
		}
	}
	return nil, usagef("--backend %s: there is no such back end, use one of: %s", name, strings.Join(backendNames(), ", "))
}
