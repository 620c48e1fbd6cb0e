package render

import (
	"context"
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/safetext"
)

// Comparison is the report of two sides beside each other.
type Comparison struct {
	ID      string // fit for an element id and a file name
	Data    *dataset.Comparison
	Refused string // why there is no comparison, "" where there is
	Figures []*figure.Figure
}

// NewComparison prepares a comparison for a report.
func NewComparison(id string, c *dataset.Comparison) Comparison {
	out := Comparison{ID: id, Data: c}
	drawn := []dataset.Quantity{dataset.QuantityGoodput, dataset.QuantityCompletionTime, dataset.QuantityRetransmitted, dataset.QuantityRTT, dataset.QuantityFrames}
	for _, w := range dataset.MessageWorkloads {
		drawn = append(drawn, dataset.QuantityDelayMedian(w))
	}
	for _, q := range drawn {
		if f := out.figure(q); f != nil {
			out.Figures = append(out.Figures, f)
		}
	}
	stamp(out.Figures, c.Backends(), out.quick())
	return out
}

// Compared makes a report of a comparison alone.
func Compared(c *dataset.Comparison, version string) *Report {
	r := &Report{Version: version, Comparisons: []Comparison{NewComparison("comparison", c)}}
	r.Title = r.Comparisons[0].title()
	return r
}

// comparisons are those that a report of several campaigns makes by itself: of
// the same experiment on different back ends. A campaign that was run again
// stands for itself.
func comparisons(ctx context.Context, sets []*dataset.Set) []Comparison {
	var out []Comparison
	for i, a := range sets {
		for _, b := range sets[i+1:] {
			x, y := &a.Campaign, &b.Campaign
			if x.Backend == y.Backend || x.FileSHA256 != y.FileSHA256 || x.Seed != y.Seed || x.Quick != y.Quick {
				continue
			}
			id := fmt.Sprintf("c%d-c%d", x.ID, y.ID)
			c, err := dataset.CompareCampaigns(ctx, a, b, BootstrapSeed)
			if err != nil {
				out = append(out, Comparison{ID: id, Data: c, Refused: safetext.Line(err.Error(), 400)})
				continue
			}
			out = append(out, NewComparison(id, c))
		}
	}
	return out
}

// sides names both sides, "sim / netns", and where the numbers came from when
// that does not say it.
func (c *Comparison) sides() string {
	text := name(c.Data.A.Label) + " / " + name(c.Data.B.Label)
	if c.Data.A.Backend == c.Data.B.Backend {
		text += " (" + name(c.Data.A.Backend) + ")"
	}
	return text
}

func (c *Comparison) title() string {
	what := safetext.Line(c.Data.A.Set.Campaign.Name, maxName)
	if other := safetext.Line(c.Data.B.Set.Campaign.Name, maxName); other != what {
		what += " and " + other
	}
	return what + ": " + c.sides()
}

// facts say what is compared.
func (c *Comparison) facts() []fact {
	var f []fact
	for i, s := range []*dataset.Side{&c.Data.A, &c.Data.B} {
		text := s.Where + ", back end " + dataset.BackendText(s.Backend) + ", hopbed " + s.Set.Campaign.Version
		if s.Transport != "" {
			text = s.Transport + ", " + text
		}
		f = append(f, fact{[]string{"A", "B"}[i], safetext.Line(text, 300)})
	}
	return f
}

// banners are what a reader must see before any number.
func (c *Comparison) banners() []Row {
	var out []Row
	if c.Refused != "" {
		out = append(out, Row{Mark: "bad", Cells: []string{c.Refused}})
	}
	if c.quick() {
		out = append(out, Row{Mark: "quick", Cells: []string{dataset.QuickNotice}})
	}
	return out
}

func (c *Comparison) quick() bool {
	return c.Data.A.Set.Campaign.Quick || c.Data.B.Set.Campaign.Quick
}

// short says what became of the aims.
func (c *Comparison) short() []string {
	var out []string
	for _, t := range c.Data.Tally() {
		what := fmt.Sprintf("%s, aim ± %g %%", quantityWords[t.Quantity].short, 100*t.Within)
		if !c.Data.Judged { // only the rule of counts was applied
			if t.TooFew > 0 {
				out = append(out, fmt.Sprintf("%s: too few events for a ratio at %s.", quantityWords[t.Quantity].short, dataset.CountOf(t.TooFew, "point")))
			}
			continue
		}
		var parts []string
		for _, p := range []struct {
			n    int
			what string
		}{{t.Met, "met at"}, {t.Missed, "missed at"}, {t.FlowsDiffer, "the sum met it but the flows differ at"}, {t.TooFew, "too few events at"}} {
			if p.n > 0 {
				parts = append(parts, p.what+" "+dataset.CountOf(p.n, "point"))
			}
		}
		text := what + ": " + strings.Join(parts, ", ")
		if t.Unsure > 0 {
			text += fmt.Sprintf("; not sure at %d of them", t.Unsure)
		}
		out = append(out, text+".")
	}
	return out
}

// figure draws the ratios of a quantity; nil when no point has any.
func (c *Comparison) figure(q dataset.Quantity) *figure.Figure {
	var points []figure.Ratio
	for i := range c.Data.Points {
		p := &c.Data.Points[i]
		k := p.Find(q)
		if k == nil || k.Ratio.N == 0 {
			continue
		}
		points = append(points, figure.Ratio{Label: pointLabel(p), Value: k.Ratio, Verdict: verdictText(k), Mark: figureMark(k)})
	}
	if len(points) == 0 {
		return nil
	}
	within := 0.0
	if aim, ok := dataset.AimFor(q); ok && c.Data.Judged {
		within = aim.Within
	}
	id := c.ID + "-" + strings.ReplaceAll(string(q), "_", "-")
	return figure.Ratios(id, c.sides()+", "+quantityWords[q].short, within, points)
}

// pointLabel names a point that may be the only one.
func pointLabel(p *dataset.ComparedPoint) string {
	if n := p.Name(); n != "" {
		return safetext.Line(n, 120)
	}
	return "all flows"
}

func figureMark(k *dataset.Compared) figure.Mark {
	switch k.Verdict {
	case dataset.Met:
		return figure.Good
	case dataset.Missed, dataset.FlowsDiffer:
		return figure.Bad
	case dataset.TooFew:
		return figure.Doubtful
	}
	return figure.Plain
}

// verdictText is the verdict, with a question mark where the interval leaves
// doubt.
func verdictText(k *dataset.Compared) string {
	switch {
	case k.Verdict == dataset.NotJudged, k.Verdict == dataset.TooFew, k.Sure:
		return string(k.Verdict)
	}
	return string(k.Verdict) + "\u00a0?"
}
