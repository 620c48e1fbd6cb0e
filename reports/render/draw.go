package render

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/stats"
)

// maxDrawn is up to how many points of a campaign have figures of their own: a
// page of more would be too large to open, and nobody looks at them all.
const maxDrawn = 48

// account fills in what the nodes and wired links of a group did, and returns its
// networks: one, or one for each repetition.
func account(ctx context.Context, set *dataset.Set, g *Group) ([]dataset.Topology, error) {
	nets, err := set.Networks(ctx, g.Data)
	if err != nil {
		return nil, err
	}
	for _, s := range airtimeSeries(g.Data) {
		pipes, err := set.PipesOf(ctx, &s)
		if err != nil {
			return nil, err
		}
		if len(pipes) > 0 {
			g.Pipes = append(g.Pipes, SeriesPipes{s.Transport, pipes})
		}
		of := &s
		if len(nets) > 1 { // node 1 of one placement is not node 1 of another
			of = &dataset.Series{Transport: s.Transport}
			for _, r := range s.Reps {
				if r.Run.Repetition == nets[0].Repetition {
					of.Reps = append(of.Reps, r)
				}
			}
		}
		nodes, err := set.AirtimeOf(ctx, of)
		if err != nil {
			return nil, err
		}
		g.Airtime = append(g.Airtime, SeriesAirtime{s.Transport, len(of.Reps), nodes})
	}
	return nets, nil
}

// draw makes the figures of a group.
func draw(ctx context.Context, set *dataset.Set, g *Group, nets []dataset.Topology) error {
	var (
		samples []figure.Series
		ranked  []figure.Repeated
		bands   []figure.Band
		times   []figure.Times

		binS, warmupS float64
	)
	for i := range g.Data.Series {
		s := &g.Data.Series[i]
		blocks := s.Blocks()
		samples = append(samples, sample(s))
		ranked = append(ranked, figure.Repeated{Label: s.Transport, Blocks: blocks})
		if g.Data.Sized { // their goodput over time says when they were busy, not how fast
			times = append(times, completionTimes(s))
			continue
		}
		b, err := set.GoodputOverTime(ctx, s)
		if err != nil {
			return err
		}
		bands = append(bands, band(b))
		binS, warmupS = b.BinS, b.WarmupS
	}
	id := func(name string) string { return g.ID + "-" + name }
	of, what := figure.Goodput, "goodput"
	if g.Data.Sized {
		of, what = figure.Completion, "completion"
	}
	g.Figures = append(g.Figures, figure.CDF(id(what+"-cdf"), of, samples), figure.Box(id(what+"-box"), of, samples))
	if !g.single() { // one flow has no rank
		g.Figures = append(g.Figures, figure.Ranked(id(what+"-ranked"), of, ranked))
	}
	if g.Data.Sized {
		g.Figures = append(g.Figures, figure.CompletionTimes(id("completion-times"), times))
	} else {
		g.Figures = append(g.Figures, figure.Bands(id("goodput-time"), bands))
		said, err := saidOverTime(ctx, set, g, id("said-time"), binS, warmupS)
		if err != nil {
			return err
		}
		g.Figures = append(g.Figures, said...)
	}
	g.Figures = append(g.Figures, delayFigures(g)...)
	if gains := gains(g); len(gains) > 0 {
		g.Figures = append(g.Figures, figure.Gains(id("gain-by-hops"), g.Baseline, of, gains))
	}
	varies := len(nets) > 1
	for i := range nets {
		m := figure.Topology(id(fmt.Sprintf("network-%d", nets[i].Repetition)), networkMap(&nets[i]))
		if varies {
			m.Title = fmt.Sprintf("The network in repetition %d", nets[i].Repetition)
		}
		if i == 0 {
			g.Figures = append(g.Figures, m)
		} else {
			g.Maps = append(g.Maps, m)
		}
	}
	if bars := airtimeBars(g, nets); bars != nil {
		g.Figures = append(g.Figures, bars)
	}
	stamp(g.allFigures(), g.Data.Backend, set.Campaign.Quick)
	return nil
}

