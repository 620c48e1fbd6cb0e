package dataset

import (
	"context"
	"math"
	"slices"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// Progress is what Hop or UDP says of itself over time, in a series: means over the
// flows of all repetitions.
type Progress struct {
	Transport string
	BinS      float64
	Lines     []ProgressLine // those that the transport knows, in a fixed order
}

// ProgressLine is one quantity; NaN where no flow has a sample.
type ProgressLine struct {
	Name   string
	Values []float64 // by bin
}

// progressKinds are what is shown: a level is averaged over a bin, a count is its
// growth. What nodes of a flow say is summed.
var progressKinds = []struct {
	name  string
	count bool
	value func(*store.Progress) (float64, bool)
	// over, where given, makes the value a share of the growth of both.
	over func(*store.Progress) (float64, bool)
}{
	{name: "blocks in flight, of all hops", value: func(p *store.Progress) (float64, bool) { return known(p.BlocksInFlight) }},
	{name: "blocks held by relays", value: func(p *store.Progress) (float64, bool) {
		return float64(p.BlocksHeld.V), p.BlocksHeld.OK && p.Side == store.SideRelay
	}},
	{name: "senders waiting for a grant", value: func(p *store.Progress) (float64, bool) {
		return float64(p.BlocksWithheld.V), p.BlocksWithheld.OK
	}},
	{name: "tokens (VBSYN) a second", count: true, value: func(p *store.Progress) (float64, bool) { return known(p.Tokens) }},
	{name: "share of datagrams lost", count: true, value: func(p *store.Progress) (float64, bool) { return known(p.DatagramsLost) },
		over: func(p *store.Progress) (float64, bool) { return known(p.Datagrams) }},
}

func known(c store.Count) (float64, bool) {
	n, ok := c.Get()
	return float64(n), ok
}

// progressSum gathers one kind: at each bin a sum, and the flows that it is of.
type progressSum struct {
	sum, over []float64
	flows     []map[[2]int64]bool // run and flow, by bin
}

// ProgressOf reads what a series says of itself, in bins of the given width; nil
// where it says nothing of the kind.
func (s *Set) ProgressOf(ctx context.Context, ser *Series, binS float64) (*Progress, error) {
	end := 0.0
	for i := range ser.Reps {
		end = math.Max(end, ser.Reps[i].Run.WarmupS+ser.Reps[i].Run.DurationS)
	}
	n := 0
	if binS > 0 {
		n = int(end / binS)
	}
	if n == 0 {
		return nil, nil
	}
	sums := make([]progressSum, len(progressKinds))
	for k := range sums {
		sums[k] = progressSum{make([]float64, n), make([]float64, n), make([]map[[2]int64]bool, n)}
	}
	for i := range ser.Reps {
		rep := &ser.Reps[i]
		var group []store.Progress // samples of one flow and node
		flush := func() {
			for k := range sums {
				sums[k].add(k, rep.Run.ID, binS, group)
			}
			group = group[:0]
		}
		err := s.st.Progress(ctx, rep.Run.ID, func(p *store.Progress) {
			if !slices.ContainsFunc(rep.Flows, func(f store.Flow) bool { return f.Flow == p.Flow }) {
				return // another transport's, which ran beside
			}
			if len(group) > 0 && (group[0].Flow != p.Flow || group[0].Node != p.Node || group[0].Side != p.Side) {
				flush()
			}
			group = append(group, *p)
		})
		if err != nil {
			return nil, err
		}
		flush()
	}
	out := &Progress{Transport: ser.Transport, BinS: binS}
	for k := range sums {
		if l, ok := sums[k].line(k, binS); ok {
			out.Lines = append(out.Lines, l)
		}
	}
	if len(out.Lines) == 0 {
		return nil, nil
	}
	return out, nil
}

// add takes the samples of one flow at one node, in the order of time.
func (g *progressSum) add(kind int, run int64, binS float64, samples []store.Progress) {
	k := &progressKinds[kind]
	level, number := make(map[int]float64), make(map[int]float64)
	last, lastOver := make(map[int]float64), make(map[int]float64)
	for i := range samples {
		p := &samples[i]
		v, ok := k.value(p)
		bin := int(float64(p.TUs) / 1e6 / binS)
		if !ok || bin < 0 || bin >= len(g.sum) {
			continue
		}
		level[bin], number[bin] = level[bin]+v, number[bin]+1
		last[bin] = v
		if k.over != nil {
			lastOver[bin], _ = k.over(p)
		}
	}
	before, beforeOver := 0.0, 0.0
	for bin := range g.sum {
		if number[bin] == 0 {
			continue
		}
		if g.flows[bin] == nil {
			g.flows[bin] = map[[2]int64]bool{}
		}
		g.flows[bin][[2]int64{run, int64(samples[0].Flow)}] = true
		if !k.count {
			g.sum[bin] += level[bin] / number[bin]
			continue
		}
		g.sum[bin] += last[bin] - before
		g.over[bin] += last[bin] - before + lastOver[bin] - beforeOver
		before, beforeOver = last[bin], lastOver[bin]
	}
}

// line is the mean over flows; ok is false where no bin has a value.
func (g *progressSum) line(kind int, binS float64) (l ProgressLine, ok bool) {
	k := &progressKinds[kind]
	l.Name = k.name
	for bin, v := range g.sum {
		switch flows := float64(len(g.flows[bin])); {
		case flows == 0 || k.over != nil && g.over[bin] <= 0:
			v = math.NaN()
		case k.over != nil:
			v /= g.over[bin]
		case k.count:
			v /= flows * binS
		default:
			v /= flows
		}
		ok = ok || !math.IsNaN(v)
		l.Values = append(l.Values, v)
	}
	return l, ok
}
