package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/hopbed/hopbed/reports/safetext"
)

// maxTableColumns is how many columns stand beside each other on a page; wider
// tables are set in smaller type.
const maxTableColumns = 6

// LaTeX writes the report's tables for a paper: one table environment for each,
// set with booktabs, without preamble, to be \input. What a reader must know (where
// the numbers come from, that they are not for conclusions) stands in each
// caption, since tables are taken out one by one.
func (r *Report) LaTeX(w io.Writer) error {
	t := &latex{w: bufio.NewWriter(w)}
	t.comment(r.Title)
	t.comment("Written by hopbed " + r.Version + ". Needs \\usepackage{booktabs} and, for symbols, \\usepackage{textcomp}; pdfLaTeX, LuaLaTeX or XeLaTeX.")
	if r.Pack != nil {
		for i, table := range packTables(r.Pack) {
			t.table(fmt.Sprintf("pack-%d", i+1), "", &table)
		}
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		t.comment("Comparison: " + c.title())
		for _, f := range c.facts() {
			t.comment(f.Name + ": " + f.Value)
		}
		if c.Refused != "" {
			t.comment(c.Refused)
			continue
		}
		for k, table := range c.tables() {
			t.table(fmt.Sprintf("%s-%d", c.ID, k+1), caveat(c.quick()), &table)
		}
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		t.comment(s.heading())
		for _, f := range s.facts() {
			t.comment(f.Name + ": " + f.Value)
		}
		for _, b := range s.banners() {
			t.comment(b.Cells[0])
		}
		quick := caveat(s.Set.Campaign.Quick)
		for k, table := range append(s.claimTables(), s.pointTables()...) {
			t.table(fmt.Sprintf("%s-%d", s.ID, k+1), quick, &table)
		}
		for j := range s.Groups {
			g := &s.Groups[j]
			t.comment(g.Data.Title())
			for k, table := range g.tables() {
				if len(s.Groups) > 1 {
					table.Title += ", " + g.Data.Condition.String()
				}
				t.table(fmt.Sprintf("%s-%d", g.ID, k+1), quick, &table)
			}
		}
	}
	return t.w.Flush()
}

func caveat(quick bool) string {
	if quick {
		return " Shortened runs: not for conclusions."
	}
	return ""
}

type latex struct{ w *bufio.Writer }

// comment writes a line that TeX skips.
func (t *latex) comment(s string) { fmt.Fprintf(t.w, "%% %s\n", safetext.Line(s, 0)) }

func (t *latex) table(label, caption string, table *Table) {
	spec := strings.Builder{}
	for i := range table.Head {
		switch {
		case i == 0 || table.Left[i]:
			spec.WriteString("l")
		default:
			spec.WriteString("r")
		}
	}
	size := "\\small"
	if len(table.Head) > maxTableColumns {
		size = "\\scriptsize"
	}
	fmt.Fprintf(t.w, "\n\\begin{table}[htbp]\n\\centering%s\n\\caption{%s.%s}\\label{tab:%s}\n\\begin{tabular}{@{}%s@{}}\n\\toprule\n",
		size, safetext.TeX(table.Title), safetext.TeX(caption), label, spec.String())
	t.row(table.Head, "")
	t.w.WriteString("\\midrule\n")
	for _, r := range table.Rows {
		t.row(r.Cells, r.Mark)
	}
	t.w.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, n := range append(table.below(), table.Notes...) {
		fmt.Fprintf(t.w, "\\par\\smallskip\\parbox{\\linewidth}{\\footnotesize %s}\n", safetext.TeX(n))
	}
	t.w.WriteString("\\end{table}\n")
}

func (t *latex) row(cells []string, mark string) {
	out := make([]string, len(cells))
	for i, c := range cells {
		if out[i] = safetext.TeX(c); mark == "strong" && c != "" {
			out[i] = "\\textbf{" + out[i] + "}"
		}
		if i == 0 && strings.HasPrefix(out[i], "[") {
			out[i] = "{}" + out[i] // else an argument of the \\ before it
		}
	}
	fmt.Fprintf(t.w, "%s \\\\\n", strings.Join(out, " & "))
}
