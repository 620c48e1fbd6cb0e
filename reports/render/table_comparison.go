package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/safetext"
	"github.com/hopbed/hopbed/reports/stats"
)

// quantityWords are how the quantities of a comparison are called and written.
var quantityWords = withDelays(map[dataset.Quantity]quantityWord{
	dataset.QuantityGoodput:        {"goodput", "Goodput of all flows, over the measured interval", "bps", rate},
	dataset.QuantityCompletionTime: {"completion time", "Completion time, mean over flows", "s", figure.Seconds},
	dataset.QuantityRetransmitted:  {"sent again", "Share of bytes that were sent again", "share", finePercent},
	dataset.QuantityRTT:            {"RTT", "Mean smoothed round-trip time of the sources", "s", figure.Seconds},
	dataset.QuantityTimeouts:       {"time-outs", "Retransmission time-outs per flow and minute", "per_minute", significant},
	dataset.QuantityFrames:         {"data frames", "Data frames that Hop sent, repeats included", "frames", significant},
	dataset.QuantityJainIndex:      {"Jain's index", "Jain's index of the flows' goodputs", "index", func(v float64) string { return decimals(v, 3) }},
	dataset.QuantityMessagesLost:   {"messages lost", "Share of messages that were not delivered", "share", finePercent},
	dataset.QuantityRFactor:        {"R", "R of speech (ITU-T G.107)", "index", func(v float64) string { return decimals(v, 1) }},
})

type quantityWord struct {
	short, title string
	unit         string // of JSON's values
	format       func(float64) string
}

// withDelays adds the delays of each workload of messages.
func withDelays(words map[dataset.Quantity]quantityWord) map[dataset.Quantity]quantityWord {
	for _, w := range dataset.MessageWorkloads {
		of := messageNoun(w) + "s (" + w + ")"
		words[dataset.QuantityDelayMedian(w)] = quantityWord{"median delay, " + w, "Median delay of " + of, "s", figure.Seconds}
		words[dataset.QuantityDelayTail(w)] = quantityWord{"95 % delay, " + w, "95 % quantile of the delay of " + of, "s", figure.Seconds}
	}
	return words
}

// finePercent has the digits that small shares need.
func finePercent(share float64) string {
	if math.IsNaN(share) {
		return nothing
	}
	return significant(100*share) + "\u00a0%"
}

// tables are the tables of a comparison: the ratios of every point at a glance,
// then each quantity with the values of both sides.
func (c *Comparison) tables() []Table {
	t := []Table{c.overview()}
	for _, q := range dataset.Quantities() {
		if c.Data.Has(q) {
			t = append(t, c.quantityTable(q))
		}
		if q == dataset.QuantityCompletionTime { // after what the flows have together
			if f := c.flowTable(); len(f.Rows) > 0 {
				t = append(t, f)
			}
		}
	}
	return t
}

// judgedQuantities are those of the overview, as far as the comparison has them.
func (c *Comparison) judgedQuantities() []dataset.Quantity {
	var out []dataset.Quantity
	for _, q := range []dataset.Quantity{dataset.QuantityGoodput, dataset.QuantityCompletionTime, dataset.QuantityRetransmitted, dataset.QuantityRTT} {
		if c.Data.Has(q) {
			out = append(out, q)
		}
	}
	return out
}

