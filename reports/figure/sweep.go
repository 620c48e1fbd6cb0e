package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SweepPanel is how transports fare at the values of one variable.
type SweepPanel struct {
	Fixed  string // the other variables, "" for none
	Values []string
	Lines  []SweepLine
}

// SweepLine is one transport of a panel.
type SweepLine struct {
	Label  string
	Series int // place in the report's order, for colour and marker
	At     []SweepAt
}

// SweepAt describes the repetitions at one value; N is 0 where there is none.
type SweepAt struct {
	N              int
	Q1, Median, Q3 float64
}

// Sweep draws a measure against a variable: the median over repetitions of what
// the median flow of each got, with the quartiles.
func Sweep(id string, m Measure, variable string, panels []SweepPanel) *Figure {
	f := &Figure{ID: id, Title: "Goodput against " + variable, width: Width,
		Caption: "Of each repetition the goodput of its median flow; marker: median over the repetitions, bar: their quartiles. Values stand in the order of the file, at equal distances."}
	if m.name == Completion.name {
		f.Title = "Completion time against " + variable
		f.Caption = "Of each repetition the completion time of its median flow; marker: median over the repetitions, bar: their quartiles; lower is faster. A flow that had not completed counts with the time until its run ended. Values stand in the order of the file, at equal distances."
	}
	f.data.cols = []string{"fixed", variable, "transport", m.name + "_q1_" + m.unit, m.name + "_median_" + m.unit, m.name + "_q3_" + m.unit, "repetitions"}
	var all []float64
	var entries []entry
	named := map[string]bool{}
	for _, p := range panels {
		for _, l := range p.Lines {
			if !named[l.Label] {
				named[l.Label] = true
				entries = append(entries, entry{l.Label, 12, func(x, y float64) { f.marker(l.Series, "hb-solid", x+6, y, 3.8) }})
			}
			for i, a := range l.At {
				if a.N > 0 {
					all = append(all, a.Q1, a.Median, a.Q3)
					f.data.add(p.Fixed, p.Values[i], l.Label, a.Q1, a.Median, a.Q3, a.N)
				}
			}
		}
	}
	y := f.legend(6, 10, entries)
	for i, p := range panels {
		if p.Fixed != "" {
			f.text("hb-b", "start", 4, y+4, fit(p.Fixed, Width-8))
			y += lineHeight
		}
		y = f.sweepPanel(&p, m, all, y, i == len(panels)-1, variable)
	}
	f.height = y
	return f
}

// sweepPanel draws one panel from y on and returns where it ends.
func (f *Figure) sweepPanel(p *SweepPanel, m Measure, all []float64, y float64, last bool, variable string) float64 {
	fr := frame{left: plotLeft, right: plotRight, top: y + 22, bottom: y + 138}
	fr.y = logAxis(all)
	fr.y.place(fr.bottom, fr.top, 15)
	f.yAxis(&fr, 4, m.axis())
	step := (fr.right - fr.left) / math.Max(1, float64(len(p.Values)))
	x := func(i int) float64 { return fr.left + step*(float64(i)+0.5) }
	end := math.Inf(-1)
	for i, v := range p.Values {
		// Labels that would run into the one before are left out; the table and
		// the CSV file have every value.
		label := fit(v, math.Max(step, 60)-4)
		if half := textWidth(label) / 2; x(i)-half > end && x(i)-half > 0 {
			f.text("hb-k", "middle", x(i), fr.bottom+15, label)
			end = x(i) + half + 4
		}
		f.line("hb-axis", pt{x(i), fr.bottom}, pt{x(i), fr.bottom + 4})
	}
	f.line("hb-axis", pt{fr.left, fr.bottom}, pt{fr.right, fr.bottom})
	joined := areNumbers(p.Values)
	for k, l := range p.Lines {
		off := (float64(k) - float64(len(p.Lines)-1)/2) * math.Min(9, step/float64(len(p.Lines)+1))
		var line []pt
		draw := func() {
			if joined && len(line) > 1 {
				f.line("hb-line "+seriesClass(l.Series), line...)
			}
			line = nil
		}
		for i, a := range l.At {
			if a.N == 0 || math.IsNaN(a.Median) {
				draw() // a gap stays a gap
				continue
			}
			line = append(line, pt{x(i) + off, fr.y.at(a.Median)})
		}
		draw()
		for i, a := range l.At {
			if a.N == 0 || math.IsNaN(a.Median) {
				continue
			}
			at := x(i) + off
			f.line("hb-thin "+seriesClass(l.Series), pt{at, fr.y.at(a.Q1)}, pt{at, fr.y.at(a.Q3)})
			f.marker(l.Series, "hb-solid", at, fr.y.at(a.Median), 3.8)
			f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s at %s: %s (%d repetitions)", l.Label, p.Values[i], m.format(a.Median), a.N)
		}
	}
	if !last {
		return fr.bottom + 30
	}
	f.text("hb-t", "middle", (fr.left+fr.right)/2, fr.bottom+31, fit(variable, fr.right-fr.left))
	return fr.bottom + 38
}

// areNumbers tells values that are numbers with a unit, such as "5ms": only
// between such is there something in between.
func areNumbers(values []string) bool {
	for _, v := range values {
		number := strings.TrimRight(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ%/ ")
		if _, err := strconv.ParseFloat(number, 64); err != nil {
			return false
		}
	}
	return true
}
