package figure

import (
	"fmt"
	"math"
)

// Band is goodput over time: at each step the quantiles over flows.
type Band struct {
	Label   string
	StepS   float64
	WarmupS float64
	Steps   []BandStep
}

// BandStep is one step; OK is false where there is no value.
type BandStep struct {
	StartS float64
	OK     bool
	QBps   [5]float64 // 10, 25, 50, 75 and 90 %
}

// Bands draws the quantiles of goodput over time, one panel for each series.
// A gap in the samples is a gap in the bands.
func Bands(id string, bands []Band) *Figure {
	step := 0.0
	for _, b := range bands {
		step = max(step, b.StepS)
	}
	f := &Figure{ID: id, Title: "Goodput over time", width: Width,
		Caption: fmt.Sprintf("Means over steps of %g s. ", step) + "Over the flows in each step: median (line), the middle half (dark) and from 10 % to 90 % (light). Grey: warm-up, which is not measured. Gaps are moments without samples."}
	f.data.cols = []string{"transport", "start_s", "p10_bps", "q1_bps", "median_bps", "q3_bps", "p90_bps"}
	var all []float64
	end := 0.0
	for _, b := range bands {
		for _, s := range b.Steps {
			if s.OK {
				all = append(all, s.QBps[:]...)
				f.data.add(b.Label, s.StartS, s.QBps[0], s.QBps[1], s.QBps[2], s.QBps[3], s.QBps[4])
			} else {
				f.data.add(b.Label, s.StartS, "", "", "", "", "")
			}
			end = max(end, s.StartS+b.StepS)
		}
	}
	if end == 0 {
		end = 1
	}
	y := 8.0
	for i, b := range bands {
		p := frame{left: plotLeft, right: plotRight, top: y + 20, bottom: y + 120}
		p.x = axis{lo: 0, hi: end, from: p.left, to: p.right}
		p.y = logAxis(all)
		p.y.place(p.bottom, p.top, 15)
		f.text("hb-b", "start", 4, y+8, b.Label)
		if b.WarmupS > 0 {
			f.rect("hb-warm", p.left, p.top, p.x.at(b.WarmupS)-p.left, p.bottom-p.top)
		}
		f.yAxis(&p, 4, "")
		for from := 0; from < len(b.Steps); {
			if !b.Steps[from].OK {
				from++
				continue
			}
			to := from
			for to < len(b.Steps) && b.Steps[to].OK {
				to++
			}
			f.band(&p, i, &b, b.Steps[from:to])
			from = to
		}
		if len(b.Steps) == 0 {
			f.text("hb-k", "start", p.left+6, p.top+16, "no samples")
		}
		last := i == len(bands)-1
		title := ""
		if last {
			title = "time since the start of the run (s); goodput in b/s"
		}
		if last {
			f.xAxis(&p, 6, title, false)
			y = p.bottom + 38
		} else {
			f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
			y = p.bottom + 10
		}
	}
	f.height = y
	return f
}

// band draws steps that follow each other without a gap.
func (f *Figure) band(p *frame, i int, b *Band, steps []BandStep) {
	edge := func(q int) []pt {
		var pts []pt
		for _, s := range steps {
			y := p.y.at(s.QBps[q])
			pts = append(pts, pt{p.x.at(s.StartS), y}, pt{p.x.at(math.Min(s.StartS+b.StepS, p.x.hi)), y})
		}
		return pts
	}
	area := func(class string, lo, hi int) {
		pts := edge(hi)
		down := edge(lo)
		for j := len(down) - 1; j >= 0; j-- {
			pts = append(pts, down[j])
		}
		f.add(shape{kind: polygon, class: class + " " + seriesClass(i), pts: pts})
	}
	area("hb-outer", 0, 4)
	area("hb-inner", 1, 3)
	f.line("hb-thin "+seriesClass(i), edge(2)...)
}
