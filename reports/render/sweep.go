package render

import (
	"fmt"
	"strconv"

	"github.com/hopbed/hopbed/reports/dataset"
	"github.com/hopbed/hopbed/reports/figure"
	"github.com/hopbed/hopbed/reports/safetext"
	"github.com/hopbed/hopbed/reports/stats"
)

// maxPanels is how many settings of the other variables a figure of one variable
// shows; the table has all.
const maxPanels = 6

// drawSweeps makes a figure for each variable of the campaign's matrix, with a
// panel for each setting of the others.
func (s *Section) drawSweeps() {
	type key struct {
		backend, variable string
		sized             bool
	}
	var order []key
	of := map[key][]dataset.Sweep{}
	for _, backend := range s.backends() {
		for _, w := range s.Set.Sweeps(backend) {
			k := key{w.Backend, w.Variable, w.Sized}
			if of[k] == nil {
				order = append(order, k)
			}
			of[k] = append(of[k], w)
		}
	}
	for i, k := range order {
		s.Figures = append(s.Figures, s.sweepFigure(fmt.Sprintf("%s-variable-%d", s.ID, i+1), of[k]))
	}
}

// backends are those of the section's groups, nearly always one.
func (s *Section) backends() []string {
	var out []string
	seen := map[string]bool{}
	for i := range s.Set.Groups {
		if b := s.Set.Groups[i].Backend; !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	return out
}

func (s *Section) sweepFigure(id string, sweeps []dataset.Sweep) *figure.Figure {
	place := map[string]int{} // of transports: the same colour in every panel
	for i, t := range s.Set.Transports() {
		place[t] = i
	}
	var panels []figure.SweepPanel
	for _, w := range sweeps[:min(maxPanels, len(sweeps))] {
		p := figure.SweepPanel{Fixed: safetext.Line(w.Fixed.String(), 120)}
		for _, v := range w.Values {
			p.Values = append(p.Values, name(v))
		}
		for _, l := range w.Lines {
			line := figure.SweepLine{Label: name(l.Transport), Series: place[l.Transport]}
			for _, a := range l.At {
				line.At = append(line.At, figure.SweepAt{N: a.N, Q1: a.Flow.Q1, Median: a.Flow.Median, Q3: a.Flow.Q3})
			}
			p.Lines = append(p.Lines, line)
		}
		panels = append(panels, p)
	}
	m := figure.Goodput
	if sweeps[0].Sized {
		m = figure.Completion
	}
	f := figure.Sweep(id, m, name(sweeps[0].Variable), panels)
	if more := len(sweeps) - len(panels); more > 0 {
		f.Caption += fmt.Sprintf(" The first %d settings of the other variables; %d more are in the table of points.", len(panels), more)
	}
	stamp([]*figure.Figure{f}, sweeps[0].Backend, s.Set.Campaign.Quick)
	return f
}

// pointTables show every point of the matrix at a glance: one row for each,
// with the median flow of its repetitions, and the sum over flows where there
// are several.
func (s *Section) pointTables() []Table {
	var out []Table
	for _, backend := range s.backends() {
		varied := s.Set.Varied(backend)
		if len(varied) == 0 {
			continue
		}
		for _, sized := range []bool{false, true} {
			what, of := "Goodput", ""
			if sized {
				what = "Completion time"
			}
			if s.several() {
				of = " of the median flow"
			}
			flow := func(p dataset.PointSummary) string {
				text := middle(p.Flow, sized)
				if p.AtLeast {
					text = "≥\u00a0" + text
				}
				return text
			}
			if t := s.pointTable(backend, varied, sized, what+of, flow); len(t.Rows) > 0 {
				out = append(out, t)
				if !sized && s.several() {
					out = append(out, s.pointTable(backend, varied, sized, "Aggregate goodput", func(p dataset.PointSummary) string { return middle(p.Aggregate, false) }))
				}
			}
		}
	}
	return out
}

// several tells that some point has several flows of one transport at once.
func (s *Section) several() bool {
	for i := range s.Groups {
		if !s.Groups[i].single() {
			return true
		}
	}
	return false
}

// middle is the median over repetitions with the quartiles.
func middle(s stats.Summary, sized bool) string {
	format := rate
	if sized {
		format = figure.Seconds
	}
	if s.N < 2 {
		return format(s.Median)
	}
	return format(s.Median) + " (" + format(s.Q1) + "–" + format(s.Q3) + ")"
}

func (s *Section) pointTable(backend string, varied []string, sized bool, what string, cell func(dataset.PointSummary) string) Table {
	transports := s.Set.Transports()
	t := Table{Title: what + " at each point", Left: map[int]bool{}}
	for i, v := range varied {
		t.Head = append(t.Head, name(v))
		t.Left[i] = true
	}
	for _, tr := range transports {
		t.Head = append(t.Head, "n", name(tr))
	}
	for i := range s.Set.Groups {
		g := &s.Set.Groups[i]
		if g.Backend != backend || g.Sized != sized {
			continue
		}
		var cells []string
		for _, v := range varied {
			value, has := g.Condition[v]
			if !has {
				value = nothing
			}
			cells = append(cells, name(value))
		}
		for _, tr := range transports {
			n, text := nothing, nothing
			if ser := g.Find(tr); ser != nil {
				p := ser.SummariseReps()
				if n = strconv.Itoa(p.N); p.N > 0 {
					text = cell(p)
				}
			}
			cells = append(cells, n, text)
		}
		t.add("", cells...)
	}
	t.Notes = []string{"n: valid repetitions. Each has one value; shown is the median of these, in parentheses their quartiles."}
	return fromBackend([]Table{t}, backend)[0]
}
