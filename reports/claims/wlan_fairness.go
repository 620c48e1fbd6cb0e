package claims

import (
	"context"
	"fmt"
	"math"

	"github.com/hopbed/hopbed/reports/stats"
)

// wlanFairness are the measures of "Understanding TCP fairness over Wireless LAN"
// (Pilosof, Ramjee, Raz, Shavitt, Sinha, INFOCOM 2003). An upload ends at a wired
// node, a download begins at one. A ratio at a point is the mean goodput of the
// uploads over that of the downloads, as the paper's Ru/Rd: the means are over
// all repetitions, since a starved download has a goodput of about 0 in some.
var wlanFairness = []Measure{
	{
		Name: "up-down-ratio", Neutral: 1, About: "mean goodput of uploads over that of downloads",
		Take: func(ctx context.Context, r *Request) (Sample, error) {
			if _, err := r.Group(); err != nil {
				return Sample{}, err
			}
			return overPoints(ctx, r, wants{}, func(p []apPoint, reps []int) float64 { return p[0].ratio(reps) })
		},
	},
	{
		Name: "least-up-down-ratio", Neutral: 1, With: []string{"over", "from", "to"},
		About: "least ratio of uploads to downloads over the points",
		Take:  extremeRatio(math.Min),
	},
	{
		Name: "greatest-up-down-ratio", Neutral: 1, With: []string{"over", "from", "to"},
		About: "greatest ratio of uploads to downloads over the points",
		Take:  extremeRatio(math.Max),
	},
	{
		Name: "least-ratio-step", Neutral: 1, With: []string{"over", "from", "to"},
		About: "least factor between the ratios of uploads to downloads at neighbouring points",
		Take:  extremeStep(math.Min),
	},
	{
		Name: "greatest-ratio-step", Neutral: 1, With: []string{"over", "from", "to"},
		About: "greatest factor between the ratios of uploads to downloads at neighbouring points",
		Take:  extremeStep(math.Max),
	},
	{
		Name: "ratio-deviation", Neutral: math.NaN(), With: []string{"over", "from", "to", "window", "acks"},
		About: "greatest deviation of the ratio of uploads to downloads from 4w/(3(B−αw)), as a share of that",
		Take: func(ctx context.Context, r *Request) (Sample, error) {
			m, err := modelOf(r)
			if err != nil {
				return Sample{}, err
			}
			return overPoints(ctx, r, wants{}, func(p []apPoint, reps []int) float64 {
				worst := 0.0
				for i := range p {
					worst = math.Max(worst, math.Abs(p[i].ratio(reps)/m.ratio(p[i].x)-1))
				}
				return worst
			})
		},
	},
	{
		Name: "first-fair-buffer", Neutral: math.NaN(), With: []string{"over", "from", "to", "ratio"},
		About: "smallest buffer at which the ratio of uploads to downloads is fair",
		Take: func(ctx context.Context, r *Request) (Sample, error) {
			fair, err := r.With.Float("ratio", 1.25)
			if err != nil {
				return Sample{}, err
			}
			return overPoints(ctx, r, wants{several: true}, func(p []apPoint, reps []int) float64 {
				for i := range p {
					if p[i].ratio(reps) <= fair {
						return p[i].x
					}
				}
				return math.Inf(1)
			})
		},
	},
	{
		Name: "window-share", Neutral: math.NaN(), With: []string{"over", "from", "to", "window"},
		About: "share of samples in which the uploads’ congestion windows do not limit them, least over the points",
		Take: func(ctx context.Context, r *Request) (Sample, error) {
			return overPoints(ctx, r, wants{windows: true}, func(p []apPoint, reps []int) float64 {
				least := math.Inf(1)
				for i := range p {
					least = math.Min(least, stats.Mean(pick(p[i].full, reps)))
				}
				return least
			})
		},
	},
	{
		Name: "window-deviation", Neutral: math.NaN(), With: []string{"over", "from", "to", "window", "acks"},
		About: "greatest deviation of the downloads’ mean window from 3(B−αw)/4, as a share of that",
		Take: func(ctx context.Context, r *Request) (Sample, error) {
			m, err := modelOf(r)
			if err != nil {
				return Sample{}, err
			}
			return overPoints(ctx, r, wants{windows: true}, func(p []apPoint, reps []int) float64 {
				worst := 0.0
				for i := range p {
					worst = math.Max(worst, math.Abs(stats.Mean(pick(p[i].window, reps))/m.window(p[i].x)-1))
				}
				return worst
			})
		},
	},
	{
		Name: "queue-drops", Neutral: math.NaN(), With: []string{"over", "from", "to"},
		About: "packets that the access point’s queue dropped in a repetition, mean at the worst point",
		Take: func(ctx context.Context, r *Request) (Sample, error) {
			return overPoints(ctx, r, wants{}, func(p []apPoint, reps []int) float64 {
				most := 0.0
				for i := range p {
					most = math.Max(most, stats.Mean(pick(p[i].drops, reps)))
				}
				return most
			})
		},
	},
	{
		Name: "total-against", Neutral: 1, With: []string{"over", "from", "to", "variable", "is", "was"},
		About: "total goodput with one value of a variable over that with another, least over the points",
		Take:  totalAgainst,
	},
}

