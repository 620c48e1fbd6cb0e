package claims

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// coopDEIM15 are the measures of "Cooperative congestion control against the
// build-up of acknowledgements at the access point" (Hayakawa, Yamaguchi, Oguchi,
// DEIM 2015, C2-2). Those of the events of windows are in coop_events.go.
var coopDEIM15 = []Measure{
	{
		Name: "coop-gain-furthest", Neutral: math.NaN(), With: []string{"to"},
		About: "largest distance from 1 of the ratio of aggregate goodputs, over the points with at most so many stations",
		Take: overStations("to", func(n, bound int) bool { return n <= bound }, aggregateRatios, func(x []float64) float64 {
			far := 0.0
			for _, v := range x {
				far = math.Max(far, math.Abs(v-1))
			}
			return far
		}),
	},
	{
		Name: "coop-gain-least", Neutral: 1, With: []string{"from"},
		About: "least ratio of aggregate goodputs, over the points with at least so many stations",
		Take:  overStations("from", func(n, bound int) bool { return n >= bound }, aggregateRatios, slices.Min[[]float64]),
	},
	{
		Name: "coop-rtt-ratio", Neutral: math.NaN(),
		About: "smoothed round-trip time over its minimum, median over the flows and the measured interval",
		Take:  overStations("", nil, rttRatios, slices.Max[[]float64]),
	},
	{
		Name: "coop-rtt-most", Neutral: math.NaN(), With: []string{"from"},
		About: "largest median of the smoothed round-trip time over its minimum, over the points with at least so many stations",
		Take:  overStations("from", func(n, bound int) bool { return n >= bound }, rttRatios, slices.Max[[]float64]),
	},
	{
		Name: "coop-rtt-onset", Neutral: math.NaN(), With: []string{"ratio"},
		About: "least number of stations with which the smoothed round-trip time passes so many times its minimum; infinite where none does",
		Take:  rttOnset,
	},
	{
		Name: "coop-case-total", Neutral: 1, With: []string{"base"},
		About: "ratio of the aggregate goodputs of all flows to those of another case, median over repetitions",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			return againstBase(r, total, func(a, b float64) float64 { return a / b }, stats.Median)
		},
	},
	{
		Name: "coop-case-jain", With: []string{"base"},
		About: "Jain’s index of the goodputs of all flows, less that of another case, mean over repetitions",
		Take: func(_ context.Context, r *Request) (Sample, error) {
			return againstBase(r, jainOf, func(a, b float64) float64 { return a - b }, stats.Mean)
		},
	},
	{
		Name: "coop-mixed-total-least", Neutral: 1, With: []string{"stations"},
		About: "least ratio of the aggregate goodput with some modified stations to that with none",
		Take:  mixedTotals,
	},
	{
		Name: "coop-mixed-mean-least", Neutral: 1, With: []string{"stations"},
		About: "least ratio of the mean goodputs of unmodified and modified stations in one cell",
		Take:  mixedMeans,
	},
	{
		Name: "coop-cap-error", Neutral: math.NaN(),
		About: "largest distance of a cap from the formula, in segments, over all caps of the campaign",
		Take:  capError,
	},
	{
		Name: "coop-count-lag", Neutral: math.NaN(),
		About: "longest time until all stations know how many there are after one has begun or ended, in seconds",
		Take:  countLag,
	},
}

// byRepetition are the values of a point, one for each repetition.
type byRepetition map[int]float64

// pointOf is what a value is asked of: a point, and where the request wants.
type pointOf func(ctx context.Context, r *Request, g *dataset.Group) (byRepetition, error)

// table joins the values of several points in the repetitions that all of them
// have: the statistic takes the median over repetitions of each point, and what of
// makes of these.
func table(points []byRepetition, of func([]float64) float64) (Sample, error) {
	if len(points) == 0 {
		return Sample{}, NotTestable("no point of this campaign is as the statement wants")
	}
	var common []int
	for rep := range points[0] {
		if !slices.ContainsFunc(points, func(p byRepetition) bool { _, ok := p[rep]; return !ok }) {
			common = append(common, rep)
		}
	}
	slices.Sort(common)
	if len(common) == 0 {
		return Sample{}, NotTestable("no repetition is valid at every point that the statement is about")
	}
	medians := func(reps []int) []float64 {
		out := make([]float64, len(points))
		for i, p := range points {
			x := make([]float64, len(reps))
			for k, j := range reps {
				x[k] = p[common[j]]
			}
			out[i] = stats.Median(x)
		}
		return out
	}
	return Sample{N: len(common), Statistic: func(reps []int) float64 { return of(medians(reps)) }}, nil
}

