package claims

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// apPoint is one point of a campaign about uploads and downloads through an access
// point, by repetition.
type apPoint struct {
	x        float64 // of the variable; its place in the plan where it is no number
	label    string
	up, down []float64 // mean goodput of a flow, b/s
	total    []float64 // of all flows, b/s
	drops    []float64 // by the access point's queue
	seconds  float64   // the shortest measured interval
	// Of samples, where they are wanted: the uploads' share at the full window, and the
	// downloads' mean window in segments.
	full, window []float64
}

// ratio is the uploads' mean over the downloads'.
func (p *apPoint) ratio(reps []int) float64 {
	return stats.Mean(pick(p.up, reps)) / stats.Mean(pick(p.down, reps))
}

// pick returns the values of repetitions.
func pick(values []float64, reps []int) []float64 {
	x := make([]float64, len(reps))
	for i, r := range reps {
		x[i] = values[r]
	}
	return x
}

// wants is what a measure needs of its points.
type wants struct {
	several bool // two points or more
	windows bool // samples of the senders' windows
}

// overPoints is a measure of the chosen points in the order of the variable "over",
// from "from" to "to".
func overPoints(ctx context.Context, r *Request, w wants, statistic func(p []apPoint, reps []int) float64) (Sample, error) {
	p, err := pointsOf(ctx, r, w)
	if err != nil {
		return Sample{}, err
	}
	return sampleOf(p, func(reps []int) float64 { return statistic(p, reps) }), nil
}

// sampleOf makes the sample of points that are resampled together: a repetition has
// the same seed at all of them.
func sampleOf(p []apPoint, statistic func(reps []int) float64) Sample {
	s := Sample{N: math.MaxInt, Statistic: statistic, Seconds: math.Inf(1)}
	for i := range p {
		s.N, s.Seconds = min(s.N, len(p[i].up)), math.Min(s.Seconds, p[i].seconds)
	}
	all := indices(s.N)
	for i := range p {
		d := fmt.Sprintf("%s: up %.0f, down %.0f kb/s, ×%.2f, %.0f drops", p[i].label,
			stats.Mean(pick(p[i].up, all))/1e3, stats.Mean(pick(p[i].down, all))/1e3, p[i].ratio(all), stats.Mean(pick(p[i].drops, all)))
		if len(p[i].full) > 0 {
			d += fmt.Sprintf(", uploads at the full window in %.1f %% of the samples, downloads’ window %.1f", 100*stats.Mean(pick(p[i].full, all)), stats.Mean(pick(p[i].window, all)))
		}
		s.Details = append(s.Details, d)
	}
	return s
}

func pointsOf(ctx context.Context, r *Request, w wants) ([]apPoint, error) {
	over := r.With.Text("over", "")
	from, err := r.With.Float("from", math.Inf(-1))
	if err != nil {
		return nil, err
	}
	to, err := r.With.Float("to", math.Inf(1))
	if err != nil {
		return nil, err
	}
	ap, err := apOf(ctx, r.Set)
	if err != nil {
		return nil, err
	}
	var out []apPoint
	for i, g := range r.Groups() {
		p := apPoint{x: float64(i), label: g.Title()}
		if over != "" {
			v, ok := g.Condition[over]
			if !ok {
				return nil, NotTestable("the points of this campaign do not differ in %s", over)
			}
			p.label = over + " " + v
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				p.x = x
			}
		}
		if p.x < from || p.x > to {
			continue
		}
		s, err := r.Series(g, r.Of)
		if err != nil {
			return nil, err
		}
		if err := ap.fill(ctx, r, s, w, &p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	least := 1
	if w.several {
		least = 2
	}
	if len(out) < least {
		return nil, NotTestable("needs %d points or more, and this campaign has %d%s", least, len(out), r.where())
	}
	slices.SortStableFunc(out, func(a, b apPoint) int { return cmp.Compare(a.x, b.x) })
	return out, nil
}

// places says of a campaign's runs which nodes are wired, and what the queues of the
// access point dropped: of the node that joins radio and wire.
type places struct {
	set   *dataset.Set
	wired map[int64]map[int]bool
	drops map[int64]float64
}

func apOf(ctx context.Context, set *dataset.Set) (*places, error) {
	f := store.Filter{CampaignIDs: []int64{set.Campaign.ID}}
	nodes, err := set.Store().Nodes(ctx, f)
	if err != nil {
		return nil, err
	}
	p := &places{set: set, wired: map[int64]map[int]bool{}, drops: map[int64]float64{}}
	bridge := map[int64]map[int]bool{}
	for i := range nodes {
		n := &nodes[i]
		if p.wired[n.RunID] == nil {
			p.wired[n.RunID], bridge[n.RunID] = map[int]bool{}, map[int]bool{}
		}
		p.wired[n.RunID][n.Node], bridge[n.RunID][n.Node] = n.Wired, n.Bridge
	}
	rows, err := set.Store().NodeStats(ctx, f)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if s := &rows[i]; s.AC == store.ACAll && bridge[s.RunID][s.Node] {
			p.drops[s.RunID] += float64(s.DropsQueue.V)
		}
	}
	return p, nil
}

