package main

import (
	"os"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/sim"
)

// backends is the table of back ends.
var backends = []struct {
	name string
	open func(stderr *os.File) (backend.Backend, error)
}{
	{"netns", openNetns},
	{sim.Name, func(*os.File) (backend.Backend, error) { return sim.New(), nil }},
}

func backendNames() []string {
	var out []string
	for _, b := range backends {
		out = append(out, b.name)
	}
	return out
}

func newBackend(name string, stderr *os.File) (backend.Backend, error) {
	for _, b := range backends {
		if b.name == name {
			return b.open(stderr)
		}
	}
	return nil, usagef("--backend %s: there is no such back end, use one of: %s", name, strings.Join(backendNames(), ", "))
}
