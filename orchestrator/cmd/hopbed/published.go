package main

import (
	"context"
	"fmt"

	"github.com/hopbed/hopbed/experiments/library"
	"github.com/hopbed/hopbed/experiments/reference"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
	"github.com/hopbed/hopbed/reports/render"
)

// buildReport renders stored campaigns beside the published figures that their
// experiments name.
func buildReport(ctx context.Context, st *store.Store, campaigns []int64) (*render.Report, error) {
	return render.Build(ctx, st, campaigns, render.Options{
		Version: version(),
		Published: func(c *store.Campaign) ([]claims.Claim, error) {
			return published(c.Reference, conditionsOf(c))
		},
	})
}

// conditions are what a claim may require of a campaign.
type conditions struct {
	backend    string
	radio      string // "building" or "open"
	experiment string
	shipped    bool // the experiment has the name of a shipped one
}

// conditionsOf reads them from a campaign's own text. A text that this version
// cannot read any more has an unknown radio.
func conditionsOf(c *store.Campaign) conditions {
	out := conditions{backend: c.Backend, radio: "unknown", experiment: c.Name}
	_, out.shipped = library.Source(c.Name)
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

// published turns the reference's claims, and its values that no claim speaks
// of, into the report's form.
func published(ref string, on conditions) ([]claims.Claim, error) {
	e, err := reference.Lookup(ref)
	if err != nil {
		return nil, err
	}
	var out []claims.Claim
	for _, a := range asked(e) {
		out = append(out, a.on(on))
	}
	return out, nil
}

// question is a claim of the reference's, or a value that no claim speaks of.
type question struct {
	claims.Claim
	experiment string // that has the value
	needs      reference.Needs
}

// on is the claim put to a campaign.
func (q *question) on(c conditions) claims.Claim {
	out := q.Claim
	out.MinRepetitions = q.needs.Placements[c.backend]
	if r := q.needs.Radio; r != "" && r != c.radio {
		out.NotTestable = fmt.Sprintf("the claim is about the %s radio, this campaign has the %s one", r, c.radio)
	}
	if q.experiment != "" && c.shipped && c.experiment != q.experiment {
		out.NotTestable = fmt.Sprintf("it is asked of the experiment %s", q.experiment)
	}
	return out
}

// asked are the questions of a figure.
func asked(e *reference.Experiment) []question {
	ref := e.Paper.ID + "/" + e.ID
	var out []question
	told := map[*reference.Value]bool{}
	for i := range e.Claims {
		c := &e.Claims[i]
		q := question{experiment: e.ExperimentOf(&c.Taken), needs: c.Needs, Claim: claims.Claim{
			ID: ref + "/" + c.ID, Statement: c.Statement, Text: c.Why, Measure: c.Measure, Of: c.Of, To: c.To, Where: c.Where, With: c.With,
			AboveMeasure: c.AboveMeasure, MinDurationS: c.Needs.MeasuredInterval().Seconds(), Threshold: threshold(c),
		}}
		if v, ok := e.Published(c); ok {
			told[v] = true
			q.Text, q.Value, q.Unit, q.Source = text(v), v.Number, unit(v.Unit), source(e, v)
			if v.Measure != c.Measure { // the number is of something else: shown in the text
				q.Value = nil
			}
		}
		out = append(out, q)
	}
	for i := range e.Values {
		if v := &e.Values[i]; !told[v] {
			out = append(out, question{experiment: e.ExperimentOf(&v.Taken), Claim: claims.Claim{
				ID: ref + "/" + v.ID, Text: text(v), Value: v.Number, Unit: unit(v.Unit), Source: source(e, v),
				Measure: v.Measure, Of: v.Of, To: v.To, Where: v.Where, With: v.With,
			}})
		}
	}
	return out
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
func threshold(c *reference.Claim) *claims.Threshold {
	if c.AboveMeasure != "" {
		zero := 0.0
		return &claims.Threshold{Above: &zero, Source: c.Tag.Describe() + ": " + c.Why}
	}
	return &claims.Threshold{Min: c.AtLeast, Max: c.AtMost, Above: c.Above, Source: c.Tag.Describe() + ": " + c.Why}
}
