package figure

import (
	"math"

	"github.com/hopbed/hopbed/reports/stats"
)

// Box draws quartiles with every flow beneath: one row for each series.
func Box(id string, m Measure, series []Series) *Figure {
	f := &Figure{ID: id, Title: "Goodput of flows: quartiles and every flow", width: Width,
		Caption: "Box: lower quartile, median (thick) and upper quartile. Whiskers: 5 % and 95 %. Every dot is one flow of one repetition. The dotted line marks 10 kb/s."}
	if m.name == Completion.name {
		f.Title = "Completion time of flows: quartiles and every flow"
		f.Caption = "Box: lower quartile, median (thick) and upper quartile; further left is faster. Whiskers: 5 % and 95 %. Every dot is one flow of one repetition. A flow that had not completed is hollow and stands at the time when its run ended: its true time is longer, and so is a quantile that rests on it."
	}
	f.data.cols = []string{"transport", "p5_" + m.unit, "q1_" + m.unit, "median_" + m.unit, "q3_" + m.unit, "p95_" + m.unit, "flows"}
	const row = 78.0
	p := frame{left: 14, right: plotRight, top: 4, bottom: 4 + row*float64(len(series))}
	p.x = logAxis(m.shown(allValues(series)))
	p.x.place(p.left, p.right, strip)
	f.xAxis(&p, 6, m.axis(), true)
	if m.mark > 0 {
		at := p.x.at(m.mark)
		f.line("hb-mark", pt{at, p.top}, pt{at, p.bottom})
	}
	for i, s := range series {
		top := p.top + row*float64(i)
		f.line("hb-grid", pt{p.left, top}, pt{p.right, top})
		sorted := stats.Sorted(append(append([]float64(nil), s.Values...), s.Open...))
		if len(sorted) == 0 {
			f.text("hb-b hb-halo", "start", p.left+4, top+15, s.Label)
			f.text("hb-k", "start", p.left+4, top+34, "no valid run")
			f.data.add(s.Label, "", "", "", "", "", 0)
			continue
		}
		q := func(p float64) float64 { return stats.Quantile(sorted, p) }
		f.text("hb-b hb-halo", "start", p.left+4, top+15, s.Label+": median "+s.median(&m))
		f.data.add(s.Label, q(.05), q(.25), q(.5), q(.75), q(.95), len(sorted))
		mid, half := top+33.0, 9.0
		class := seriesClass(i)
		x := func(v float64) float64 { return p.x.at(v) }
		f.line("hb-thin "+class, pt{x(q(.05)), mid}, pt{x(q(.25)), mid})
		f.line("hb-thin "+class, pt{x(q(.75)), mid}, pt{x(q(.95)), mid})
		for _, w := range []float64{.05, .95} {
			f.line("hb-thin "+class, pt{x(q(w)), mid - 5}, pt{x(q(w)), mid + 5})
		}
		f.rect("hb-box "+class, x(q(.25)), mid-half, x(q(.75))-x(q(.25)), 2*half)
		f.line("hb-median "+class, pt{x(q(.5)), mid - half}, pt{x(q(.5)), mid + half})
		for j, v := range append(stats.Sorted(s.Values), s.Open...) {
			dot := "hb-dot"
			if j >= len(s.Values) {
				dot = "hb-hollow"
			}
			// Spread by a fixed pattern, so that equal values stay visible.
			f.marker(i, dot, x(v)+spread(j, 5)*jitterX(v, p.x.lo), mid+half+8+24*(0.5+spread(j, 3)), 1.9)
		}
	}
	f.height = p.bottom + 38
	return f
}

// median is the median in words; it is at least that when it rests on a flow
// that had not completed.
func (s *Series) median(m *Measure) string {
	v := stats.Sorted(s.Values)
	n := len(v)
	for range s.Open {
		v = append(v, math.Inf(1))
	}
	if math.IsInf(stats.Quantile(v, 0.5), 1) {
		return "≥\u00a0" + m.format(stats.Median(append(v[:n:n], s.Open...)))
	}
	return m.format(stats.Quantile(v, 0.5))
}

// spread returns a fixed sequence in [−½, ½) that fills the interval evenly
// (van der Corput's, in the given base).
func spread(i, base int) float64 {
	v, f := 0.0, 1.0
	for i++; i > 0; i /= base {
		f /= float64(base)
		v += f * float64(i%base)
	}
	return v - 0.5
}

// jitterX spreads flows sideways only in the strip below the axis, where the
// place says "almost nothing" and not how much.
func jitterX(v, lo float64) float64 {
	if v < lo {
		return 18
	}
	return 0
}
