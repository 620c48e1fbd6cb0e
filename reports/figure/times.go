package figure

import (
	"fmt"
	"math"
	"strconv"

	"github.com/hopbed/hopbed/reports/stats"
)

// Times are the completion times of one series of sized flows.
type Times struct {
	Label string
	Reps  []RepTimes
}

// RepTimes are those of one repetition, in seconds. Open flows had not completed
// when the run ended.
type RepTimes struct {
	Repetition   int
	Values, Open []float64
}

// CompletionTimes draws the completion time of every flow, repetition by
// repetition, one panel for each series.
func CompletionTimes(id string, series []Times) *Figure {
	f := &Figure{ID: id, Title: "Completion time of each flow, by repetition", width: Width,
		Caption: "Every dot is one flow; lower is faster. Thick line: median of the repetition. A flow that had not completed is hollow and stands at the time when its run ended: its true time is longer."}
	f.data.cols = []string{"transport", "repetition", "completion_s", "completed"}
	var all []float64
	most := 1
	for _, s := range series {
		most = max(most, len(s.Reps))
		for _, r := range s.Reps {
			all = append(append(all, r.Values...), r.Open...)
			for _, v := range r.Values {
				f.data.add(s.Label, r.Repetition, v, 1)
			}
			for _, v := range r.Open {
				f.data.add(s.Label, r.Repetition, v, 0)
			}
		}
	}
	y := 8.0
	for i, s := range series {
		p := frame{left: plotLeft, right: plotRight, top: y + 20, bottom: y + 120}
		p.y = logAxis(all)
		p.y.place(p.bottom, p.top, 15)
		f.text("hb-b", "start", 4, y+8, s.Label)
		f.yAxis(&p, 4, "")
		if len(s.Reps) == 0 {
			f.text("hb-k", "start", p.left+6, p.top+16, "no valid run")
		}
		step := (p.right - p.left) / float64(most)
		last := i == len(series)-1
		for j, r := range s.Reps {
			f.repTimes(&p, i, &r, p.left+step*(float64(j)+0.5), math.Min(step*0.8, 40))
			if every := 1 + most*14/int(p.right-p.left); j%every == 0 {
				f.text("hb-k", "middle", p.left+step*(float64(j)+0.5), p.bottom+15, strconv.Itoa(r.Repetition))
			}
		}
		f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
		y = p.bottom + 24
		if last {
			f.text("hb-t", "middle", (p.left+p.right)/2, p.bottom+31, "repetition; completion time in s")
			y = p.bottom + 38
		}
	}
	f.height = y
	return f
}

// repTimes draws the flows of one repetition around x.
func (f *Figure) repTimes(p *frame, series int, r *RepTimes, x, width float64) {
	values := stats.Sorted(r.Values)
	for k, v := range append(values, r.Open...) {
		dot := "hb-dot"
		if k >= len(values) {
			dot = "hb-hollow"
		}
		// Spread by a fixed pattern, so that equal values stay visible.
		f.marker(series, dot, x+width*spread(k, 3), p.y.at(v), 1.9)
	}
	both := Series{Values: r.Values, Open: r.Open}
	if m := stats.Median(append(append([]float64(nil), r.Values...), r.Open...)); !math.IsNaN(m) {
		f.line("hb-median "+seriesClass(series), pt{x - width/2, p.y.at(m)}, pt{x + width/2, p.y.at(m)})
		f.shapes[len(f.shapes)-1].tip = fmt.Sprintf("repetition %d: median %s of %d flows", r.Repetition, both.median(&Completion), len(r.Values)+len(r.Open))
	}
}
