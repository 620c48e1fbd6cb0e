package dataset

import (
	"math"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// A sized flow ends when its data are delivered. Its goodput is its size over
// the measured interval however fast it was, so such flows are compared by the
// time they took.

// CompletionTime returns how long a sized flow took from its start until its
// data were delivered, in seconds. A flow that had not completed has the time
// from its start until the end of the run and done false: it is censored, its
// true time is longer.
func CompletionTime(r *store.Run, f *store.Flow) (s float64, done bool) {
	if f.CompletionS.OK {
		return math.Max(0, f.CompletionS.V-f.StartS), true
	}
	end := r.WarmupS + r.DurationS
	if f.StopS > f.StartS && f.StopS < end {
		end = f.StopS
	}
	return math.Max(0, end-f.StartS), false
}

// sized reports whether there are flows and all of them are sized.
func sized(flows []store.Flow) bool {
	for i := range flows {
		if !flows[i].Size.OK {
			return false
		}
	}
	return len(flows) > 0
}

// Completion describes the completion times of a series of sized flows.
type Completion struct {
	Flows, Done int
	// Times are in seconds, flows that had not completed being counted with the
	// time until the end of their run.
	Times stats.Summary
	// AtLeast tells for the lower quartile, the median and the upper quartile
	// whether they rest on such a flow: the true value is not less.
	AtLeast [3]bool
}

// Share is the share of the flows that completed, NaN without flows.
func (c *Completion) Share() float64 { return float64(c.Done) / float64(c.Flows) }

// Completions describes the completion times of the flows of repetitions.
func Completions(reps []Rep) Completion {
	var c Completion
	var times, open []float64 // open: +Inf for a flow that had not completed
	for i := range reps {
		for j := range reps[i].Flows {
			t, done := CompletionTime(&reps[i].Run, &reps[i].Flows[j])
			times = append(times, t)
			c.Flows++
			if done {
				c.Done++
				open = append(open, t)
			} else {
				open = append(open, math.Inf(1))
			}
		}
	}
	c.Times = stats.Summarise(times)
	open = stats.Sorted(open)
	for i, q := range []float64{0.25, 0.5, 0.75} {
		c.AtLeast[i] = math.IsInf(stats.Quantile(open, q), 1)
	}
	return c
}

// Bound says what a ratio of completion times is when flows that had not
// completed are in it.
type Bound string

// The bounds.
const (
	Exact   Bound = ""
	AtLeast Bound = "at least"  // the baseline's time is longer than counted
	AtMost  Bound = "at most"   // the transport's time is
	Unknown Bound = "not known" // both are
)

func boundOf(transport, baseline bool) Bound {
	switch {
	case transport && baseline:
		return Unknown
	case baseline:
		return AtLeast
	case transport:
		return AtMost
	}
	return Exact
}

// bounds are those of the ratios of the lower quartile, the median and the
// upper quartile.
func bounds(a, b []Rep) (q [3]Bound) {
	ca, cb := Completions(a), Completions(b)
	for i := range q {
		q[i] = boundOf(ca.AtLeast[i], cb.AtLeast[i])
	}
	return q
}

// together is the bound of a median of ratios.
func together(each []Bound) Bound {
	all := Exact
	for _, b := range each {
		switch {
		case b == Exact || b == all:
		case all == Exact:
			all = b
		default:
			return Unknown
		}
	}
	return all
}

// withHops keeps the flows of one hop count.
func withHops(reps []Rep, hops int) []Rep {
	out := append([]Rep(nil), reps...)
	for i := range out {
		out[i].Flows = nil
		for _, f := range reps[i].Flows {
			if f.Hops == hops {
				out[i].Flows = append(out[i].Flows, f)
			}
		}
	}
	return out
}
