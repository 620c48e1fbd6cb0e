package figure

import (
	"fmt"
	"math"
	"sort"

	"github.com/hopbed/hopbed/reports/stats"
)

// Repeated is one labelled series of repetitions, each with the values of its
// flows.
type Repeated struct {
	Label  string
	Blocks stats.Blocks
}

// Ranked draws the goodput of the flows from the worst to the best, one panel
// for each series: the bar is the median over repetitions of the flow at this
// rank, the line its range.
func Ranked(id string, m Measure, series []Repeated) *Figure {
	f := &Figure{ID: id, Title: "Goodput of each flow, from worst to best", width: Width,
		Caption: "The flows of a repetition are sorted by goodput. Bar: median over the repetitions of the flow at this rank. Thin line: its range over the repetitions. Flows without a bar got nothing. The dotted line marks 10 kb/s."}
	if m.name == Completion.name {
		f.Title = "Completion time of each flow, from fastest to slowest"
		f.Caption = "The flows of a repetition are sorted by completion time; lower is faster. Bar: median over the repetitions of the flow at this rank. Thin line: its range over the repetitions. A flow that had not completed counts with the time until its run ended."
	}
	f.data.cols = []string{"transport", "rank", m.name + "_median_" + m.unit, m.name + "_min_" + m.unit, m.name + "_max_" + m.unit}
	var all []float64
	ranks := make([][][]float64, len(series)) // by series and rank: the values over repetitions
	most := 1
	for i, s := range series {
		for _, b := range s.Blocks {
			for rank, v := range stats.Sorted(b) {
				if rank == len(ranks[i]) {
					ranks[i] = append(ranks[i], nil)
				}
				ranks[i][rank] = append(ranks[i][rank], v)
				all = append(all, v)
			}
		}
		most = max(most, len(ranks[i]))
	}
	y := 8.0
	for i, s := range series {
		p := frame{left: plotLeft, right: plotRight, top: y + 20, bottom: y + 116}
		p.y = logAxis(m.shown(all))
		p.y.place(p.bottom, p.top, 15)
		f.text("hb-b", "start", 4, y+8, s.Label)
		f.yAxis(&p, 4, "")
		if m.mark > 0 {
			f.line("hb-mark", pt{p.left, p.y.at(m.mark)}, pt{p.right, p.y.at(m.mark)})
		}
		step := (p.right - p.left) / float64(most)
		for rank, v := range ranks[i] {
			sort.Float64s(v)
			lo, med, hi := v[0], stats.Quantile(v, 0.5), v[len(v)-1]
			f.data.add(s.Label, rank+1, med, lo, hi)
			x := p.left + step*(float64(rank)+0.5)
			if med > 0 {
				h := p.bottom - p.y.at(med)
				f.rect("hb-solid "+seriesClass(i), x-step*0.36, p.bottom-h, step*0.72, h).tip = fmt.Sprintf("%s, rank %d: %s (%s to %s)", s.Label, rank+1, m.format(med), m.format(lo), m.format(hi))
			}
			if len(v) > 1 && hi > lo {
				f.line("hb-axis", pt{x, p.y.at(lo)}, pt{x, p.y.at(hi)})
			}
		}
		f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
		if len(ranks[i]) == 0 {
			f.text("hb-k", "start", p.left+6, p.top+16, "no valid run")
		}
		y = p.bottom + 10
		if i == len(series)-1 {
			every := max(1, int(math.Ceil(float64(most)/6/5))*5)
			if most <= 6 {
				every = 1
			}
			for r := 1; r <= most; r++ {
				if r == 1 || r%every == 0 {
					f.text("hb-k", "middle", p.left+step*(float64(r)-0.5), p.bottom+15, fmt.Sprint(r))
				}
			}
			f.text("hb-t", "middle", (p.left+p.right)/2, p.bottom+31, "flow, sorted ("+m.noun+" in "+m.sign+")")
			y = p.bottom + 38
		}
	}
	f.height = y
	return f
}
