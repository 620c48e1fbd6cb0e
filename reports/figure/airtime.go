package figure

import (
	"fmt"
	"math"
)

// Airtime is how the nodes of one series spent their time.
type Airtime struct {
	Label string
	Nodes []NodeAirtime
	Why   string // there are no nodes, "" for a back end that has no account
}

// NodeAirtime are shares that add up to 1.
type NodeAirtime struct {
	Name               string
	Tx, Rx, Busy, Idle float64
}

// AirtimeBars draws one bar for each node, one panel for each series.
func AirtimeBars(id string, series []Airtime) *Figure {
	f := &Figure{ID: id, Title: "Airtime of each node", width: Width, hatches: []hatch{{"hb-hatch-rx", "diagonal"}, {"hb-hatch-busy", "dots"}},
		Caption: "Share of the measured interval in which a node sends, receives (for itself or for others), senses the channel busy without decoding anything, or finds it idle. Mean over the repetitions."}
	f.data.cols = []string{"transport", "node", "tx_share", "rx_share", "busy_share", "idle_share"}
	parts := []struct {
		name, class string
		hatch       int
		share       func(NodeAirtime) float64
	}{
		{"sending", "hb-tx", 0, func(n NodeAirtime) float64 { return n.Tx }},
		{"receiving", "hb-idle", 1, func(n NodeAirtime) float64 { return n.Rx }},
		{"sensed busy", "hb-idle", 2, func(n NodeAirtime) float64 { return n.Busy }},
		{"idle", "hb-idle", 0, func(n NodeAirtime) float64 { return n.Idle }},
	}
	var entries []entry
	for _, part := range parts {
		entries = append(entries, entry{part.name, 14, func(x, y float64) { f.rect(part.class, x, y-5, 14, 10).hatch = part.hatch }})
	}
	y := f.legend(6, 10, entries)
	var named []NodeAirtime // the names below the last panel
	longest := 0
	for _, s := range series {
		if len(s.Nodes) > len(named) {
			named = s.Nodes
		}
		for _, n := range s.Nodes {
			longest = max(longest, len([]rune(short(n.Name, 9))))
		}
	}
	nodes := max(1, len(named))
	for i, s := range series {
		p := frame{left: plotLeft, right: plotRight, top: y + 20, bottom: y + 110}
		p.y = axis{lo: 0, hi: 100, step: 50, from: p.bottom, to: p.top}
		f.text("hb-b", "start", 4, y+8, s.Label)
		f.yAxis(&p, 4, "")
		step := (p.right - p.left) / float64(nodes)
		gap := math.Min(1.5, step*0.15)
		every := int(math.Ceil(11 / step))
		for j, n := range s.Nodes {
			f.data.add(s.Label, n.Name, n.Tx, n.Rx, n.Busy, n.Idle)
			x, base := p.left+step*float64(j)+gap, p.bottom
			for _, part := range parts {
				h := part.share(n) * (p.bottom - p.top)
				if h <= 0 {
					continue
				}
				r := f.rect(part.class, x, base-h, step-2*gap, h)
				r.hatch, r.tip = part.hatch, fmt.Sprintf("%s, %s: %s %.1f %%", s.Label, n.Name, part.name, 100*part.share(n))
				base -= h
			}
		}
		if len(s.Nodes) == 0 {
			why := s.Why
			if why == "" {
				why = "not accounted for by this back end"
			}
			f.text("hb-k", "start", p.left+6, p.top+16, why)
		}
		f.line("hb-axis", pt{p.left, p.bottom}, pt{p.right, p.bottom})
		y = p.bottom + 10
		if i == len(series)-1 {
			for j := 0; j < len(named); j += every {
				x := p.left + step*(float64(j)+0.5)
				f.add(shape{kind: label, class: "hb-x", anchor: "end", rotate: -60, pts: []pt{{x + 3, p.bottom + 11}}, text: short(named[j].Name, 9)})
			}
			title := p.bottom + 24 + 5*float64(longest)
			f.text("hb-t", "middle", (p.left+p.right)/2, title, "node (share of time in %)")
			y = title + 8
		}
	}
	f.height = y
	return f
}

func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
