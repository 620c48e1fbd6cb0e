package figure

import (
	"fmt"

	"github.com/hopbed/hopbed/reports/stats"
)

// Box draws quartiles with every flow beneath: one row for each series.
func Box(id string, series []Series) *Figure {
	f := &Figure{ID: id, Title: "Goodput of flows: quartiles and every flow", width: Width,
		Caption: "Box: lower quartile, median (thick) and upper quartile. Whiskers: 5 % and 95 %. Every dot is one flow of one repetition. The dotted line marks 10 kb/s."}
	f.data.cols = []string{"transport", "p5_bps", "q1_bps", "median_bps", "q3_bps", "p95_bps", "flows"}
	const row = 78.0
	p := frame{left: 14, right: plotRight, top: 4, bottom: 4 + row*float64(len(series))}
	p.x = logAxis(append(allValues(series), stats.StarvedBelowBps))
	p.x.place(p.left, p.right, strip)
	f.xAxis(&p, 6, "goodput (b/s)", true)
	at := p.x.at(stats.StarvedBelowBps)
	f.line("hb-mark", pt{at, p.top}, pt{at, p.bottom})
	for i, s := range series {
		top := p.top + row*float64(i)
		f.line("hb-grid", pt{p.left, top}, pt{p.right, top})
		sorted := stats.Sorted(s.Values)
		if len(sorted) == 0 {
			f.text("hb-b hb-halo", "start", p.left+4, top+15, s.Label)
			f.text("hb-k", "start", p.left+4, top+34, "no valid run")
			f.data.add(s.Label, "", "", "", "", "", 0)
			continue
		}
		q := func(p float64) float64 { return stats.Quantile(sorted, p) }
		f.text("hb-b hb-halo", "start", p.left+4, top+15, fmt.Sprintf("%s: median %s", s.Label, Rate(q(0.5))))
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
		for j, v := range sorted {
			// Spread by a fixed pattern, so that equal values stay visible.
			f.marker(i, "hb-dot", x(v)+spread(j, 5)*jitterX(v, p.x.lo), mid+half+8+24*(0.5+spread(j, 3)), 1.9)
		}
	}
	f.height = p.bottom + 38
	return f
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
