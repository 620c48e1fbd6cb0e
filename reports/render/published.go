package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/reports/claims"
	"github.com/hopbed/hopbed/reports/safetext"
)

// markOf is the look of a verdict.
func markOf(v claims.Verdict) string {
	return map[claims.Verdict]string{claims.Matches: "good", claims.SameDirection: "weak", claims.Differs: "bad"}[v]
}

// claimTables sets published figures beside the results of a campaign.
func (s *Section) claimTables() []Table {
	if len(s.Claims) == 0 {
		return nil
	}
	t := Table{Title: "Published beside ours", Head: []string{"statement", "published", "ours (95\u00a0%)", "verdict"}, Left: map[int]bool{3: true}, Blocks: true}
	for i := range s.Claims {
		f := &s.Claims[i]
		statement := claimText(f)
		if f.Ours.N > 0 {
			statement += " Ours: " + howText(f)
		}
		for _, w := range f.Ours.Warnings {
			t.note(safetext.Line(w, 0))
		}
		t.add(markOf(f.Verdict), statement, publishedText(f), oursText(f), foundText(f))
	}
	return fromBackend([]Table{t}, s.Set.Campaign.Backend)
}

// note adds a note that is not there yet.
func (t *Table) note(text string) {
	if !slices.Contains(t.Notes, text) {
		t.Notes = append(t.Notes, text)
	}
}

// claimText is the statement with its source and the threshold with its own.
func claimText(f *claims.Finding) string {
	text := strings.TrimSuffix(safetext.Line(f.Text, 0), ".")
	if f.Source != "" {
		text += " (" + safetext.Line(f.Source, 0) + ")"
	}
	text += "."
	if t := f.Threshold.String(); t != "" {
		text += " Threshold " + t
		if f.Threshold.Source != "" {
			text += " (" + safetext.Line(f.Threshold.Source, 0) + ")"
		}
		text += "."
	}
	return text
}

// howText says how our value was taken, and what stands behind it.
func howText(f *claims.Finding) string {
	text := f.How + ", " + name(f.Of)
	if f.To != "" {
		text += " to " + name(f.To)
	}
	var where []string
	for k, v := range f.Where {
		where = append(where, k+"="+v)
	}
	slices.Sort(where)
	if len(where) > 0 {
		text += " at " + safetext.Line(strings.Join(where, ", "), 0)
	}
	if len(f.Details) > 0 {
		text += ": " + safetext.Line(strings.Join(f.Details, "; "), 0)
	}
	return text + "."
}

func publishedText(f *claims.Finding) string {
	if f.Value == nil {
		return nothing
	}
	return unit(significant(*f.Value), f.Unit)
}

func oursText(f *claims.Finding) string {
	if f.Ours.N == 0 || math.IsNaN(f.Ours.Value) {
		return nothing
	}
	text := unit(significant(f.Ours.Value), f.Unit)
	if f.Ours.HasInterval {
		text += " (" + interval(f.Ours) + ")"
	}
	return text
}

func foundText(f *claims.Finding) string {
	text := string(f.Verdict) + ": " + safetext.Line(f.Why, 0)
	if f.Indication != f.Verdict {
		text += " (it points to: " + string(f.Indication) + ")"
	}
	return text
}

// packTables are the verdicts of a paper's statements: one row for each, below it
// its parts, and then the published values that belong to no statement.
func packTables(p *claims.Pack) []Table {
	short := Table{Title: "Verdicts", Head: []string{"no.", "statement", "verdict"}, Left: map[int]bool{1: true, 2: true}}
	long := Table{Title: "Statements, part by part", Head: []string{"no.", "statement and threshold", "published", "ours (95\u00a0%)", "n", "verdict"}, Left: map[int]bool{1: true, 5: true}, Blocks: true}
	other := Table{Title: "Published values without a statement", Head: []string{"value", "published", "ours (95\u00a0%)", "n", "verdict"}, Left: map[int]bool{4: true}, Blocks: true}
	statements := slices.Clone(p.Statements)
	slices.SortStableFunc(statements, func(a, b claims.Statement) int { return cmp.Compare(a.Number, b.Number) })
	for i := range statements {
		s := &statements[i]
		if s.Number > 0 {
			text := string(s.Verdict())
			if ind := s.Indication(); ind != s.Verdict() {
				text += fmt.Sprintf(" (it points to: %s)", ind)
			}
			short.add(markOf(s.Verdict()), fmt.Sprint(s.Number), safetext.Line(s.Text, 0), text)
		}
		for j := range s.Findings {
			f := &s.Findings[j]
			text := claimText(f)
			if f.Ours.N > 0 {
				text += " Ours: " + howText(f)
			}
			n := nothing
			if f.Ours.N > 0 {
				n = fmt.Sprint(f.Ours.N)
			}
			cells := []string{text, publishedText(f), oursText(f), n, foundText(f)}
			if s.Number == 0 {
				other.add(markOf(f.Verdict), cells...)
				continue
			}
			for _, w := range f.Ours.Warnings {
				long.note(safetext.Line(w, 0))
			}
			long.add(markOf(f.Verdict), append([]string{fmt.Sprint(s.Number)}, cells...)...)
		}
	}
	short.Notes = append(short.Notes, "The verdict of a statement is the worst of its parts’. “Matches”: our value is within the threshold that was fixed before any result was seen; “same direction”: it is not, and is on the same side of no difference as the paper’s.")
	var out []Table
	for _, t := range []Table{short, long, other} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func unit(number, u string) string {
	switch u {
	case "":
		return number
	case "×", "x":
		return "×" + number
	}
	return number + "\u00a0" + safetext.Line(u, 20)
}
