package figure

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/hopbed/hopbed/reports/stats"
)

// Gain is the ratio of one series to the baseline over a number of hop counts.
type Gain struct {
	Label  string
	Series int // place in the report's order, for colour and marker
	Hops   []int
	Ratio  []stats.Estimate
}

// Gains draws ratios by hop count with their intervals.
func Gains(id, baseline string, m Measure, gains []Gain) *Figure {
	f := &Figure{ID: id, Title: "Gain over " + baseline + " by hop count", width: Width,
		Caption: "Ratio of the median goodput to that of " + baseline + " over the flows with this number of hops. Bars: 95 % interval, resampling whole repetitions; a marker without a bar has no interval. ∞ is a ratio to a median of 0."}
	axis := "ratio to " + baseline
	if m.name == Completion.name {
		f.Title = "Speed-up over " + baseline + " by hop count"
		axis = "speed-up over " + baseline
		f.Caption = "Median completion time of " + baseline + " over that of the transport, of the flows with this number of hops: above 1 is faster. Bars: 95 % interval, resampling whole repetitions; a marker without a bar has no interval. Flows that had not completed count with the time until their run ended."
	}
	f.data.cols = []string{"transport", "hops", "ratio", "lo", "hi", "repetitions"}
	var hops []int
	seen := map[int]bool{}
	infinite, doubtful := false, false
	var all []float64
	for _, g := range gains {
		for i, h := range g.Hops {
			if !seen[h] {
				seen[h] = true
				hops = append(hops, h)
			}
			e := g.Ratio[i]
			for _, v := range []float64{e.Value, e.Lo, e.Hi} {
				infinite = infinite || math.IsInf(v, 1)
				if v > 0 && !math.IsInf(v, 0) {
					all = append(all, v)
				}
			}
			lo, hi := math.NaN(), math.NaN()
			if e.HasInterval {
				lo, hi = e.Lo, e.Hi
			}
			f.data.add(g.Label, h, e.Value, lo, hi, e.N)
		}
	}
	sort.Ints(hops)
	y := 10.0
	var entries []entry
	for _, g := range gains {
		entries = append(entries, entry{g.Label, 12, func(x, y float64) { f.marker(g.Series, "hb-solid", x+6, y, 3.8) }})
	}
	y = f.legend(6, y, entries)
	p := frame{left: plotLeft, right: plotRight, top: y + 18, bottom: y + 178}
	p.y = logAxis(append(all, 1))
	top := p.top
	if infinite {
		top += 16 // room for ratios to 0 beyond the axis
	}
	p.y.place(p.bottom, top, 15)
	f.yAxis(&p, 5, axis)
	if infinite {
		f.text("hb-k", "end", p.left-5, p.top+5, "∞")
	}
	f.line("hb-mark", pt{p.left, p.y.at(1)}, pt{p.right, p.y.at(1)})
	column := map[int]float64{}
	step := (p.right - p.left) / math.Max(1, float64(len(hops)))
	for i, h := range hops {
		column[h] = p.left + step*(float64(i)+0.5)
		f.text("hb-k", "middle", column[h], p.bottom+15, strconv.Itoa(h))
	}
	f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
	f.text("hb-t", "middle", (p.left+p.right)/2, p.bottom+31, "hops")
	for k, g := range gains {
		off := (float64(k) - float64(len(gains)-1)/2) * math.Min(14, step/float64(len(gains)+1))
		for i, h := range g.Hops {
			e := g.Ratio[i]
			if math.IsNaN(e.Value) {
				continue
			}
			x := column[h] + off
			at := func(v float64) float64 {
				if math.IsInf(v, 1) {
					return p.top + 2
				}
				return p.y.at(v)
			}
			switch {
			case e.HasInterval && !e.Trusted():
				f.line("hb-doubt "+seriesClass(g.Series), pt{x, at(e.Lo)}, pt{x, at(e.Hi)})
				doubtful = true
			case e.HasInterval:
				f.line("hb-thin "+seriesClass(g.Series), pt{x, at(e.Lo)}, pt{x, at(e.Hi)})
				for _, v := range []float64{e.Lo, e.Hi} {
					f.line("hb-thin "+seriesClass(g.Series), pt{x - 3, at(v)}, pt{x + 3, at(v)})
				}
			}
			f.marker(g.Series, "hb-solid", x, at(e.Value), 3.8)
			f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s, %d hops: ×%s (%d repetitions)", g.Label, h, strconv.FormatFloat(e.Value, 'g', 3, 64), e.N)
		}
	}
	if doubtful {
		f.Caption += " A dotted bar rests on fewer than five repetitions and is not to be trusted."
	}
	f.height = p.bottom + 38
	return f
}