// stationsOf is the number of stations of a point of coop-stations and coop-buffer.
func stationsOf(g *dataset.Group) (int, error) {
	n, err := strconv.Atoi(g.Condition["stations"])
	if err != nil {
		return 0, NotTestable("needs points with a number of stations")
	}
	return n, nil
}

// overStations takes a value at the chosen points, those whose number of stations
// the parameter bounds, and joins them.
func overStations(param string, chosen func(n, bound int) bool, value pointOf, join func([]float64) float64) func(context.Context, *Request) (Sample, error) {
	return func(ctx context.Context, r *Request) (Sample, error) {
		bound, err := r.With.Float(param, 0)
		if err != nil {
			return Sample{}, err
		}
		var points []byRepetition
		var details []string
		for _, g := range r.Groups() {
			n, err := stationsOf(g)
			if err != nil {
				return Sample{}, err
			}
			if chosen != nil && !chosen(n, int(bound)) {
				continue
			}
			v, err := value(ctx, r, g)
			if err != nil {
				return Sample{}, err
			}
			points = append(points, v)
			details = append(details, fmt.Sprintf("%d stations: %.3g", n, v.median()))
		}
		s, err := table(points, join)
		s.Details = details
		return s, err
	}
}

func (v byRepetition) median() float64 {
	var x []float64
	for _, y := range v {
		x = append(x, y)
	}
	return stats.Median(x)
}

// aggregateRatios are the ratios of the aggregate goodputs of Of and To at a point.
func aggregateRatios(_ context.Context, r *Request, g *dataset.Group) (byRepetition, error) {
	p, err := r.PairsAt(g)
	if err != nil {
		return nil, err
	}
	out := byRepetition{}
	for i, rep := range p.Repetitions {
		out[rep] = stats.Sum(p.A[i]) / stats.Sum(p.B[i])
	}
	return out, nil
}

