package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/safetext"
	"github.com/hopbed/hopbed/reports/stats"
)

// Table is one table of a report, the same for every format. Its texts are
// harmless (package safetext) but not yet escaped for a format.
type Table struct {
	Title string
	Notes []string // shown below
	Head  []string
	Rows  []Row
	// Left tells which columns hold text rather than numbers; the first always
	// does.
	Left map[int]bool
	// Narrow tables fit a phone; others scroll sideways there, or, when their
	// cells are sentences, become blocks.
	Narrow, Blocks bool
}

// value writes what the flows of the group are compared by.
func (g *Group) value(v float64) string {
	if g.Data.Sized {
		return figure.Seconds(v)
	}
	return rate(v)
}

// Row is one row; Mark is "" or the reason for which it stands out: "bad",
// "good", "weak", "strong"; or "list" for cells that may wrap.
//
// Below is text about the row that needs its whole width, "" for none.
type Row struct {
	Mark  string
	Cells []string
	Below string
}

func (t *Table) add(mark string, cells ...string) {
	t.Rows = append(t.Rows, Row{Mark: mark, Cells: cells})
}

const maxName = 60 // characters of a name in a table

func name(s string) string { return safetext.Line(s, maxName) }

const nothing = "–"

func rate(bps float64) string { return figure.Rate(bps) }

func percent(share float64) string {
	switch {
	case math.IsNaN(share):
		return nothing
	case share > 0 && share < 0.001:
		return "<\u00a00.1\u00a0%"
	}
	return strconv.FormatFloat(100*share, 'f', 1, 64) + "\u00a0%"
}

