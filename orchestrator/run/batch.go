package run

import (
	"context"
	"errors"
	"time"

	"github.com/hopbed/hopbed/orchestrator/backend"
)

// ExecuteAll carries the plan out on one back end after the other, as campaigns
// of their own that the store knows to belong together: results of different
// back ends are never pooled. It returns the summaries of those that were begun.
// With Resume each goes on by itself. A back end that fails altogether
// (backend.Fatal) does not keep the plan from the next one; the user's stop and
// any other error do. o.Backend is not looked at.
func ExecuteAll(ctx context.Context, o Options, backends []backend.Backend) ([]Summary, error) {
	var sums []Summary
	var errs []error
	o.part = part{of: len(backends)}
	for i, b := range backends {
		o.Backend = b
		o.part.number = i + 1
		o.part.later = 0
		for _, later := range backends[i+1:] {
			o.part.later += expected(o, later)
		}
		sum, err := Execute(ctx, o)
		if sum.CampaignID != 0 {
			sums = append(sums, sum)
			if o.part.first == 0 && len(backends) > 1 {
				o.part.first = sum.CampaignID
			}
		}
		errs = append(errs, err)
		if sum.Interrupted || err != nil && !backend.IsFatal(err) {
			break
		}
		if ctx.Err() != nil && i+1 < len(backends) && len(sums) > 0 {
			sums[len(sums)-1].Interrupted = true // the rest was not begun
			break
		}
	}
	return sums, errors.Join(errs...)
}

// expected estimates the wall time of the whole plan on a back end.
func expected(o Options, b backend.Backend) time.Duration {
	return Estimate(b, len(o.Plan.Runs), o.Plan.Length())
}