func (c *Comparison) overview() Table {
	t := Table{Title: "Ratios " + c.sides() + " at each point (95\u00a0%)", Head: []string{"point", "n"}, Left: map[int]bool{}}
	if c.Data.Judged {
		t.Title = "Calibration: ratios " + c.sides() + " at each point (95\u00a0%)"
	}
	quantities := c.judgedQuantities()
	for _, q := range quantities {
		head := quantityWords[q].short
		if aim, ok := dataset.AimFor(q); ok && c.Data.Judged {
			head += fmt.Sprintf(" (aim ±\u00a0%g\u00a0%%)", 100*aim.Within)
		}
		t.Head = append(t.Head, head)
		if c.judges(q) {
			t.Head = append(t.Head, "")
			t.Left[len(t.Head)-1] = true
		}
	}
	timeouts := c.Data.Has(dataset.QuantityTimeouts)
	if timeouts {
		t.Head = append(t.Head, "time-outs /min, "+name(c.Data.A.Label), name(c.Data.B.Label))
	}
	for i := range c.Data.Points {
		p := &c.Data.Points[i]
		cells := []string{pointLabel(p), strconv.Itoa(len(p.Repetitions))}
		for _, q := range quantities {
			text, verdict := nothing, ""
			if k := p.Find(q); k != nil {
				text, verdict = comparedRatio(k), verdictText(k)
			}
			if cells = append(cells, text); c.judges(q) {
				cells = append(cells, verdict)
			}
		}
		if timeouts {
			a, b := nothing, nothing
			if k := p.Find(dataset.QuantityTimeouts); k != nil {
				a, b = significant(k.A), significant(k.B)
			}
			cells = append(cells, a, b)
		}
		t.add(pointMark(p), cells...)
	}
	t.Notes = c.legend()
	return t
}

// judges tells that some point has a verdict on a quantity.
func (c *Comparison) judges(q dataset.Quantity) bool {
	for i := range c.Data.Points {
		if k := c.Data.Points[i].Find(q); k != nil && k.Verdict != dataset.NotJudged {
			return true
		}
	}
	return false
}

// comparedRatio is the ratio with its interval. A ratio of nothing to nothing is
// none.
func comparedRatio(k *dataset.Compared) string {
	if k.Counts != nil && k.Counts.A == 0 && k.Counts.B == 0 {
		return "none"
	}
	return ratioText(k.Ratio)
}

// ratioText is a ratio with its interval, if it has one.
func ratioText(e stats.Estimate) string {
	if !e.HasInterval {
		return fineFactor(e.Value)
	}
	return fineFactor(e.Value) + " (" + strings.TrimPrefix(fineFactor(e.Lo), "×") + "–" + strings.TrimPrefix(fineFactor(e.Hi), "×") + ")"
}

// fineFactor writes a ratio with the digits by which an aim is judged.
func fineFactor(v float64) string {
	if v >= 0.0995 && v < 9.995 {
		return "×" + decimals(v, 3)
	}
	return factor(v)
}

// pointMark is that of the worst verdict.
func pointMark(p *dataset.ComparedPoint) string {
	mark := ""
	for i := range p.Quantities {
		k := &p.Quantities[i]
		switch m := rowMark(k); {
		case m == "bad":
			return m
		case m == "weak" || mark == "":
			mark = m
		}
	}
	return mark
}

func rowMark(k *dataset.Compared) string {
	switch {
	case k.Verdict == dataset.NotJudged:
		return ""
	case k.Verdict == dataset.TooFew || !k.Sure:
		return "weak"
	case k.Verdict == dataset.Met:
		return "good"
	}
	return "bad"
}

