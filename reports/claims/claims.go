package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// Seed decides the resamples of every interval, so that the same results give
// the same report.
const Seed = 20090422

// Claim is one published figure or checkable statement to stand beside our
// results.
type Claim struct {
	ID        string   // "hop-nsdi09/load30/load30-median"
	Statement int      // the paper's checkable statement that it is part of; 0 for none
	Text      string   // what the source says, in one sentence
	Value     *float64 // as published; nil when the statement has no number
	Unit      string   // "×", "kb/s", "" …
	Source    string   // where it is published, with the source tag
	Measure   string   // how our value is taken; "" when there is none
	Of        string   // transport or family, e.g. "hop"
	To        string   // transport compared with, e.g. "tcp/cubic"; "" for none
	Where     map[string]string
	With      Params
	// AboveMeasure names a measure of the same points and transports: the value
	// judged is the difference to it, repetition by repetition.
	AboveMeasure string
	// Threshold is what our value must fulfil to match; nil when the figure
	// depends on the place where it was measured, and only the direction can be
	// compared.
	Threshold *Threshold
	// MinRepetitions and MinDurationS are what the statement needs to be
	// testable.
	MinRepetitions int
	MinDurationS   float64
	// NotTestable says why this campaign cannot test the statement, if so.
	NotTestable string
}

// Threshold is a range for our value: at least Min, above Above, at most Max,
// as far as each is given.
type Threshold struct {
	Min, Above, Max *float64
	Source          string // where the threshold comes from
}

// String writes "≥ 10", "> 0" or "≥ 1.2 and ≤ 1.6".
func (t *Threshold) String() string {
	if t == nil {
		return ""
	}
	var s []string
	for _, limit := range []struct {
		sign string
		v    *float64
	}{{"≥", t.Min}, {">", t.Above}, {"≤", t.Max}} {
		if limit.v != nil {
			s = append(s, limit.sign+" "+strconv.FormatFloat(*limit.v, 'g', 4, 64))
		}
	}
	return strings.Join(s, " and ")
}

func (t *Threshold) holds(v float64) bool {
	return (t.Min == nil || v >= *t.Min) && (t.Above == nil || v > *t.Above) && (t.Max == nil || v <= *t.Max)
}

// Verdict is the outcome of a comparison with a published figure.
type Verdict string

// The verdicts.
const (
	Matches       Verdict = "matches"
	SameDirection Verdict = "same direction"
	Differs       Verdict = "differs"
	NotTested     Verdict = "not testable"
)

// order has the better verdicts first. Of a statement with several parts the
// worst counts.
var order = []Verdict{Matches, NotTested, SameDirection, Differs}

// Worse tells that v is a worse verdict than w.
func (v Verdict) Worse(w Verdict) bool { return slices.Index(order, v) > slices.Index(order, w) }

// Finding is a claim beside what a campaign shows.
type Finding struct {
	Claim
	Verdict Verdict
	Why     string // the reason of the verdict
	// Indication is what the verdict would be if the campaign were as long and
	// had as many repetitions as the statement needs; for others it is Verdict.
	Indication Verdict
	Ours       stats.Estimate // N is 0 when there is no value
	How        string         // how our value is taken
	Details    []string       // what stands behind it
	Campaign   int64          // that it rests on
}

// Judge sets claims beside the results of a campaign.
func Judge(ctx context.Context, set *dataset.Set, claims []Claim) ([]Finding, error) {
	var out []Finding
	for i := range claims {
		f, err := judge(ctx, set, &claims[i])
		if err != nil {
			return nil, fmt.Errorf("statement %s: %w", claims[i].ID, err)
		}
		out = append(out, f)
	}
	return out, nil
}

