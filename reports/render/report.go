package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/claims"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/safetext"
)

// BootstrapSeed decides the resamples of every interval, so that the same
// results give the same report.
const BootstrapSeed = claims.Seed

// Options say what a report compares with.
type Options struct {
	// Published returns the published figures for the reference that a campaign's
	// experiment names ("hop-nsdi09/load30"); nil when there are none.
	Published func(c *store.Campaign) ([]claims.Claim, error)
	// Pack returns the verdicts of a paper's statements over all campaigns of the
	// report, which then stand at its top; nil for other reports.
	Pack func(ctx context.Context, sets []*dataset.Set) (*claims.Pack, error)
	// Baseline is the transport that others are compared with; "" for the
	// first end-to-end TCP of the plan.
	Baseline string
	// Version is that of the hopbed that writes the report.
	Version string
}

// Report holds one section for each campaign, before them a comparison of each
// two that carried the same experiment out on different back ends. Campaigns are
// never pooled.
type Report struct {
	Title       string
	Version     string
	Pack        *claims.Pack // nil unless the report is of a paper
	Comparisons []Comparison
	Sections    []Section
}

// Section is the report of one campaign.
type Section struct {
	ID     string // fit for an element id and a file name
	Set    *dataset.Set
	Groups []Group
	Claims []claims.Finding // published figures beside ours
	// Figures are those of the variables of the matrix, over all groups.
	Figures []*figure.Figure
}

// Group is the report of one set of conditions.
type Group struct {
	ID       string
	Data     *dataset.Group
	Baseline string // "" when there is none
	Summary  []dataset.Summary
	Ratios   []dataset.Ratios
	Hops     []dataset.HopRow
	Airtime  []SeriesAirtime
	Pipes    []SeriesPipes
	Delays   []SeriesDelays // of messages, for each series
	Figures  []*figure.Figure
	// Maps are the placements of further repetitions, where they differ.
	Maps []*figure.Figure
}

// SeriesAirtime is the airtime of the nodes of one series.
type SeriesAirtime struct {
	Transport string
	Runs      int // that it rests on
	Nodes     []dataset.Airtime
}

// SeriesPipes is what the wired links did for one series.
type SeriesPipes struct {
	Transport string
	Pipes     []dataset.PipeUse
}

// Build reads the campaigns and computes their report.
func Build(ctx context.Context, st *store.Store, campaignIDs []int64, o Options) (*Report, error) {
	if len(campaignIDs) == 0 {
		return nil, errors.New("report: no campaign was named")
	}
	r := &Report{Version: o.Version}
	var titles []string
	var sets []*dataset.Set
	for _, id := range campaignIDs {
		set, err := dataset.Load(ctx, st, id)
		if err != nil {
			return nil, err
		}
		s, err := section(ctx, set, o)
		if err != nil {
			return nil, fmt.Errorf("campaign %d: %w", id, err)
		}
		r.Sections = append(r.Sections, *s)
		sets = append(sets, set)
		titles = append(titles, safetext.Line(set.Campaign.Name, 60)+" on "+safetext.Line(set.Campaign.Backend, 60))
	}
	r.Comparisons = comparisons(ctx, sets)
	r.Title = strings.Join(titles, ", ")
	if len(r.Sections) == 1 {
		r.Title = safetext.Line(r.Sections[0].title(), 160)
	}
	if o.Pack != nil {
		var err error
		if r.Pack, err = o.Pack(ctx, sets); err != nil {
			return nil, err
		}
		r.Title = safetext.Line(r.Pack.Title, 160)
	}
	return r, nil
}

// title is the campaign's title, or its name when it has none.
func (s *Section) title() string {
	if t := s.Set.Campaign.Title; t != "" {
		return t
	}
	return s.Set.Campaign.Name
}

// heading names the section's campaign among several.
func (s *Section) heading() string {
	c := &s.Set.Campaign
	return fmt.Sprintf("Campaign %d: %s on %s", c.ID, safetext.Line(c.Name, maxName), safetext.Line(c.Backend, maxName))
}

func section(ctx context.Context, set *dataset.Set, o Options) (*Section, error) {
	c := &set.Campaign
	s := &Section{ID: fmt.Sprintf("c%d", c.ID), Set: set}
	if o.Published != nil && c.Reference != "" {
		published, err := o.Published(c)
		if err != nil {
			return nil, err
		}
		if s.Claims, err = claims.Judge(ctx, set, published); err != nil {
			return nil, err
		}
	}
	for i := range set.Groups {
		g := &set.Groups[i]
		out := Group{ID: fmt.Sprintf("%sg%d", s.ID, i+1), Data: g}
		base := g.Baseline(o.Baseline)
		for j := range g.Series {
			out.Summary = append(out.Summary, g.Series[j].Summary())
			if base != nil && &g.Series[j] != base {
				out.Ratios = append(out.Ratios, dataset.Compare(&g.Series[j], base, BootstrapSeed))
			}
		}
		if base != nil {
			out.Baseline = base.Transport
		}
		out.Hops = dataset.ByHops(g, base, BootstrapSeed)
		if err := readDelays(ctx, set, &out); err != nil {
			return nil, err
		}
		nets, err := account(ctx, set, &out)
		if err != nil {
			return nil, err
		}
		if len(set.Groups) <= maxDrawn {
			if err := draw(ctx, set, &out, nets); err != nil {
				return nil, err
			}
		}
		s.Groups = append(s.Groups, out)
	}
	s.drawSweeps()
	return s, nil
}