// rttRatios are the medians over flows of what a flow's smoothed round-trip time is
// in the measured interval, at its median, over the least that any of its samples
// has.
func rttRatios(ctx context.Context, r *Request, g *dataset.Group) (byRepetition, error) {
	s, err := r.Series(g, r.Of)
	if err != nil {
		return nil, err
	}
	out := byRepetition{}
	for i := range s.Reps {
		run := &s.Reps[i].Run
		least, seen := map[int]float64{}, map[int][]float64{}
		err := r.Set.Store().Samples(ctx, run.ID, func(x *store.Sample) error {
			us := x.SRTTUs.Or(0)
			if us <= 0 || x.Side != "src" {
				return nil
			}
			rtt := float64(us)
			if have, ok := least[x.Flow]; !ok || rtt < have {
				least[x.Flow] = rtt
			}
			if float64(x.TUs) >= 1e6*run.WarmupS {
				seen[x.Flow] = append(seen[x.Flow], rtt)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		var ratios []float64
		for _, f := range s.Reps[i].Flows {
			if len(seen[f.Flow]) > 0 {
				ratios = append(ratios, stats.Median(seen[f.Flow])/least[f.Flow])
			}
		}
		if len(ratios) > 0 {
			out[run.Repetition] = stats.Median(ratios)
		}
	}
	return out, nil
}

func rttOnset(ctx context.Context, r *Request) (Sample, error) {
	ratio, err := r.With.Float("ratio", 6)
	if err != nil {
		return Sample{}, err
	}
	var numbers []int
	var points []byRepetition
	var details []string
	for _, g := range r.Groups() {
		n, err := stationsOf(g)
		if err != nil {
			return Sample{}, err
		}
		v, err := rttRatios(ctx, r, g)
		if err != nil {
			return Sample{}, err
		}
		numbers, points = append(numbers, n), append(points, v)
		details = append(details, fmt.Sprintf("%d stations: %.3g", n, v.median()))
	}
	s, err := table(points, func(medians []float64) float64 {
		onset := math.Inf(1)
		for i, m := range medians {
			if m >= ratio {
				onset = math.Min(onset, float64(numbers[i]))
			}
		}
		return onset
	})
	s.Details = details
	return s, err
}

// ofAll takes a value of the flows of all transports of a point that ran at once, by
// repetition. Repetitions in which a transport is missing or a flow has no goodput do
// not count.
func ofAll(g *dataset.Group, value func(flows []*dataset.Rep) float64) byRepetition {
	reps := map[int][]*dataset.Rep{}
	for i := range g.Series {
		for k := range g.Series[i].Reps {
			p := &g.Series[i].Reps[k]
			reps[p.Run.Repetition] = append(reps[p.Run.Repetition], p)
		}
	}
	out := byRepetition{}
	for rep, parts := range reps {
		if len(parts) == len(g.Series) && !slices.ContainsFunc(parts, func(p *dataset.Rep) bool { return p.Unmeasured > 0 }) {
			out[rep] = value(parts)
		}
	}
	return out
}

func total(parts []*dataset.Rep) (sum float64) {
	for _, p := range parts {
		sum += stats.Sum(p.Aggregates())
	}
	return sum
}

func jainOf(parts []*dataset.Rep) float64 {
	var all []float64
	for _, p := range parts {
		all = append(all, p.Goodputs()...)
	}
	return stats.Jain(all)
}

// caseNamed returns the point with a value of the variable case.
func caseNamed(r *Request, name string) (*dataset.Group, error) {
	at := *r
	at.Where = map[string]string{"case": name}
	return at.Group()
}

// againstBase compares the chosen point with the case that the parameter base names,
// repetition by repetition.
func againstBase(r *Request, value func([]*dataset.Rep) float64, compare func(a, b float64) float64, join func([]float64) float64) (Sample, error) {
	g, err := r.Group()
	if err != nil {
		return Sample{}, err
	}
	name := r.With.Text("base", "")
	base, err := caseNamed(r, name)
	if err != nil {
		return Sample{}, err
	}
	a, b := ofAll(g, value), ofAll(base, value)
	var each []float64
	for _, rep := range sortedKeys(a) {
		if y, ok := b[rep]; ok {
			each = append(each, compare(a[rep], y))
		}
	}
	if len(each) == 0 {
		return Sample{}, NotTestable("no valid pair of repetitions of %s and %s", r.Where["case"], name)
	}
	s := statisticOf(each, join)
	s.Details = []string{fmt.Sprintf("%s: %.4g, %s: %.4g", r.Where["case"], a.median(), name, b.median())}
	return s, nil
}

func sortedKeys(v byRepetition) []int {
	var out []int
	for k := range v {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// mixedCases are the points of coop-mixed with so many stations, by the number of
// modified ones.
func mixedCases(r *Request) (all map[int]*dataset.Group, modified []int, err error) {
	n := r.With.Text("stations", "")
	all = map[int]*dataset.Group{}
	for _, g := range r.Groups() {
		var stations, k int
		if _, err := fmt.Sscanf(g.Condition["case"], "%d-%d", &stations, &k); err == nil && strconv.Itoa(stations) == n {
			all[k] = g
			modified = append(modified, k)
		}
	}
	slices.Sort(modified)
	if len(modified) == 0 {
		return nil, nil, NotTestable("no point has %s stations", n)
	}
	return all, modified, nil
}

func mixedTotals(_ context.Context, r *Request) (Sample, error) {
	all, modified, err := mixedCases(r)
	if err != nil {
		return Sample{}, err
	}
	if all[0] == nil {
		return Sample{}, NotTestable("needs the case without modified stations")
	}
	none := ofAll(all[0], total)
	var points []byRepetition
	var details []string
	for _, k := range modified {
		if k == 0 {
			continue
		}
		v := byRepetition{}
		for rep, sum := range ofAll(all[k], total) {
			if base, ok := none[rep]; ok {
				v[rep] = sum / base
			}
		}
		points = append(points, v)
		details = append(details, fmt.Sprintf("%d modified: ×%.3g", k, v.median()))
	}
	s, err := table(points, slices.Min[[]float64])
	s.Details = details
	return s, err
}

func mixedMeans(_ context.Context, r *Request) (Sample, error) {
	all, modified, err := mixedCases(r)
	if err != nil {
		return Sample{}, err
	}
	var points []byRepetition
	var details []string
	for _, k := range modified {
		g := all[k]
		if !g.Mixed {
			continue
		}
		a, err := r.Series(g, r.Of)
		if err != nil {
			return Sample{}, err
		}
		b, err := r.Series(g, r.To)
		if err != nil {
			return Sample{}, err
		}
		means := byRepetition{}
		for i := range a.Reps {
			means[a.Reps[i].Run.Repetition] = stats.Mean(a.Reps[i].Goodputs())
		}
		v := byRepetition{}
		for i := range b.Reps {
			rep := b.Reps[i].Run.Repetition
			if m, ok := means[rep]; ok {
				v[rep] = m / stats.Mean(b.Reps[i].Goodputs())
			}
		}
		points = append(points, v)
		details = append(details, fmt.Sprintf("%d modified: ×%.3g", k, v.median()))
	}
	s, err := table(points, slices.Min[[]float64])
	s.Details = details
	return s, err
}