// model is the paper's: w segments of a receiver's window, α acknowledgements each.
type model struct{ segments, acks float64 }

func modelOf(r *Request) (m model, err error) {
	if m.segments, err = r.With.Float("window", math.NaN()); err != nil {
		return m, err
	}
	if m.acks, err = r.With.Float("acks", 1); err != nil {
		return m, err
	}
	if math.IsNaN(m.segments) {
		return m, fmt.Errorf("the parameter window is missing")
	}
	return m, nil
}

// ratio is R at a buffer of b packets (αw < b < (α+1)w).
func (m model) ratio(b float64) float64 { return 4 * m.segments / (3 * (b - m.acks*m.segments)) }

// window is the downloads' mean window at a buffer of b packets: it saws between a
// half and the whole of what the acknowledgements leave.
func (m model) window(b float64) float64 { return 3 * (b - m.acks*m.segments) / 4 }

func extremeRatio(of func(a, b float64) float64) func(context.Context, *Request) (Sample, error) {
	return func(ctx context.Context, r *Request) (Sample, error) {
		return overPoints(ctx, r, wants{}, func(p []apPoint, reps []int) float64 {
			v := p[0].ratio(reps)
			for i := range p[1:] {
				v = of(v, p[i+1].ratio(reps))
			}
			return v
		})
	}
}

func extremeStep(of func(a, b float64) float64) func(context.Context, *Request) (Sample, error) {
	return func(ctx context.Context, r *Request) (Sample, error) {
		return overPoints(ctx, r, wants{several: true}, func(p []apPoint, reps []int) float64 {
			v := math.NaN()
			for i := range p[1:] {
				step := p[i+1].ratio(reps) / p[i].ratio(reps)
				if math.IsNaN(v) {
					v = step
					continue
				}
				v = of(v, step)
			}
			return v
		})
	}
}

// totalAgainst compares points that differ in one variable.
func totalAgainst(ctx context.Context, r *Request) (Sample, error) {
	variable := r.With.Text("variable", "")
	sides := make([][]apPoint, 2)
	for k, value := range []string{r.With.Text("is", ""), r.With.Text("was", "")} {
		side := *r
		side.Where = map[string]string{variable: value}
		for n, v := range r.Where {
			side.Where[n] = v
		}
		var err error
		if sides[k], err = pointsOf(ctx, &side, wants{}); err != nil {
			return Sample{}, err
		}
	}
	var is, was []apPoint
	for _, a := range sides[0] {
		for _, b := range sides[1] {
			if a.label == b.label {
				is, was = append(is, a), append(was, b)
			}
		}
	}
	if len(is) == 0 {
		return Sample{}, NotTestable("no point was run with %s=%s and %s", variable, r.With["is"], r.With["was"])
	}
	return sampleOf(append(append([]apPoint(nil), is...), was...), func(reps []int) float64 {
		least := math.Inf(1)
		for i := range is {
			least = math.Min(least, stats.Mean(pick(is[i].total, reps))/stats.Mean(pick(was[i].total, reps)))
		}
		return least
	}), nil
}
