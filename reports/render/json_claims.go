package render

import (
	"math"

	"github.com/hopbed/hopbed/reports/claims"
)

type jsonClaim struct {
	ID         string            `json:"id"`
	Statement  int               `json:"statement"` // 0: of none
	Text       string            `json:"text"`
	Verdict    claims.Verdict    `json:"verdict"`
	Indication claims.Verdict    `json:"points_to"` // what it would be, were the campaign long enough
	Why        string            `json:"why"`
	Value      number            `json:"value"`
	Interval   *[2]number        `json:"interval"`
	N          int               `json:"repetitions"`
	Warnings   []string          `json:"warnings"`
	Details    []string          `json:"details"`
	Published  *float64          `json:"published"`
	Unit       string            `json:"unit"`
	Source     string            `json:"source"`
	Threshold  *jsonThreshold    `json:"threshold"`
	Measure    string            `json:"measure"`
	Of         string            `json:"of"`
	To         string            `json:"to"`
	Where      map[string]string `json:"where"`
	Campaign   int64             `json:"campaign"`
}

type jsonThreshold struct {
	Min    *float64 `json:"min"`
	Above  *float64 `json:"above"` // strictly
	Max    *float64 `json:"max"`
	Source string   `json:"source"`
}

type jsonPack struct {
	Paper      string          `json:"paper"`
	Title      string          `json:"title"`
	Statements []jsonStatement `json:"statements"`
}

type jsonStatement struct {
	Number     int            `json:"number"` // 0: values of no statement
	Text       string         `json:"text"`
	Verdict    claims.Verdict `json:"verdict"`
	Indication claims.Verdict `json:"points_to"`
	Claims     []jsonClaim    `json:"claims"`
}

func packJSON(p *claims.Pack) *jsonPack {
	if p == nil {
		return nil
	}
	out := &jsonPack{p.Paper, p.Title, []jsonStatement{}}
	for i := range p.Statements {
		s := &p.Statements[i]
		one := jsonStatement{s.Number, s.Text, s.Verdict(), s.Indication(), []jsonClaim{}}
		for j := range s.Findings {
			one.Claims = append(one.Claims, claimJSON(&s.Findings[j]))
		}
		out.Statements = append(out.Statements, one)
	}
	return out
}

func claimJSON(f *claims.Finding) jsonClaim {
	j := jsonClaim{ID: f.ID, Statement: f.Statement, Text: f.Text, Verdict: f.Verdict, Indication: f.Indication, Why: f.Why, Value: number(math.NaN()), Interval: bounds(f.Ours), N: f.Ours.N,
		Warnings: list(f.Ours.Warnings), Details: list(f.Details), Published: f.Value, Unit: f.Unit, Source: f.Source, Measure: f.Measure, Of: f.Of, To: f.To, Where: f.Where, Campaign: f.Campaign}
	if f.Ours.N > 0 {
		j.Value = number(f.Ours.Value)
	}
	if t := f.Threshold; t != nil {
		j.Threshold = &jsonThreshold{t.Min, t.Above, t.Max, t.Source}
	}
	return j
}
