package claims

import (
	"slices"
)

// Pack is what a paper states beside what our campaigns of its experiments show.
type Pack struct {
	Paper      string // id
	Title      string // of the paper
	Statements []Statement
}

// Statement is a checkable statement with what was found for each of its parts.
type Statement struct {
	Number   int // 0 for published values that belong to no statement
	Text     string
	Findings []Finding
}

// Verdict is the worst of its parts'; NotTested without any.
func (s *Statement) Verdict() Verdict { return s.worst(func(f *Finding) Verdict { return f.Verdict }) }

// Indication is what the verdict would be had the campaigns been long enough.
func (s *Statement) Indication() Verdict {
	return s.worst(func(f *Finding) Verdict { return f.Indication })
}

func (s *Statement) worst(of func(*Finding) Verdict) Verdict {
	if len(s.Findings) == 0 {
		return NotTested
	}
	v := Matches
	for i := range s.Findings {
		if f := of(&s.Findings[i]); f.Worse(v) {
			v = f
		}
	}
	return v
}

// Counts tells how many statements have each verdict.
func (p *Pack) Counts() map[Verdict]int {
	out := map[Verdict]int{}
	for i := range p.Statements {
		if s := &p.Statements[i]; s.Number > 0 {
			out[s.Verdict()]++
		}
	}
	return out
}

// Add puts findings to their statements; those of a number that is not there make
// it.
func (p *Pack) Add(findings []Finding) {
	for _, f := range findings {
		at := slices.IndexFunc(p.Statements, func(s Statement) bool { return s.Number == f.Statement })
		if at < 0 {
			at = len(p.Statements)
			p.Statements = append(p.Statements, Statement{Number: f.Statement})
		}
		p.Statements[at].Findings = append(p.Statements[at].Findings, f)
	}
}
