package render

import (
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
)

// completionRows are the rows of sized flows in the summary.
func completionRows(g *Group, t *Table, row func(string, func(dataset.Summary) string)) {
	row("completed", func(s dataset.Summary) string {
		if s.Completion == nil {
			return nothing
		}
		return fmt.Sprintf("%d of %d (%s)", s.Completion.Done, s.Completion.Flows, percent(s.Completion.Share()))
	})
	for i, label := range []string{"lower quartile", "median", "upper quartile"} {
		row(label, func(s dataset.Summary) string { return completionTime(s.Completion, i) })
	}
	if open := g.openNote(); open != "" {
		t.Notes = append(t.Notes, open)
	}
}

// completionTime is a quartile (0, 1, 2) of completion times; "≥" when it rests
// on flows that had not completed.
func completionTime(c *dataset.Completion, quartile int) string {
	if c == nil {
		return nothing
	}
	text := figure.Seconds([]float64{c.Times.Q1, c.Times.Median, c.Times.Q3}[quartile])
	if c.AtLeast[quartile] {
		text = "≥\u00a0" + text
	}
	return text
}

// openNote says how flows that had not completed were counted, "" when all had.
func (g *Group) openNote() string {
	var open []string
	for _, s := range g.Summary {
		if c := s.Completion; c != nil && c.Done < c.Flows {
			open = append(open, fmt.Sprintf("%d of %s", c.Flows-c.Done, name(s.Transport)))
		}
	}
	if len(open) == 0 {
		return ""
	}
	return "Flows that had not completed when their run ended (" + strings.Join(open, ", ") + ") count with the time until then: true times are longer, and a speed-up is at least (≥) or at most (≤) what is shown, or not known when both sides rest on such flows."
}

// bounded writes a speed-up with what flows that had not completed make of it.
func bounded(text string, b dataset.Bound) string {
	switch b {
	case dataset.AtLeast:
		return "≥\u00a0" + text
	case dataset.AtMost:
		return "≤\u00a0" + text
	case dataset.Unknown:
		return "not known"
	}
	return text
}