// saidOverTime draws what Hop and UDP say of themselves; nothing where no series is
// theirs.
func saidOverTime(ctx context.Context, set *dataset.Set, g *Group, id string, binS, warmupS float64) ([]*figure.Figure, error) {
	var panels []figure.LinesPanel
	for i := range g.Data.Series {
		p, err := set.ProgressOf(ctx, &g.Data.Series[i], binS)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		for _, l := range p.Lines {
			k := slices.IndexFunc(panels, func(p figure.LinesPanel) bool { return p.Name == l.Name })
			if k < 0 {
				k = len(panels)
				panels = append(panels, figure.LinesPanel{Name: l.Name})
			}
			panels[k].Lines = append(panels[k].Lines, figure.TimeLine{Label: p.Transport, Series: i, Values: l.Values})
		}
	}
	if len(panels) == 0 {
		return nil, nil
	}
	f := figure.Lines(id, binS, warmupS, panels)
	f.Caption = fmt.Sprintf("Means over steps of %g s and over the flows of all repetitions; what the nodes of a flow say is added up. Grey: warm-up. Gaps are moments without samples.", binS)
	return []*figure.Figure{f}, nil
}

// airtimeBars draws the airtime of the nodes; nil where no node has a radio.
func airtimeBars(g *Group, nets []dataset.Topology) *figure.Figure {
	radio := len(nets) == 0
	for i := range nets {
		for _, n := range nets[i].Nodes {
			radio = radio || !n.Wired
		}
	}
	if !radio {
		return nil
	}
	var air []figure.Airtime
	for _, s := range g.Airtime {
		a := figure.Airtime{Label: s.Transport}
		if s.Runs == 0 {
			a.Why = "no valid run"
		}
		for _, n := range s.Nodes {
			a.Nodes = append(a.Nodes, figure.NodeAirtime{Name: n.Name, Tx: n.Tx, Rx: n.Rx, Busy: n.Busy, Idle: n.Idle})
		}
		air = append(air, a)
	}
	bars := figure.AirtimeBars(g.ID+"-airtime", air)
	if len(nets) > 1 {
		bars.Title = fmt.Sprintf("Airtime of each node in repetition %d", nets[0].Repetition)
		bars.Caption = "Share of the measured interval in which a node sends, receives (for itself or for others), senses the channel busy without decoding anything, or finds it idle. One repetition only: nodes are placed anew in each."
	}
	return bars
}

// stamp writes into figures what must not be lost when they are taken out of the
// report: where their numbers come from, and that they are not for conclusions.
func stamp(figures []*figure.Figure, backend string, quick bool) {
	for _, f := range figures {
		f.From(name(backend))
		if quick {
			f.Mark(dataset.QuickNotice)
		}
	}
}

// airtimeSeries are the series whose airtime is told apart: each transport, or
// all of them together when they ran at once, since airtime is a node's.
func airtimeSeries(g *dataset.Group) []dataset.Series {
	if !g.Mixed {
		return g.Series
	}
	all := dataset.Series{Transport: "all transports together"}
	seen := map[int64]bool{}
	for _, s := range g.Series {
		for _, r := range s.Reps {
			if !seen[r.Run.ID] {
				seen[r.Run.ID] = true
				all.Reps = append(all.Reps, r)
			}
		}
	}
	return []dataset.Series{all}
}

func band(b *dataset.Band) figure.Band {
	out := figure.Band{Label: b.Transport, StepS: b.BinS, WarmupS: b.WarmupS}
	for _, bin := range b.Bins {
		out.Steps = append(out.Steps, figure.BandStep{StartS: bin.StartS, OK: bin.OK, QBps: bin.QBps})
	}
	return out
}

func completionTimes(s *dataset.Series) figure.Times {
	out := figure.Times{Label: s.Transport}
	for i, b := range s.Blocks() {
		r := figure.RepTimes{Repetition: s.Reps[i].Run.Repetition}
		for j, v := range b {
			if s.Reps[i].Flows[j].CompletionS.OK {
				r.Values = append(r.Values, v)
			} else {
				r.Open = append(r.Open, v)
			}
		}
		out.Reps = append(out.Reps, r)
	}
	return out
}

