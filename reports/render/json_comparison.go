package render

import (
	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/stats"
)

// jsonComparison is a comparison for programs: A is the model where one side is.
type jsonComparison struct {
	A         jsonSide            `json:"a"`
	B         jsonSide            `json:"b"`
	Refused   string              `json:"refused"` // why there are no points, "" when there are
	Judged    bool                `json:"judged"`  // the aims apply: a is a model of what b is
	Aims      []jsonAim           `json:"aims"`
	CountRule string              `json:"count_rule"`
	FlowRule  string              `json:"flow_rule"`
	Points    []jsonComparedPoint `json:"points"`
	Figures   []jsonFigureName    `json:"figures"`
	Warnings  []string            `json:"warnings"`
}

type jsonSide struct {
	Label     string `json:"label"`
	Backend   string `json:"backend"`
	Meaning   string `json:"backend_meaning"`
	Campaign  int64  `json:"campaign"`
	Database  string `json:"database"`  // "" for the report's own
	Transport string `json:"transport"` // "" for every transport that both have
}

// jsonAim is an aim and how many points meet it.
type jsonAim struct {
	Quantity dataset.Quantity `json:"quantity"`
	Within   float64          `json:"within"` // of a ratio of 1
	Met      int              `json:"met"`
	Missed   int              `json:"missed"`
	Differ   int              `json:"flows_differ"` // the sum meets it, the flows differ
	TooFew   int              `json:"too_few"`
	Unsure   int              `json:"unsure"` // of the first three
}

type jsonComparedPoint struct {
	Condition   store.Params   `json:"condition"`
	Transport   string         `json:"transport"`
	Flows       int            `json:"flows"`
	Repetitions []int          `json:"repetitions"`
	Quantities  []jsonCompared `json:"quantities"`
	PerFlow     *jsonFlows     `json:"per_flow"` // null where the sides do not have the same flows, and several
	Warnings    []string       `json:"warnings"`
}

type jsonCompared struct {
	Quantity   dataset.Quantity `json:"quantity"`
	Unit       string           `json:"unit"`
	A          number           `json:"a"`
	B          number           `json:"b"`
	Ratio      *jsonEstimate    `json:"ratio"`      // a/b; null where it is not compared so
	Difference *jsonEstimate    `json:"difference"` // a−b, likewise
	Counts     *jsonCounts      `json:"counts"`     // null where the value is no count
	Verdict    dataset.Verdict  `json:"verdict"`    // "met", "missed", "flows differ", "too few", or "" where nothing is judged
	Sure       bool             `json:"sure"`
	Why        string           `json:"why"`
}

// jsonFlows sets single flows beside each other.
type jsonFlows struct {
	Repetitions int          `json:"repetitions"`
	Ratio       jsonEstimate `json:"ratio"` // a/b of a flow: median over flows, then over repetitions
	Furthest    struct {
		Flow       int    `json:"flow"`
		Repetition int    `json:"repetition"` // 0: over all
		Ratio      number `json:"ratio"`
	} `json:"furthest"`
	Moved    number          `json:"another_flows_share"`
	Chance   number          `json:"by_chance"` // null: not known
	JainA    number          `json:"jain_a"`
	JainB    number          `json:"jain_b"`
	StarvedA number          `json:"starved_share_a"`
	StarvedB number          `json:"starved_share_b"`
	Verdict  dataset.Verdict `json:"verdict"` // "met", "flows differ", or "" where nothing is judged
	Sure     bool            `json:"sure"`
	Why      string          `json:"why"`
}

func flowsJSON(f *dataset.ComparedFlows) *jsonFlows {
	if f == nil {
		return nil
	}
	j := &jsonFlows{Repetitions: f.N, Ratio: estimate(f.Each), Moved: number(f.Moved), Chance: number(f.Chance),
		JainA: number(f.Jain[0]), JainB: number(f.Jain[1]), StarvedA: number(f.Starved[0]), StarvedB: number(f.Starved[1]),
		Verdict: f.Verdict, Sure: f.Sure, Why: f.Why}
	j.Furthest.Flow, j.Furthest.Repetition, j.Furthest.Ratio = f.Furthest.Flow, f.Furthest.Repetition, number(f.Furthest.Ratio)
	return j
}

type jsonCounts struct {
	A     number `json:"a"`
	B     number `json:"b"`
	Error number `json:"log_error"` // Poisson standard error of the ratio's logarithm
}

func (c *Comparison) json() jsonComparison {
	d := c.Data
	out := jsonComparison{A: sideJSON(&d.A), B: sideJSON(&d.B), Refused: c.Refused, Judged: d.Judged, Aims: []jsonAim{}, CountRule: dataset.CountRule, FlowRule: dataset.FlowRule,
		Points: []jsonComparedPoint{}, Figures: []jsonFigureName{}, Warnings: list(d.Warnings)}
	if d.Judged {
		for _, t := range d.Tally() {
			out.Aims = append(out.Aims, jsonAim{t.Quantity, t.Within, t.Met, t.Missed, t.FlowsDiffer, t.TooFew, t.Unsure})
		}
	}
	for i := range d.Points {
		p := &d.Points[i]
		point := jsonComparedPoint{Condition: p.Condition, Transport: p.Transport, Flows: p.Flows, Repetitions: append([]int{}, p.Repetitions...), Quantities: []jsonCompared{}, PerFlow: flowsJSON(p.PerFlow), Warnings: list(p.Warnings)}
		for j := range p.Quantities {
			point.Quantities = append(point.Quantities, comparedJSON(&p.Quantities[j]))
		}
		out.Points = append(out.Points, point)
	}
	for _, f := range c.Figures {
		out.Figures = append(out.Figures, jsonFigureName{f.ID, f.Title})
	}
	return out
}

func sideJSON(s *dataset.Side) jsonSide {
	return jsonSide{s.Label, s.Backend, dataset.BackendMeaning(s.Backend), s.Set.Campaign.ID, s.Set.From, s.Transport}
}

func comparedJSON(k *dataset.Compared) jsonCompared {
	estimated := func(e stats.Estimate) *jsonEstimate {
		if e.N == 0 {
			return nil
		}
		j := estimate(e)
		return &j
	}
	j := jsonCompared{Quantity: k.Quantity, Unit: quantityWords[k.Quantity].unit, A: number(k.A), B: number(k.B),
		Ratio: estimated(k.Ratio), Difference: estimated(k.Difference), Verdict: k.Verdict, Sure: k.Sure, Why: k.Why}
	if k.Counts != nil {
		j.Counts = &jsonCounts{number(k.Counts.A), number(k.Counts.B), number(k.Counts.Error)}
	}
	return j
}
