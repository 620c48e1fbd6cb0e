package site

import (
	"slices"

	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Plan returns a plan for real nodes: places and models mean nothing, the links
// are those that the file lists, and where it lists none, or wants it, those that
// probes measure.
func Plan(p *plan.Plan) *plan.Plan {
	q := p.Real()
	listed := slices.ContainsFunc(q.Runs, func(r plan.Run) bool { return len(r.Config().Topology.Links) > 0 || r.Measured() })
	if !listed {
		return q.Measure()
	}
	return q
}