func decimals(v float64, n int) string {
	if math.IsNaN(v) {
		return nothing
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// factor writes a ratio with three significant digits: "×15.4", "×∞".
func factor(v float64) string {
	switch {
	case math.IsNaN(v):
		return nothing
	case math.IsInf(v, 1):
		return "×∞"
	}
	return "×" + significant(v)
}

// significant writes three significant digits without an exponent, and all
// digits of larger whole parts.
func significant(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsInf(v, 0):
		return "∞"
	case a >= 99.95 || a == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.0995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.00995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func interval(e stats.Estimate) string {
	if !e.HasInterval {
		return "no interval"
	}
	return significant(e.Lo) + "–" + significant(e.Hi)
}

func opt(o store.Opt[float64], decimals int, unit string) string {
	if !o.OK {
		return nothing
	}
	return strconv.FormatFloat(o.V, 'f', decimals, 64) + unit
}

// summaryTable has one column for each transport, so that it fits a phone.
func summaryTable(g *Group) Table {
	t := Table{Title: "Goodput of flows", Head: []string{""}, Narrow: len(g.Summary) <= 3}
	if g.Data.Sized {
		t.Title = "Completion time of flows"
	}
	for _, s := range g.Summary {
		t.Head = append(t.Head, name(s.Transport))
	}
	row := func(label string, f func(dataset.Summary) string) {
		cells := []string{label}
		for _, s := range g.Summary {
			cells = append(cells, f(s))
		}
		t.add("", cells...)
	}
	row("valid runs", func(s dataset.Summary) string {
		if s.LeftOut > 0 {
			return fmt.Sprintf("%d of %d", s.Runs, s.Runs+s.LeftOut)
		}
		return strconv.Itoa(s.Runs)
	})
	row("flows (n)", func(s dataset.Summary) string { return strconv.Itoa(s.Flows) })
	if g.Data.Sized {
		completionRows(g, &t, row)
	} else {
		goodputRows(g, row)
	}
	row("sent again", func(s dataset.Summary) string { return percent(s.RetransShare) })
	row("set-up (median)", func(s dataset.Summary) string {
		if math.IsNaN(s.SetupS) {
			return nothing
		}
		return significant(1000*s.SetupS) + "\u00a0ms"
	})
	corrupt := ""
	row("corrupt", func(s dataset.Summary) string {
		if !s.CorruptBlocks.OK {
			return nothing
		}
		if s.CorruptBlocks.V > 0 {
			corrupt = "bad"
		}
		return strconv.FormatInt(s.CorruptBlocks.V, 10)
	})
	for i, r := range t.Rows {
		switch r.Cells[0] {
		case "median":
			t.Rows[i].Mark = "strong"
		case "corrupt":
			t.Rows[i].Mark = corrupt
		}
	}
	return t
}

func goodputRows(g *Group, row func(string, func(dataset.Summary) string)) {
	row("lower quartile", func(s dataset.Summary) string { return rate(s.Goodput.Q1) })
	row("median", func(s dataset.Summary) string { return rate(s.Goodput.Median) })
	row("upper quartile", func(s dataset.Summary) string { return rate(s.Goodput.Q3) })
	row("mean", func(s dataset.Summary) string { return rate(s.Goodput.Mean) })
	row("aggregate", func(s dataset.Summary) string { return rate(s.AggregateBps) })
	if !g.single() { // one flow shares with nobody
		row("Jain's index", func(s dataset.Summary) string { return decimals(s.Jain, 2) })
	}
	row("starved (< 10 kb/s)", func(s dataset.Summary) string { return percent(s.StarvedShare) })
}

// single tells that no repetition of any transport has two flows.
func (g *Group) single() bool {
	for i := range g.Data.Series {
		for _, r := range g.Data.Series[i].Reps {
			if len(r.Flows) > 1 {
				return false
			}
		}
	}
	return true
}

func ratioTable(g *Group) Table {
	t := Table{Title: "Ratio to " + name(g.Baseline), Head: []string{""}, Narrow: len(g.Ratios) <= 2}
	if g.Data.Sized {
		t.Title = "Speed-up over " + name(g.Baseline)
	}
	var notes noteList
	for _, r := range g.Ratios {
		t.Head = append(t.Head, name(r.Transport))
	}
	row := func(label, mark string, b func(dataset.Ratios) dataset.Bound, f func(dataset.Ratios) stats.Estimate) {
		cells := []string{label}
		for _, r := range g.Ratios {
			e := f(r)
			cells = append(cells, bounded(ratio(e), b(r)))
			if b(r) == dataset.Unknown {
				continue
			}
			for _, w := range e.Warnings {
				if strings.HasPrefix(w, strconv.Itoa(e.N)) {
					notes.add(w, "", "") // about the number of repetitions
				} else {
					notes.add(w, name(r.Transport), label)
				}
			}
		}
		t.add(mark, cells...)
	}
	quartile := func(i int) func(dataset.Ratios) dataset.Bound {
		return func(r dataset.Ratios) dataset.Bound { return r.Bounds[i] }
	}
	exact := func(dataset.Ratios) dataset.Bound { return dataset.Exact }
	row("lower quartile", "", quartile(0), func(r dataset.Ratios) stats.Estimate { return r.Q1 })
	row("median", "strong", quartile(1), func(r dataset.Ratios) stats.Estimate { return r.Median })
	row("upper quartile", "", quartile(2), func(r dataset.Ratios) stats.Estimate { return r.Q3 })
	if !g.Data.Sized {
		row("mean", "", exact, func(r dataset.Ratios) stats.Estimate { return r.Mean })
		row("aggregate", "", exact, func(r dataset.Ratios) stats.Estimate { return r.Aggregate })
	}
	row("median of repetitions", "strong", func(r dataset.Ratios) dataset.Bound { return r.PerRepetitionBound }, func(r dataset.Ratios) stats.Estimate { return r.PerRepetition })
	cells, separator := []string{"each repetition"}, " "
	if g.Data.Sized {
		separator = ", " // "not known" has a space of its own
	}
	for _, r := range g.Ratios {
		var each []string
		for i, v := range r.Each {
			text := factor(v)
			if r.Sized {
				text = bounded(text, r.EachBound[i])
			}
			each = append(each, text)
		}
		if len(each) == 0 {
			each = []string{nothing}
		}
		cells = append(cells, strings.Join(each, separator))
		for _, w := range r.Warnings {
			notes.add(safetext.Line(w, 0), "", "")
		}
	}
	t.add("list", cells...)
	t.Notes = notes.lines()
	if g.Data.Sized {
		t.Notes = append([]string{"Time of " + name(g.Baseline) + " over the time of the transport: above ×1 is faster."}, t.Notes...)
		if open := g.openNote(); open != "" {
			t.Notes = append(t.Notes, open)
		}
	}
	return t
}

func hopTable(g *Group) Table {
	t := Table{Title: "By hop count", Head: []string{"hops", "transport", "n", "median", "ratio (95\u00a0%)"}, Left: map[int]bool{1: true}, Narrow: true}
	if g.Data.Sized {
		t.Head[3], t.Head[4] = "median time", "speed-up (95\u00a0%)"
	}
	if g.Baseline == "" {
		t.Head = t.Head[:4]
	}
	doubtful := false
	for _, row := range g.Hops {
		hops := strconv.Itoa(row.Hops)
		for _, c := range row.Cells {
			median := g.value(c.Values.Median)
			if c.AtLeast {
				median = "≥\u00a0" + median
			}
			cells := []string{hops, name(c.Transport), strconv.Itoa(c.Values.N), median}
			if g.Baseline != "" {
				text := nothing
				if c.Transport != g.Baseline {
					text = bounded(ratio(c.Gain), c.Bound)
					if c.Bound != dataset.Unknown && c.Gain.HasInterval && !c.Gain.Trusted() {
						text += "\u00a0†"
						doubtful = true
					}
				}
				cells = append(cells, text)
			}
			t.add("", cells...)
			hops = "" // once for its rows
		}
	}
	if doubtful {
		t.Notes = append(t.Notes, "†: fewer than five repetitions, the interval is not to be trusted.")
	}
	switch {
	case g.Data.Sized && g.Baseline != "":
		t.Notes = append(t.Notes, "n: flows. Speed-up: median time of "+name(g.Baseline)+" over that of the transport with the same number of hops, over the repetitions in which both have such flows. A flow that had not completed counts with the time until its run ended.")
	case g.Baseline != "":
		t.Notes = append(t.Notes, "n: flows. Ratios are those of the medians to "+name(g.Baseline)+" with the same number of hops, over the repetitions in which both have such flows.")
	}
	return t
}

// ratio is a ratio with its interval, if it has one.
func ratio(e stats.Estimate) string {
	if !e.HasInterval {
		return factor(e.Value)
	}
	return factor(e.Value) + " (" + interval(e) + ")"
}