// legend explains the overview.
func (c *Comparison) legend() []string {
	notes := []string{"n: repetitions that both sides have, with equal number and seed. Each has one value; the ratio is taken within a repetition, and the median of these is shown."}
	if c.Data.Judged {
		notes = append(notes, "Aims of the model: "+aimsText()+". A question mark: the interval reaches over the edge of the aim, or rests on fewer than five repetitions.")
	}
	if c.Data.Judged && c.severalFlows() {
		notes = append(notes, dataset.FlowRule)
	}
	if c.Data.Has(dataset.QuantityRetransmitted) || c.Data.Has(dataset.QuantityTimeouts) {
		notes = append(notes, dataset.CountRule)
	}
	for _, w := range c.Data.Warnings {
		notes = append(notes, safetext.Line(w, 400))
	}
	var seen []string
	for i := range c.Data.Points {
		p := &c.Data.Points[i]
		for _, w := range p.Warnings {
			if text := pointLabel(p) + ": " + safetext.Line(w, 200); len(seen) < maxPointNotes && !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
	}
	return append(notes, seen...)
}

// aimsText lists the aims: "goodput ± 5 %, …".
func aimsText() string {
	var out []string
	for _, a := range dataset.Aims {
		out = append(out, fmt.Sprintf("%s ±\u00a0%g\u00a0%%", quantityWords[a.Quantity].short, 100*a.Within))
	}
	return strings.Join(out, ", ")
}

// maxPointNotes bounds the notes about single points; the JSON report has all.
const maxPointNotes = 12

// quantityTable shows one quantity with the values of both sides.
func (c *Comparison) quantityTable(q dataset.Quantity) Table {
	words := quantityWords[q]
	a, b := name(c.Data.A.Label), name(c.Data.B.Label)
	t := Table{Title: words.title + ": " + c.sides(), Head: []string{"point", "n", a, b}, Left: map[int]bool{}}
	var first *dataset.Compared
	judged := c.judges(q)
	for i := range c.Data.Points {
		if k := c.Data.Points[i].Find(q); k != nil {
			first = k
		}
	}
	counted := first.Counts != nil
	if first.Difference.N > 0 {
		t.Head = append(t.Head, "difference (95\u00a0%)")
		if words.unit == "share" {
			t.Notes = append(t.Notes, "pp.: percentage points.")
		}
	}
	if first.Ratio.N > 0 {
		t.Head = append(t.Head, "ratio (95\u00a0%)")
	}
	if counted {
		t.Head = append(t.Head, "events")
	}
	if judged {
		head := ""
		if aim, ok := dataset.AimFor(q); ok && c.Data.Judged {
			head = fmt.Sprintf("aim ±\u00a0%g\u00a0%%", 100*aim.Within)
		}
		t.Left[len(t.Head)] = true
		t.Head = append(t.Head, head)
	}
	var notes noteList
	for i := range c.Data.Points {
		p := &c.Data.Points[i]
		k := p.Find(q)
		if k == nil {
			continue
		}
		n := max(k.Ratio.N, k.Difference.N)
		cells := []string{pointLabel(p), strconv.Itoa(n), words.format(k.A), words.format(k.B)}
		if first.Difference.N > 0 {
			cells = append(cells, difference(k.Difference, words.unit))
		}
		if first.Ratio.N > 0 {
			cells = append(cells, comparedRatio(k))
		}
		if counted {
			events := nothing
			if k.Counts != nil {
				events = fmt.Sprintf("%.0f / %.0f", k.Counts.A, k.Counts.B)
			}
			cells = append(cells, events)
		}
		if judged {
			cells = append(cells, verdictText(k))
		}
		t.add(rowMark(k), cells...)
		if k.Ratio.N > 0 && k.Ratio.N < 10 {
			for _, w := range k.Ratio.Warnings[:min(1, len(k.Ratio.Warnings))] { // the one about their number
				notes.add(w, "", "")
			}
		}
	}
	t.Notes = append(t.Notes, notes.lines()...)
	if counted {
		t.Notes = append(t.Notes, "Events are those of all n repetitions and flows; none: there were none on either side.")
	}
	return t
}

// difference is a difference with its interval, if it has one.
func difference(e stats.Estimate, unit string) string {
	// A difference of shares is one of percentage points: −11 pp., not −0.11.
	scale, sign := 1.0, ""
	if unit == "share" {
		scale, sign = 100, "\u00a0pp."
	}
	text := signed(scale*e.Value) + sign
	if e.HasInterval {
		text += " (" + signed(scale*e.Lo) + " to " + signed(scale*e.Hi) + ")"
	}
	return text
}

func signed(v float64) string {
	switch {
	case math.IsNaN(v):
		return nothing
	case v > 0:
		return "+" + significant(v)
	case v < 0:
		return "−" + significant(-v)
	}
	return "0"
}
