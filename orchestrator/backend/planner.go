package backend

import "github.com/hopbed/hopbed/orchestrator/plan"

// Planner is implemented by back ends on which a plan means something else than
// on emulated nodes: what is real has no model.
type Planner interface {
	Plan(p *plan.Plan) *plan.Plan
}

// PlanOn returns the plan as a back end carries it out.
func PlanOn(b Backend, p *plan.Plan) *plan.Plan {
	if x, ok := b.(Planner); ok {
		return x.Plan(p)
	}
	return p
}
