package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopbed/hopbed/reports/stats"
)

// Series is one labelled sample, in b/s where it is a goodput. The place in the
// list decides colour, line style and marker.
type Series struct {
	Label  string
	Values []float64
	// Open are the times at which flows that had not completed were given up,
	// of a completion time only.
	Open []float64
	// Band is the distribution with its uncertainty; nil for none.
	Band *stats.CDFBand
}

const (
	plotLeft, plotRight = 44.0, Width - 14.0
	// strip is the width of the strip for values below a horizontal axis: room
	// for its label beside that of the first decade.
	strip = 38.0
)

func allValues(series []Series) []float64 {
	var all []float64
	for _, s := range series {
		all = append(append(all, s.Values...), s.Open...)
	}
	return all
}

// lineLegend is the legend of a figure with lines and markers.
func (f *Figure) lineLegend(y float64, series []Series) float64 {
	var entries []entry
	for i, s := range series {
		entries = append(entries, entry{s.Label, 26, func(x, y float64) {
			f.line("hb-line "+seriesClass(i), pt{x, y}, pt{x + 26, y})
			f.marker(i, "hb-solid", x+13, y, 3.4)
		}})
	}
	return f.legend(6, y, entries)
}

// CDF draws the distribution over flows, one stepped line for each series, on a
// logarithmic axis. The threshold of starvation is marked. Flows that had not
// completed keep a line from reaching 1.
func CDF(id string, m Measure, series []Series) *Figure {
	f := &Figure{ID: id, Title: "Distribution of goodput over flows", width: Width,
		Caption: "Share of flows whose goodput is at most the value on the axis. The further right a line, the more its flows get; the higher it is at the left edge, the more of them starve. The dotted line marks 10 kb/s, below which a flow counts as starved. Markers stand at the quartiles."}
	if m.name == Completion.name {
		f.Title = "Distribution of completion times"
		f.Caption = "Share of all flows that had delivered their data after at most the time on the axis, counted from their start. The further left a line, the faster; a line that ends below 1 leaves flows that had not completed when the run ended. Markers stand at the quartiles that were reached."
	}
	f.data.cols = []string{"transport", m.name + "_" + m.unit, "share_of_" + m.of(), "lo", "hi"}
	y := f.lineLegend(10, series)
	p := frame{left: plotLeft, right: plotRight, top: y + 18, bottom: y + 218}
	p.x = logAxis(m.shown(allValues(series)))
	p.x.place(p.left, p.right, strip)
	p.y = axis{lo: 0, hi: 1, step: 0.25, from: p.bottom, to: p.top}
	f.yAxis(&p, 4, "share of "+m.of())
	f.xAxis(&p, 6, m.axis(), true)
	if m.mark > 0 {
		at := p.x.at(m.mark)
		f.line("hb-mark", pt{at, p.top}, pt{at, p.bottom})
		if at > p.left+50 {
			f.text("hb-x hb-halo", "end", at-4, p.top+11, "starved")
		}
	}

	f.cdfBands(&p, series)
	for i, s := range series {
		if len(s.Values) == 0 {
			continue
		}
		e := stats.NewECDF(s.Values)
		pts := []pt{{p.left, p.y.at(0)}}
		reached := float64(len(s.Values)) / float64(len(s.Values)+len(s.Open))
		for j := range e.X {
			x, share := p.x.at(e.X[j]), e.P[j]*reached
			pts = append(pts, pt{x, pts[len(pts)-1].y}, pt{x, p.y.at(share)})
			lo, hi := s.band(e.X[j])
			f.data.add(s.Label, e.X[j], share, lo, hi)
		}
		pts = append(pts, pt{p.right, p.y.at(reached)})
		f.line("hb-line "+seriesClass(i), pts...)
	}
	for i, s := range series {
		sorted := stats.Sorted(s.Values)
		for range s.Open {
			sorted = append(sorted, math.Inf(1))
		}
		for _, q := range []float64{0.25, 0.5, 0.75} {
			if len(sorted) == 0 {
				break
			}
			v := stats.Quantile(sorted, q)
			if math.IsInf(v, 1) {
				break
			}
			f.marker(i, "hb-solid", p.x.at(v), p.y.at(q), 3.6)
			f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("%s, %s: %s", s.Label, quartileName(q), m.format(v))
		}
	}
	f.height = p.bottom + 38
	return f
}

// cdfBands draws the bands below the lines and says what they are.
func (f *Figure) cdfBands(p *frame, series []Series) {
	drawn, doubtful := false, false
	for i, s := range series {
		switch b := s.Band; {
		case b == nil || !b.HasBand:
		case !b.Trusted():
			doubtful = true
		default:
			drawn = true
			var upper, lower []pt
			lo, hi := 0.0, 0.0
			x := p.left
			for k := range b.X {
				at := p.x.at(b.X[k])
				upper, lower = append(upper, pt{x, p.y.at(hi)}, pt{at, p.y.at(hi)}), append(lower, pt{x, p.y.at(lo)}, pt{at, p.y.at(lo)})
				lo, hi, x = b.Lo[k], b.Hi[k], at
			}
			upper, lower = append(upper, pt{x, p.y.at(hi)}, pt{p.right, p.y.at(hi)}), append(lower, pt{x, p.y.at(lo)}, pt{p.right, p.y.at(lo)})
			slices.Reverse(lower)
			f.add(shape{kind: polygon, class: "hb-outer " + seriesClass(i), pts: append(upper, lower...)})
		}
	}
	if drawn {
		f.Caption += " Bands: 95 % intervals of the share at each value by itself, resampling whole repetitions."
	}
	if doubtful {
		f.Caption += " A line without a band rests on fewer than five repetitions, too few for one."
	}
}

// band is the interval of the share at a value, NaN where there is none.
func (s *Series) band(x float64) (lo, hi float64) {
	if s.Band == nil || !s.Band.Trusted() {
		return math.NaN(), math.NaN()
	}
	k, ok := slices.BinarySearch(s.Band.X, x)
	if !ok { // the band has fewer steps
		return math.NaN(), math.NaN()
	}
	return s.Band.Lo[k], s.Band.Hi[k]
}

func quartileName(q float64) string {
	switch q {
	case 0.25:
		return "lower quartile"
	case 0.5:
		return "median"
	}
	return "upper quartile"
}
