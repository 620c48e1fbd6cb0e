package render

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/reports/dataset"
)

// severalFlows tells that some point has several flows on both sides.
func (c *Comparison) severalFlows() bool {
	for i := range c.Data.Points {
		if c.Data.Points[i].PerFlow != nil {
			return true
		}
	}
	return false
}

// flowTable compares the single flows of the points that have several.
func (c *Comparison) flowTable() Table {
	a, b := name(c.Data.A.Label), name(c.Data.B.Label)
	t := Table{Title: "Flow by flow: " + c.sides(), Left: map[int]bool{},
		Head: []string{"point", "n", "flows", "ratio of a flow (95\u00a0%)", "furthest flow", "another flow’s", "by chance", "Jain’s index, " + a + " / " + b, "starved, " + a + " / " + b}}
	if c.Data.Judged {
		t.Left[len(t.Head)] = true
		t.Head = append(t.Head, "")
	}
	var why []string
	for i := range c.Data.Points {
		p := &c.Data.Points[i]
		f := p.PerFlow
		if f == nil {
			continue
		}
		furthest := "flow " + strconv.Itoa(f.Furthest.Flow)
		if f.Furthest.Repetition > 0 {
			furthest += " of repetition " + strconv.Itoa(f.Furthest.Repetition)
		}
		jain := decimals(f.Jain[0], 3) + " / " + decimals(f.Jain[1], 3)
		if math.IsNaN(f.Jain[0]) && math.IsNaN(f.Jain[1]) {
			jain = nothing
		}
		cells := []string{pointLabel(p), strconv.Itoa(f.N), strconv.Itoa(f.Flows), ratioText(f.Each), furthest + " " + fineFactor(f.Furthest.Ratio),
			percent(f.Moved), percent(f.Chance), jain, percent(f.Starved[0]) + " / " + percent(f.Starved[1])}
		if c.Data.Judged {
			cells = append(cells, flowVerdict(f))
			if f.Why != "" && f.Verdict == dataset.FlowsDiffer && len(why) < maxPointNotes {
				why = append(why, pointLabel(p)+": "+f.Why+".")
			}
		}
		t.add(flowMark(f), cells...)
	}
	t.Notes = append([]string{
		"Ratio of a flow: the median over the flows of a repetition, then over repetitions. Furthest: the flow whose share differs most, by its number in hopbed show. " +
			fmt.Sprintf("Another flow’s: ½ Σ |share %s − share %s|; by chance: what the differences between repetitions make of it where the sides are alike.", a, b),
	}, why...)
	return t
}

// flowVerdict is the verdict, with a question mark where it is not sure.
func flowVerdict(f *dataset.ComparedFlows) string {
	text := "alike"
	if f.Verdict == dataset.FlowsDiffer {
		text = string(dataset.FlowsDiffer)
	}
	if !f.Sure {
		text += "\u00a0?"
	}
	return text
}

func flowMark(f *dataset.ComparedFlows) string {
	switch {
	case f.Verdict == dataset.NotJudged:
		return ""
	case !f.Sure:
		return "weak"
	case f.Verdict == dataset.FlowsDiffer:
		return "bad"
	}
	return "good"
}
