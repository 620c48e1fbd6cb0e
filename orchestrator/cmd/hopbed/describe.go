package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// maxDescriptions bounds the different sets of flows that a plan shows, and the
// transports that are named for each.
const maxDescriptions = 10

// flowSet are flows that several points have, over other transports.
type flowSet struct {
	text       string // of the first point
	label      string
	transports []string // of the other points
}

// printFlows says what the flows of the points carry: each set once, with the
// first point that has it and the transports that the others put in its place.
func printFlows(w io.Writer, p *plan.Plan) {
	sets := map[string]*flowSet{}
	var order []*flowSet
	for _, pt := range p.Experiment.Points() {
		text := describeFlows(pt.Config)
		key, transports := text, []string{}
		for _, f := range pt.Config.Flows {
			if t := string(f.Transport); !slices.Contains(transports, t) {
				key = strings.ReplaceAll(key, "× "+t+": ", fmt.Sprintf("× \x00%d: ", len(transports)))
				transports = append(transports, t)
			}
		}
		names := strings.Join(transports, " and ")
		s := sets[key]
		switch {
		case s == nil:
			s = &flowSet{text: text, label: pt.Label(), transports: []string{names}}
			sets[key] = s
			order = append(order, s)
		case !slices.Contains(s.transports, names):
			s.transports = append(s.transports, names)
		}
	}
	for i, s := range order {
		if i == maxDescriptions {
			fmt.Fprintf(w, "\n… and %d more sets of flows\n", len(order)-i)
			break
		}
		at := ""
		if s.label != "" {
			at = ", " + clean(s.label)
		}
		fmt.Fprintf(w, "\nflows%s:\n%s", at, s.text)
		others := s.transports[1:]
		if n := len(others) - maxDescriptions; n > 0 {
			others = append(slices.Clone(others[:maxDescriptions]), fmt.Sprintf("%d more", n))
		}
		if len(others) > 0 {
			fmt.Fprintf(w, "  likewise over %s\n", strings.Join(others, ", "))
		}
	}
}

// describeFlows writes a line for each group of flows of a point.
func describeFlows(c *spec.Config) string {
	var b strings.Builder
	for i := range c.Flows {
		f := &c.Flows[i]
		what := []string{clean(f.Workload.String())}
		if r := f.Offered(); r > 0 {
			each := "each"
			if f.Workload.Kind == spec.Web {
				each = "each at most"
			}
			what = append(what, rate(float64(r))+" "+each)
		}
		if n := f.Messages(c.Warmup, c.Duration); n > 0 {
			word := "about %.0f messages each"
			if f.Workload.Kind == spec.Web {
				word = "at most about %.0f pages each, and a flow for their requests"
			}
			what = append(what, fmt.Sprintf(word, n))
		}
		if d := f.DSCPValue(); d > 0 {
			what = append(what, "code point "+spec.DSCP(d).String())
		}
		fmt.Fprintf(&b, "  %d × %s: %s\n", f.Number(), f.Transport, strings.Join(what, ", "))
	}
	return b.String()
}
