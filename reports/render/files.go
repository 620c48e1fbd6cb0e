package render

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hopbed/hopbed/reports/figure"
)

// tables are the tables of a group, in the order of the report.
func (g *Group) tables() []Table {
	t := append([]Table{summaryTable(g)}, delayTables(g)...)
	if len(g.Ratios) > 0 {
		t = append(t, ratioTable(g))
		if d := distributionTable(g); len(d.Rows) > 0 {
			t = append(t, d)
		}
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

// figureFiles are what a figure is written as, by the file's ending.
var figureFiles = []struct {
	ext   string
	write func(*figure.Figure, io.Writer) error
}{
	{".svg", func(f *figure.Figure, w io.Writer) error { _, err := w.Write(f.SVG()); return err }},
	{".png", func(f *figure.Figure, w io.Writer) error { return f.PNG(w, figure.PNGScale) }},
	{".csv", (*figure.Figure).CSV},
	{".dat", (*figure.Figure).PGF},
}

// WriteFigures writes every figure into a folder, which it creates: as SVG and
// PNG, and its numbers as CSV and as a table of pgfplots (.dat).
func (r *Report) WriteFigures(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	for _, f := range r.Figures() {
		for _, file := range figureFiles {
			var b bytes.Buffer
			if err := file.write(f, &b); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, f.ID+file.ext), b.Bytes(), 0o644); err != nil {
				return fmt.Errorf("figures: %w", err)
			}
		}
	}
	return nil
}
