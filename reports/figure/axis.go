package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// axis maps values to positions. A logarithmic axis may have a strip at its
// low end for what is below its first decade, 0 included: starved flows are
// drawn, not dropped.
type axis struct {
	log      bool
	lo, hi   float64
	from, to float64 // positions of lo and hi
	strip    float64 // signed length of the strip before from, 0 for none
	stripAs  string  // its tick: "<10"
	step     float64 // of a linear axis, 0 for a step that fits
}

// at returns the position of a value, held to the axis.
func (a *axis) at(v float64) float64 {
	if a.log {
		if v < a.lo {
			if a.strip != 0 {
				return a.from - a.strip*0.6
			}
			return a.from
		}
		return a.from + (a.to-a.from)*math.Min(1, math.Log10(v/a.lo)/math.Log10(a.hi/a.lo))
	}
	return a.from + (a.to-a.from)*math.Min(math.Max((v-a.lo)/(a.hi-a.lo), 0), 1)
}

// logAxis covers positive values with whole decades, at most six of them; what
// is below goes into the strip.
func logAxis(values []float64) axis {
	lo, hi, below := math.Inf(1), 0.0, false
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if hi == 0 {
		lo, hi = 1, 10
	}
	a := axis{log: true, lo: decade(lo, math.Floor), hi: decade(hi, math.Ceil)}
	if a.hi <= a.lo {
		a.hi = a.lo * 10
	}
	if a.hi/a.lo > 1e6 {
		a.lo = a.hi / 1e6
	}
	for _, v := range values {
		below = below || v < a.lo
	}
	if below {
		a.strip = 1 // the length is set with the positions
		// Not "0", even when all of these values are: a quantile between one of
		// them and the next flow stands here too.
		a.stripAs = "<" + siNumber(a.lo)
	}
	return a
}

func decade(v float64, round func(float64) float64) float64 {
	return math.Pow(10, round(math.Log10(v)))
}

// place sets the positions of the axis' ends, with the strip inside them.
func (a *axis) place(from, to, strip float64) {
	a.from, a.to = from, to
	if a.strip != 0 {
		a.strip = math.Copysign(strip, to-from)
		a.from += a.strip
	}
}

// tick is a labelled place of an axis; an unlabelled one is a minor tick.
type tick struct {
	v     float64
	label string
}

func (a *axis) ticks(most int) []tick {
	if a.log {
		return a.logTicks(most)
	}
	span, step := a.hi-a.lo, a.step
	if step == 0 {
		unit := decade(span/float64(most), math.Floor)
		for _, m := range []float64{1, 2, 5, 10} {
			if step = unit * m; span/step <= float64(most) {
				break
			}
		}
	}
	var ts []tick
	for i := math.Ceil(a.lo/step - 1e-9); i*step <= a.hi+step*1e-9; i++ {
		v := i*step + 0 // the sum turns -0 into 0
		ts = append(ts, tick{v, strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return ts
}

func (a *axis) logTicks(most int) []tick {
	decades := int(math.Round(math.Log10(a.hi / a.lo)))
	every := 1
	for decades/every > most {
		every++
	}
	var ts []tick
	for d := 0; d <= decades; d++ {
		v := a.lo * math.Pow(10, float64(d))
		v = decade(v, math.Round)
		t := tick{v: v}
		if d%every == 0 {
			t.label = siNumber(v)
		}
		ts = append(ts, t)
		if decades <= 2 && d < decades { // too few decades to read values from
			for _, m := range []float64{2, 5} {
				ts = append(ts, tick{v * m, siNumber(v * m)})
			}
		}
	}
	return ts
}

// siNumber writes 10000 as "10 k". It is for round tick values.
func siNumber(v float64) string {
	for _, u := range []struct {
		f float64
		s string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.f {
			return strings.TrimSuffix(strconv.FormatFloat(v/u.f, 'f', 1, 64), ".0") + "\u00a0" + u.s
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Rate writes a rate in b/s with three significant digits: "14.6 kb/s".
func Rate(bps float64) string {
	if math.IsNaN(bps) {
		return "–"
	}
	for _, u := range []struct {
		f float64
		s string
	}{{1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}} {
		if bps >= 0.9995*u.f {
			return digits(bps/u.f) + "\u00a0" + u.s
		}
	}
	return digits(bps) + "\u00a0b/s"
}

// digits writes three significant digits, without an exponent.
func digits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// frame is the rectangle of a panel with its axes.
type frame struct {
	left, top, right, bottom float64
	x, y                     axis
}

// xAxis draws the axis below the panel: ticks, their labels and the title.
func (f *Figure) xAxis(p *frame, most int, title string, grid bool) {
	for _, t := range p.x.ticks(most) {
		x := p.x.at(t.v)
		if grid {
			f.line("hb-grid", pt{x, p.top}, pt{x, p.bottom})
		}
		f.line("hb-axis", pt{x, p.bottom}, pt{x, p.bottom + 4})
		// The strip's label names its edge already, and would run into this one.
		if t.label != "" && (p.x.strip == 0 || t.v > p.x.lo*1.0001) {
			f.text("hb-k", "middle", x, p.bottom+15, t.label)
		}
	}
	if p.x.strip != 0 {
		f.text("hb-k", "start", p.left, p.bottom+15, p.x.stripAs)
		f.line("hb-edge", pt{p.x.from, p.top}, pt{p.x.from, p.bottom})
	}
	f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
	if title != "" {
		f.text("hb-t", "middle", (p.left+p.right)/2, p.bottom+31, title)
	}
}

// yAxis draws the axis at the left of the panel; its title stands above it,
// where it can be read without turning the head.
func (f *Figure) yAxis(p *frame, most int, title string) {
	for _, t := range p.y.ticks(most) {
		y := p.y.at(t.v)
		f.line("hb-grid", pt{p.left, y}, pt{p.right, y})
		if t.label != "" {
			f.text("hb-k", "end", p.left-5, y+4, t.label)
		}
	}
	if p.y.strip != 0 {
		// As far from the lowest decade's tick as the strip allows.
		f.text("hb-k", "end", p.left-5, p.y.from-p.y.strip+3, p.y.stripAs)
		f.line("hb-edge", pt{p.left, p.y.from}, pt{p.right, p.y.from})
	}
	f.line("hb-axis", pt{p.left, p.top}, pt{p.left, p.bottom})
	if title != "" {
		f.text("hb-t", "start", 4, p.top-10, title)
	}
}
