//go:build linux

package live

import (
	"fmt"
	"strconv"

	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// clockFacts writes what is known of the clocks into the facts of the nodes.
func clockFacts(rec *store.RunRecord, clocks []clock) {
	us := func(d vtime.Duration) string { return strconv.FormatFloat(float64(d)/1e3, 'f', 1, 64) }
	for i := range clocks {
		k, f := &clocks[i], rec.Nodes[i].Facts
		if k.Shared {
			f["clock"] = "this host's"
			continue
		}
		f["clock_offset_us"], f["clock_bound_us"] = us(k.Before.Offset), us(k.Before.Bound)
		f["clock_rtt_us"] = us(k.Before.RTT)
		if k.Before.Wall != 0 {
			f["time_of_day_offset_us"] = us(k.Before.WallOffset)
		}
		if k.After != nil {
			f["clock_offset_after_us"], f["clock_bound_after_us"] = us(k.After.Offset), us(k.After.Bound)
		}
		if ratio, bound, ok := k.drift(); ok {
			f["clock_drift_ppm"] = fmt.Sprintf("%.2f ± %.2f", ratio*1e6, bound*1e6)
		}
		if d := k.step(); d != 0 {
			f["time_of_day_step_us"] = us(d)
		}
	}
}

// flowClocks says what the clocks of a flow's ends do to the delays that its
// destination reports (backend.Clocks).
type flowClocks struct {
	s      *plan.Scenario
	clocks []clock
	epoch  int64 // moment 0 of the run on this host's clock
}

// Excess is what a delay has too much at a moment of the run: the destination's
// clock has gone ahead of the source's since they were compared.
func (f *flowClocks) Excess(flow int, at vtime.Time) vtime.Duration {
	fl := f.s.Flows[flow]
	now := f.epoch + int64(at)
	return f.clocks[fl.Dst].astray(now) - f.clocks[fl.Src].astray(now)
}

// Uncertainty is the bound of the error of the delays that is left.
func (f *flowClocks) Uncertainty(flow int) vtime.Duration {
	fl := f.s.Flows[flow]
	return f.clocks[fl.Src].uncertainty() + f.clocks[fl.Dst].uncertainty()
}

const (
	// maxDrift is what the quartz of a computer, disciplined by NTP at its utmost
	// (500 ppm), does not pass: beyond it the clock was not steady, and what is
	// computed from its offsets is doubtful.
	maxDrift = 600e-6
	// maxClockBound is the uncertainty of a node's clock, as a share of the measured
	// interval, at which the intervals of two nodes are too different for one result.
	maxClockBound = 0.01
)

// judgeClocks adds the clocks' part of the verdict, each reason once with the worst
// node.
func judgeClocks(run *store.Run, nodes []store.Node, clocks []clock) {
	var unsure, fast struct {
		node int
		by   float64
	}
	for i := range clocks {
		k := &clocks[i]
		if u := k.uncertainty().Seconds(); u > unsure.by {
			unsure.node, unsure.by = i, u
		}
		if ratio, bound, ok := k.drift(); ok {
			if least := max(ratio, -ratio) - bound; least > fast.by {
				fast.node, fast.by = i, least
			}
		}
		if d := k.step(); d != 0 {
			note(run, false, fmt.Sprintf("the time of day of node %s was set by %v in the course of the run, or the node slept: flows keep to another clock, its logs do not", nodes[i].Name, d))
		}
	}
	if unsure.by > maxClockBound*run.DurationS {
		note(run, true, fmt.Sprintf("the clock of node %s is known to ±%v only (worst of all nodes; at most %.0f %% of the measured interval): the nodes' intervals are not the same; the way to the node is too slow",
			nodes[unsure.node].Name, vtime.FromSeconds(unsure.by), maxClockBound*100))
	}
	if fast.by > maxDrift {
		note(run, true, fmt.Sprintf("the clock of node %s ran more than %.0f ppm away from this host's (worst of all nodes; at most %.0f ppm): it is not steady, or the node slept",
			nodes[fast.node].Name, fast.by*1e6, maxDrift*1e6))
	}
}
