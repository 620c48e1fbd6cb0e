package figure

import "math"

// LinesPanel is one quantity over time, a line for each series that has it.
type LinesPanel struct {
	Name  string
	Lines []TimeLine
}

// TimeLine is a value for each step of time; NaN is none. Series is the place of the
// series in the report, which decides colour and style.
type TimeLine struct {
	Label  string
	Series int
	Values []float64
}

// Lines draws quantities over time, one panel for each, with an axis of its own.
// stepS is the width of a step, warmupS the begin of the measured interval.
func Lines(id string, stepS, warmupS float64, panels []LinesPanel) *Figure {
	f := &Figure{ID: id, Title: "What the transports say over time", width: Width}
	f.data.cols = []string{"quantity", "transport", "start_s", "value"}
	var legend []Series // by place, for the styles of the legend
	steps := 1
	for _, p := range panels {
		for _, l := range p.Lines {
			for len(legend) <= l.Series {
				legend = append(legend, Series{})
			}
			legend[l.Series].Label = l.Label
			steps = max(steps, len(l.Values))
			for i, v := range l.Values {
				if !math.IsNaN(v) {
					f.data.add(p.Name, l.Label, float64(i)*stepS, v)
				}
			}
		}
	}
	var entries []entry
	for i, s := range legend {
		if s.Label != "" {
			entries = append(entries, entry{s.Label, 26, func(x, y float64) { f.line("hb-line "+seriesClass(i), pt{x, y}, pt{x + 26, y}) }})
		}
	}
	y := f.legend(6, 10, entries) + 6
	for i, p := range panels {
		fr := frame{left: plotLeft, right: plotRight, top: y + 20, bottom: y + 110}
		fr.x = axis{lo: 0, hi: float64(steps) * stepS, from: fr.left, to: fr.right}
		fr.y = axis{lo: 0, hi: ceiling(p.Lines), from: fr.bottom, to: fr.top}
		f.text("hb-b", "start", 4, y+8, p.Name)
		if warmupS > 0 {
			f.rect("hb-warm", fr.left, fr.top, fr.x.at(warmupS)-fr.left, fr.bottom-fr.top)
		}
		f.yAxis(&fr, 4, "")
		for _, l := range p.Lines {
			f.steps(&fr, &l, stepS)
		}
		if i < len(panels)-1 {
			f.line("hb-axis", pt{fr.left, fr.bottom}, pt{fr.right, fr.bottom})
			y = fr.bottom + 10
			continue
		}
		f.xAxis(&fr, 6, "time since the start of the run (s)", false)
		y = fr.bottom + 38
	}
	f.height = y
	return f
}

// ceiling is the upper end of an axis from 0.
func ceiling(lines []TimeLine) float64 {
	most := 0.0
	for _, l := range lines {
		for _, v := range l.Values {
			if v > most { // NaN is not
				most = v
			}
		}
	}
	if most == 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*unit >= most {
			return m * unit
		}
	}
	return 10 * unit
}

// steps draws a line with gaps where there is no value.
func (f *Figure) steps(p *frame, l *TimeLine, stepS float64) {
	var pts []pt
	draw := func() {
		if len(pts) > 0 {
			f.line("hb-line "+seriesClass(l.Series), pts...)
		}
		pts = nil
	}
	for i, v := range l.Values {
		if math.IsNaN(v) {
			draw()
			continue
		}
		from, to := float64(i)*stepS, float64(i+1)*stepS
		pts = append(pts, pt{p.x.at(from), p.y.at(v)}, pt{p.x.at(to), p.y.at(v)})
	}
	draw()
}
