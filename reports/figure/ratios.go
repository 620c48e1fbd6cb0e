package figure

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/reports/stats"
)

// Ratio is one point of a comparison of two sides.
type Ratio struct {
	Label   string
	Value   stats.Estimate
	Verdict string // in words, "" where nothing is judged
	Mark    Mark
}

// Mark tells how a ratio is drawn.
type Mark int

// The marks: as it is, within its aim, beside it, and not to be judged.
const (
	Plain Mark = iota
	Good
	Bad
	Doubtful
)

// ratioTicks are the values that an axis of ratios may name.
var ratioTicks = []float64{0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000}

// Ratios draws the ratio of two sides at each point with its interval, the line
// of no difference, and the band of the aim: 1 ± within, none for 0. What names
// the sides and the quantity, of "sim to netns, goodput".
func Ratios(id, what string, within float64, points []Ratio) *Figure {
	f := &Figure{ID: id, Title: "Ratio " + what, width: Width,
		Caption: "One row for each point of the experiment. Marker: median over the repetitions of the paired ratio. Bar: 95 % interval, resampling whole repetitions; a dotted bar rests on fewer than five, a marker without a bar has none. Line: no difference."}
	if within > 0 {
		f.Caption += fmt.Sprintf(" Grey band: the aim, within %g %%. Round: within the aim; square: not; hollow: too few events to tell.", 100*within)
	}
	f.Caption += " What is beyond the axis stands at its edge with an arrow."
	f.data.cols = []string{"point", "ratio", "lo", "hi", "repetitions", "verdict"}
	most := math.Max(1.25, 1+2*within)
	for _, r := range points {
		e := r.Value
		lo, hi := math.NaN(), math.NaN()
		if e.HasInterval {
			lo, hi = e.Lo, e.Hi
		}
		f.data.add(r.Label, e.Value, lo, hi, e.N, r.Verdict)
		for _, v := range []float64{e.Value, lo, hi} {
			if v > 0 && !math.IsInf(v, 0) {
				most = math.Max(most, math.Max(v, 1/v))
			}
		}
	}
	most = math.Min(most*1.05, 1000)
	const row = 30.0
	p := frame{left: 14, right: plotRight, top: 6, bottom: 6 + row*float64(max(1, len(points)))}
	p.x = axis{log: true, lo: 1 / most, hi: most, from: p.left, to: p.right}
	if within > 0 {
		f.rect("hb-warm", p.x.at(1-within), p.top, p.x.at(1+within)-p.x.at(1-within), p.bottom-p.top)
	}
	last := math.Inf(-1)
	for _, v := range ratioTicks {
		if v < p.x.lo || v > p.x.hi {
			continue
		}
		x := p.x.at(v)
		f.line("hb-grid", pt{x, p.top}, pt{x, p.bottom})
		label := "×" + strconv.FormatFloat(v, 'g', -1, 64)
		// The 1 in the middle comes first: ticks too near to it, or to the one
		// before, have no label.
		if half := textWidth(label)/2 + 3; v == 1 || x-half > last && math.Abs(x-p.x.at(1)) > half+textWidth("×1")/2 && x-half >= 0 && x+half <= Width {
			f.text("hb-k", "middle", x, p.bottom+15, label)
			last = x + half
		}
	}
	f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
	f.line("hb-mark", pt{p.x.at(1), p.top}, pt{p.x.at(1), p.bottom})
	f.text("hb-t", "middle", (p.left+p.right)/2, p.bottom+31, "ratio "+what)
	for i, r := range points {
		top := p.top + row*float64(i)
		f.line("hb-grid", pt{p.left, top}, pt{p.right, top})
		verdict := ""
		if r.Verdict != "" {
			verdict = ": " + r.Verdict
		}
		f.text("hb-t hb-halo", "start", p.left+2, top+12, fit(r.Label, p.right-p.left-4-textWidth(verdict))+verdict)
		f.ratio(&p, &r, top+21)
	}
	f.height = p.bottom + 38
	return f
}

// ratio draws one point at the height y.
func (f *Figure) ratio(p *frame, r *Ratio, y float64) {
	e := r.Value
	if e.N == 0 || math.IsNaN(e.Value) {
		f.text("hb-k", "middle", p.x.at(1), y+4, "no value")
		return
	}
	series := map[Mark]int{Plain: 0, Good: 0, Bad: 1, Doubtful: 0}[r.Mark]
	class := seriesClass(series)
	at := func(v float64) float64 {
		switch {
		case v <= 0:
			return p.left
		case math.IsInf(v, 1):
			return p.right
		}
		return math.Min(math.Max(p.x.at(v), p.left), p.right)
	}
	if e.HasInterval {
		bar := "hb-thin "
		if !e.Trusted() {
			bar = "hb-doubt "
		}
		f.line(bar+class, pt{at(e.Lo), y}, pt{at(e.Hi), y})
		if e.Trusted() {
			for _, v := range []float64{e.Lo, e.Hi} {
				f.line("hb-thin "+class, pt{at(v), y - 3}, pt{at(v), y + 3})
			}
		}
	}
	kind := "hb-solid"
	if r.Mark == Doubtful {
		kind = "hb-hollow"
	}
	x := at(e.Value)
	if e.Value < p.x.lo || e.Value > p.x.hi { // beyond the axis: an arrow at its edge
		d := math.Copysign(5, e.Value-1)
		f.line("hb-thin "+class, pt{x - d, y - 3}, pt{x, y}, pt{x - d, y + 3})
		x -= 2 * d
	}
	f.marker(series, kind, x, y, 3.8)
	f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s: ×%s (%d repetitions)", r.Label, strconv.FormatFloat(e.Value, 'g', 3, 64), e.N)
}

// fit shortens a text to a width in user units.
func fit(s string, width float64) string {
	r := []rune(s)
	if most := int(width / (emWidth * textSize)); len(r) > most {
		return string(r[:max(0, most-1)]) + "…"
	}
	return s
}