// sample holds what the flows of a series are compared by.
func sample(s *dataset.Series) figure.Series {
	out := figure.Series{Label: s.Transport}
	blocks := s.Blocks()
	for i, b := range blocks {
		r := &s.Reps[i]
		for j, v := range b {
			if r.Sized && !r.Flows[j].CompletionS.OK {
				out.Open = append(out.Open, v)
				b[j] = math.Inf(1) // its true time is beyond what was seen
			} else {
				out.Values = append(out.Values, v)
			}
		}
	}
	band := stats.BandOfCDF(blocks, BootstrapSeed)
	out.Band = &band
	return out
}

// gains arranges the rows by hop count as one line for each transport. With
// one hop count or no ratio at all there is nothing to draw.
func gains(g *Group) []figure.Gain {
	if len(g.Hops) < 2 || g.Baseline == "" {
		return nil
	}
	var out []figure.Gain
	any := false
	for i := range g.Data.Series {
		if g.Data.Series[i].Transport == g.Baseline {
			continue
		}
		l := figure.Gain{Label: g.Data.Series[i].Transport, Series: i}
		for _, row := range g.Hops {
			if e := row.Cells[i].Gain; e.N > 0 && row.Cells[i].Bound != dataset.Unknown {
				l.Hops = append(l.Hops, row.Hops)
				l.Ratio = append(l.Ratio, e)
			}
		}
		any = any || len(l.Hops) > 0
		out = append(out, l)
	}
	if !any {
		return nil
	}
	return out
}

func networkMap(t *dataset.Topology) figure.Map {
	var m figure.Map
	index := map[int]int{}
	for i, n := range t.Nodes {
		index[n.Node] = i
		m.Nodes = append(m.Nodes, figure.MapNode{Name: n.Name, XM: n.XM.V, YM: n.YM.V, Placed: n.XM.OK && n.YM.OK, Wired: n.Wired})
	}
	type pair struct{ a, b int }
	place := map[pair]int{}
	var delivery [][]float64 // of both directions
	for _, l := range t.Links {
		p := pair{min(l.Src, l.Dst), max(l.Src, l.Dst)}
		i, ok := place[p]
		if !ok {
			i = len(m.Links)
			place[p] = i
			m.Links = append(m.Links, figure.MapLink{A: index[p.a], B: index[p.b]})
			delivery = append(delivery, nil)
		}
		m.Links[i].Routed = m.Links[i].Routed || l.Routed
		if l.Delivery.OK {
			delivery[i] = append(delivery[i], l.Delivery.V)
		}
	}
	for i := range m.Links {
		if len(delivery[i]) > 0 {
			m.Links[i].Delivery = stats.Mean(delivery[i])
		}
	}
	wires := map[int]bool{}
	for _, p := range t.Pipes {
		if !wires[p.Pipe] { // the other direction may differ, the line is one
			wires[p.Pipe] = true
			m.Wires = append(m.Wires, figure.MapWire{A: index[p.Src], B: index[p.Dst], Setting: pipeSetting(&p)})
		}
	}
	for _, f := range t.Flows {
		m.Flows = append(m.Flows, figure.MapFlow{Src: index[f.Src], Dst: index[f.Dst]})
	}
	return m
}

// pipeSetting says what was asked of a wired link.
func pipeSetting(p *store.Pipe) string {
	var parts []string
	if p.RateBps.OK {
		parts = append(parts, rate(float64(p.RateBps.V)))
	}
	if p.DelayUs.OK {
		parts = append(parts, fmt.Sprintf("%g ms", float64(p.DelayUs.V)/1000))
	}
	if p.QueuePackets.OK {
		parts = append(parts, fmt.Sprintf("queue of %d packets", p.QueuePackets.V))
	}
	if p.Loss.OK && p.Loss.V > 0 {
		parts = append(parts, "loss "+finePercent(p.Loss.V))
	}
	if p.Setting != "" {
		parts = append(parts, p.Setting)
	}
	if len(parts) == 0 {
		return "without a limit"
	}
	return strings.Join(parts, ", ")
}
