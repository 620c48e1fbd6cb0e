package main

import (
	"context"
	"fmt"

	"github.com/hopbed/hopbed/experiments/reference"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/render"
)

// buildReport renders stored campaigns beside the published figures that their
// experiments name.
func buildReport(ctx context.Context, st *store.Store, campaigns []int64) (*render.Report, error) {
	return render.Build(ctx, st, campaigns, render.Options{
		Version: version(),
		Published: func(c *store.Campaign) ([]render.Published, error) {
			return published(c.Reference, conditionsOf(c))
		},
	})
}

// conditions are what a claim may require of a campaign.
type conditions struct {
	backend string
	radio   string // "building" or "open"
}

// conditionsOf reads them from a campaign's own text. A text that this version
// cannot read any more has an unknown radio.
func conditionsOf(c *store.Campaign) conditions {
	out := conditions{backend: c.Backend, radio: "unknown"}
	e, err := spec.ParseFiles(c.Name, []byte(c.FileText), spec.Unread)
	if err != nil {
		return out
	}
	out.radio = "building"
	if e.Base().Radio.PathLoss.Kind == spec.Disk || len(e.Base().Topology.Links) > 0 {
		out.radio = "open"
	}
	return out
}

// metricOf translates the reference's metrics. A ratio there is taken within a
// repetition, and then the median over the repetitions.
var metricOf = map[reference.Metric]render.Metric{
	reference.MedianRatio:    "placement-median-ratio",
	reference.Q1Ratio:        "placement-q1-ratio",
	reference.Q3Ratio:        "placement-q3-ratio",
	reference.MeanRatio:      "placement-mean-ratio",
	reference.AggregateRatio: "placement-aggregate-ratio",
	reference.JainDifference: "jain-difference",
}

// published turns the reference's claims, and its values that no claim speaks
// of, into the report's form.
func published(ref string, on conditions) ([]render.Published, error) {
	e, err := reference.Lookup(ref)
	if err != nil {
		return nil, err
	}
	var out []render.Published
	told := map[*reference.Value]bool{}
	for i := range e.Claims {
		c := &e.Claims[i]
		p := render.Published{
			ID: ref + "/" + c.ID, Text: c.Why, Metric: metricOf[c.Metric], Subject: c.Of,
			MinRepetitions: c.Needs.Placements[on.backend], MinDurationS: c.Needs.MeasuredInterval().Seconds(),
			Threshold: threshold(c),
		}
		if v, ok := e.Published(c); ok {
			told[v] = true
			p.Text, p.Value, p.Unit, p.Source = text(v), v.Number, unit(v.Unit), source(e, v)
		}
		if p.Metric == "" {
			p.NotTestable = notComputed(c.Metric)
		}
		if c.Needs.Radio != "" && c.Needs.Radio != on.radio {
			p.NotTestable = fmt.Sprintf("the claim is about the %s radio, this campaign has the %s one", c.Needs.Radio, on.radio)
		}
		out = append(out, p)
	}
	for i := range e.Values {
		if v := &e.Values[i]; !told[v] {
			p := render.Published{
				ID: ref + "/" + v.ID, Text: text(v), Value: v.Number, Unit: unit(v.Unit), Source: source(e, v), Metric: metricOf[v.Metric], Subject: v.Of,
			}
			if p.Metric == "" {
				p.NotTestable = notComputed(v.Metric)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// notComputed says why a metric that the reference names has no value here.
func notComputed(m reference.Metric) string {
	switch m {
	case reference.LossOfCollapse, reference.ShareAt20, reference.ShareAt80, reference.LinearFitR2:
		return fmt.Sprintf("%s is of goodput over all points of the sweep, and what is judged is each point by itself: read it from the goodput at each point", m)
	}
	return fmt.Sprintf("the report does not compute %s", m)
}

func text(v *reference.Value) string {
	if v.Text != "" {
		return v.About + ": " + v.Text
	}
	return v.About
}

func unit(u string) string {
	if u == "ratio" {
		return "×"
	}
	return u
}

func source(e *reference.Experiment, v *reference.Value) string {
	where := e.Paper.Venue
	if e.Section != "" {
		where = "§" + e.Section + ", " + where
	}
	return fmt.Sprintf("%s; %s", where, v.Tag.Describe())
}

// threshold keeps a claim's limits.
func threshold(c *reference.Claim) *render.Threshold {
	if c.AtLeast == nil && c.AtMost == nil && c.Above == nil {
		return nil
	}
	return &render.Threshold{Min: c.AtLeast, Max: c.AtMost, Above: c.Above, Source: c.Tag.Describe() + ": " + c.Why}
}
