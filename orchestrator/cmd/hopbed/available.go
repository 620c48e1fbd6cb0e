package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// withAvailable makes the plan of an experiment on a back end, without the
// transports of its matrix that this host lacks, such as a congestion control that
// its kernel has not: they are left out and told, never replaced. What else the
// back end refuses is an error, as is an experiment of which nothing remains.
func withAvailable(ctx context.Context, b backend.Backend, e *spec.Experiment) (*plan.Plan, []*backend.ErrUnsupported, error) {
	var left []*backend.ErrUnsupported
	for {
		p := plan.Build(e)
		err := b.Preflight(ctx, backend.PlanOn(b, p))
		var lacks *backend.ErrUnsupported
		if !errors.As(err, &lacks) {
			return p, left, err
		}
		change, ok := without(e, lacks.What)
		if !ok {
			return nil, left, err
		}
		if err := e.Set(change); err != nil {
			return nil, left, err
		}
		left = append(left, lacks)
	}
}

// without is the assignment that takes a transport out of the matrix; false where
// it is in none, or nothing would remain.
func without(e *spec.Experiment, transport string) (spec.Assignment, bool) {
	if !slices.Contains(spec.TransportNames(), transport) {
		return spec.Assignment{}, false
	}
	variable := ""
	var others []string
	for _, pt := range e.Points() {
		for _, q := range pt.Params {
			if q.Value == transport {
				variable = q.Name
			}
		}
	}
	for _, pt := range e.Points() {
		for _, q := range pt.Params {
			if q.Name == variable && q.Value != transport && !slices.Contains(others, q.Value) {
				others = append(others, q.Value)
			}
		}
	}
	if len(others) == 0 {
		return spec.Assignment{}, false
	}
	return spec.Assignment{Key: "matrix." + variable, Value: "[" + strings.Join(others, ", ") + "]"}, true
}