// fill takes a point's repetitions.
func (a *places) fill(ctx context.Context, r *Request, s *dataset.Series, w wants, p *apPoint) error {
	window, err := r.With.Float("window", 0)
	if err != nil {
		return err
	}
	p.seconds = math.Inf(1)
	for i := range s.Reps {
		rep := &s.Reps[i]
		wired := a.wired[rep.Run.ID]
		var up, down []float64
		uploads := map[int]bool{}
		for k := range rep.Flows {
			f := &rep.Flows[k]
			if uploads[f.Flow] = wired[f.Dst]; wired[f.Dst] {
				up = append(up, f.GoodputBps.V)
			} else {
				down = append(down, f.GoodputBps.V)
			}
		}
		if len(up) == 0 || len(down) == 0 {
			return NotTestable("needs uploads to a wired node and downloads from one, and repetition %d has %d and %d", rep.Run.Repetition, len(up), len(down))
		}
		p.up, p.down = append(p.up, stats.Mean(up)), append(p.down, stats.Mean(down))
		p.total = append(p.total, stats.Sum(up)+stats.Sum(down))
		p.drops = append(p.drops, a.drops[rep.Run.ID])
		p.seconds = math.Min(p.seconds, rep.Run.DurationS)
		if !w.windows {
			continue
		}
		if window == 0 {
			return fmt.Errorf("the parameter window is missing")
		}
		full, mean, err := a.windows(ctx, rep, uploads, window)
		if err != nil {
			return err
		}
		p.full, p.window = append(p.full, full), append(p.window, mean)
	}
	if len(p.up) == 0 {
		return NotTestable("no valid repetition at %s", p.label)
	}
	return nil
}

// windows looks at the samples of the senders in the measured interval: a window is
// the smaller one of the congestion window and the receiver's.
func (a *places) windows(ctx context.Context, rep *dataset.Rep, uploads map[int]bool, window float64) (full, mean float64, err error) {
	var up, down []float64
	begin := int64(rep.Run.WarmupS * 1e6)
	err = a.set.Store().Samples(ctx, rep.Run.ID, func(s *store.Sample) error {
		upload, of := uploads[s.Flow]
		if !of || s.Side != store.SideSrc || s.TUs < begin || !s.CwndPackets.OK {
			return nil
		}
		cwnd := math.Min(s.CwndPackets.V, window)
		switch {
		case !upload:
			down = append(down, cwnd)
		case cwnd >= window:
			up = append(up, 1)
		default:
			up = append(up, 0)
		}
		return nil
	})
	if err == nil && (len(up) == 0 || len(down) == 0) {
		err = NotTestable("needs samples of the senders’ windows, and repetition %d has none", rep.Run.Repetition)
	}
	return stats.Mean(up), stats.Mean(down), err
}
