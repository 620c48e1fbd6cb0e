package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/backend/sim"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// opening is what back ends are opened with.
type opening struct {
	warn func(string) // takes what the user should know before the runs
	// viaSSH reaches emulated nodes through a server in each namespace.
	viaSSH bool
	// lab are the real nodes, nil where the command line and the file name none.
	lab *labAccess
	// stopOnLoss ends a campaign with the first real node that is lost.
	stopOnLoss bool
}

// backends is the table of back ends.
var backends = []struct {
	name string
	open func(ctx context.Context, o *opening) (backend.Backend, error)
}{
	{"netns", openNetns},
	{sim.Name, func(context.Context, *opening) (backend.Backend, error) { return sim.New(), nil }},
	{site.Name, openSSH},
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
	case c.IsSet("inventory") || e.Base().Topology.Inventory != "":
		names = []string{site.Name} // who names real nodes means them
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

// planOn is a plan as the back end of a name carries it out.
func planOn(name string, p *plan.Plan) *plan.Plan {
	if name == site.Name {
		return site.Plan(p)
	}
	return p
}

// openBackends opens the back ends of these names. The function that it returns
// gives all back that were opened, whatever the error.
func openBackends(ctx context.Context, names []string, o *opening) (on []backend.Backend, shut func() error, err error) {
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
			opened, err := b.open(ctx, o)
			if err != nil {
				return on, shut, err
			}
			on = append(on, opened)
		}
	}
	return on, shut, nil
}