func judge(ctx context.Context, set *dataset.Set, c *Claim) (Finding, error) {
	f := Finding{Claim: *c, Verdict: NotTested, Indication: NotTested, Campaign: set.Campaign.ID}
	if c.NotTestable != "" {
		f.Why = c.NotTestable
		return f, nil
	}
	m := Find(c.Measure)
	switch {
	case c.Measure == "":
		f.Why = "this experiment has no value for it"
		return f, nil
	case m == nil:
		f.Why = fmt.Sprintf("hopbed does not know the measure %q", c.Measure)
		return f, nil
	}
	neutral := m.Neutral
	f.How = m.About
	r := &Request{Set: set, Of: c.Of, To: c.To, Where: c.Where, With: c.With}
	s, err := m.Take(ctx, r)
	if err == nil && c.AboveMeasure != "" {
		neutral = 0
		err = f.above(ctx, r, &s)
	}
	var not *NotTestableError
	switch {
	case errors.As(err, &not):
		f.Why = not.Because
		return f, nil
	case err != nil:
		return f, err
	}
	f.Ours, f.Details = s.estimate(neutral), s.Details
	switch {
	case f.Ours.N == 0:
		f.Why = "no valid repetition"
		return f, nil
	case f.Value == nil && f.Threshold.String() == "":
		f.Why = "the source gives no number to compare with"
		return f, nil
	case math.IsNaN(f.Ours.Value):
		f.Why = "our value is not defined"
		return f, nil
	}
	f.Indication, f.Why = f.verdict(neutral)
	switch {
	case set.Campaign.Quick:
		f.Why = dataset.QuickNotice
	case f.Ours.N < c.MinRepetitions:
		f.Why = fmt.Sprintf("needs %d repetitions, there are %d", c.MinRepetitions, f.Ours.N)
	case s.Seconds > 0 && s.Seconds < c.MinDurationS:
		f.Why = fmt.Sprintf("needs runs of %g s, these have %g s", c.MinDurationS, s.Seconds)
	default:
		f.Verdict = f.Indication
	}
	return f, nil
}

// above makes the sample the difference to the other measure's.
func (f *Finding) above(ctx context.Context, r *Request, s *Sample) error {
	m := Find(f.AboveMeasure)
	if m == nil {
		return NotTestable("hopbed does not know the measure %q", f.AboveMeasure)
	}
	other, err := m.Take(ctx, r)
	if err != nil {
		return err
	}
	if other.N != s.N {
		return NotTestable("%s has %d repetitions and %s %d", f.Measure, s.N, f.AboveMeasure, other.N)
	}
	all := indices(s.N)
	one := s.Statistic
	s.Details = append(s.Details, fmt.Sprintf("%.3g and %.3g", one(all), other.Statistic(all)))
	s.Statistic = func(reps []int) float64 { return one(reps) - other.Statistic(reps) }
	f.How += ", less the " + m.About
	if f.Threshold == nil {
		zero := 0.0
		f.Threshold = &Threshold{Above: &zero}
	}
	f.Value, f.Unit = nil, "" // the published value is one of the two, not the difference
	return nil
}

func (f *Finding) verdict(neutral float64) (Verdict, string) {
	v := f.Ours.Value
	if t := f.Threshold; t != nil && t.holds(v) {
		why := "our value is " + t.String()
		if f.Ours.HasInterval && !(t.holds(f.Ours.Lo) && t.holds(f.Ours.Hi)) {
			why += ", but its interval reaches beyond"
		}
		return Matches, why
	}
	// Which side of "no difference" the source is on.
	var up, down bool
	switch t := f.Threshold; {
	case f.Value != nil:
		up, down = *f.Value > neutral, *f.Value < neutral
	case t == nil:
	case t.Min != nil && *t.Min >= neutral, t.Above != nil && *t.Above >= neutral:
		up = true
	case t.Max != nil && *t.Max <= neutral:
		down = true
	}
	why := "no threshold: it depends on the place where it was measured"
	if f.Threshold != nil {
		why = "our value is not " + f.Threshold.String()
	}
	if up && v > neutral || down && v < neutral {
		return SameDirection, why
	}
	return Differs, why
}
