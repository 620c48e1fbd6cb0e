package render

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopbed/hopbed/reports/figure"
)

// tables are the tables of a group, in the order of the report.
func (g *Group) tables() []Table {
	t := append([]Table{summaryTable(g)}, delayTables(g)...)
	if len(g.Ratios) > 0 {
		t = append(t, ratioTable(g))
	}
	if len(g.Hops) > 0 && !g.single() {
		t = append(t, hopTable(g))
	}
	if a := airtimeTable(g); len(a.Rows) > 0 {
		t = append(t, a)
	}
	if len(g.Pipes) > 0 {
		t = append(t, pipeTable(g))
	}
	return fromBackend(t, g.Data.Backend)
}

// fromBackend says in every title which back end the numbers came from.
func fromBackend(tables []Table, backend string) []Table {
	for i := range tables {
		tables[i].Title += " (" + name(backend) + ")"
	}
	return tables
}

// tables are the tables of a campaign, in the order of the report.
func (s *Section) tables() []Table {
	var t []Table
	if l := leftOutTable(s); len(l.Rows) > 0 {
		t = append(t, l)
	}
	if r := runTable(s); len(r.Rows) > 0 {
		t = append(t, r)
	}
	return fromBackend(t, s.Set.Campaign.Backend)
}

func (g *Group) allFigures() []*figure.Figure {
	return append(append([]*figure.Figure(nil), g.Figures...), g.Maps...)
}

// Figures returns every figure of the report.
func (r *Report) Figures() []*figure.Figure {
	var out []*figure.Figure
	for i := range r.Comparisons {
		out = append(out, r.Comparisons[i].Figures...)
	}
	for i := range r.Sections {
		out = append(out, r.Sections[i].Figures...)
		for j := range r.Sections[i].Groups {
			out = append(out, r.Sections[i].Groups[j].allFigures()...)
		}
	}
	return out
}

// WriteFigures writes every figure as an SVG file and a CSV file into a folder,
// which it creates.
func (r *Report) WriteFigures(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	for _, f := range r.Figures() {
		var csv bytes.Buffer
		if err := f.CSV(&csv); err != nil {
			return err
		}
		for _, file := range []struct {
			ext  string
			data []byte
		}{{".svg", f.SVG()}, {".csv", csv.Bytes()}} {
			if err := os.WriteFile(filepath.Join(dir, f.ID+file.ext), file.data, 0o644); err != nil {
				return fmt.Errorf("figures: %w", err)
			}
		}
	}
	return nil
}
