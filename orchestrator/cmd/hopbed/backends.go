package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
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

// defaultBackend is where a file is run that names no back end.
const defaultBackend = "netns"

// chosenBackends are the names of the back ends to run on: the command line's,
// else the file's, else the default.
func chosenBackends(c *cli.Context, e *spec.Experiment) ([]string, error) {
	var names []string
	switch {
	case c.IsSet("backend"):
		for _, n := range strings.Split(c.String("backend"), ",") {
			names = append(names, strings.TrimSpace(n))
		}
	case len(e.Base().Backends) > 0:
		for _, b := range e.Base().Backends {
			names = append(names, string(b))
		}
	default:
		names = []string{defaultBackend}
	}
	for i, n := range names {
		if !slices.Contains(backendNames(), n) {
			return nil, usagef("--backend %s: there is no back end %q, use one of: %s", strings.Join(names, ","), n, strings.Join(backendNames(), ", "))
		}
		if slices.Contains(names[:i], n) {
			return nil, usagef("--backend %s: %s stands there twice", strings.Join(names, ","), n)
		}
	}
	return names, nil
}

// openBackends opens the back ends of these names. The function that it returns
// gives all back that were opened, whatever the error.
func openBackends(ctx context.Context, names []string, warn func(string)) (on []backend.Backend, shut func() error, err error) {
	shut = func() error {
		var errs []error
		for _, b := range on {
			errs = append(errs, b.Close())
		}
		return errors.Join(errs...)
	}
	for _, n := range names {
		for _, b := range backends {
			if b.name != n {
				continue
			}
			opened, err := b.open(ctx, warn)
			if err != nil {
				return on, shut, err
			}
			on = append(on, opened)
		}
	}
	return on, shut, nil
}
