package render

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/internal/testenv"
)

func latexOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.LaTeX(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every table of a report is there, with as many cells in each row as columns.
func TestLaTeX(t *testing.T) {
	r := build(t, Options{}, small(3))
	text := latexOf(t, r)
	for _, want := range []string{`\caption{Goodput of flows (netns).}`, `\toprule`, `\midrule`, `\bottomrule`, `\textbf{median}`, `tcp/cubic`, `3 repetitions: the interval is not to be trusted`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	tables := regexp.MustCompile(`(?s)\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}\n(.*?)\\end\{tabular\}`).FindAllStringSubmatch(text, -1)
	n := 0
	for i := range r.Sections {
		n += len(r.Sections[i].pointTables()) + len(r.Sections[i].claimTables())
		for j := range r.Sections[i].Groups {
			n += len(r.Sections[i].Groups[j].tables())
		}
	}
	if len(tables) != n || n == 0 {
		t.Errorf("%d tables, the report has %d", len(tables), n)
	}
	for _, m := range tables {
		for _, l := range strings.Split(strings.TrimSpace(m[2]), "\n") {
			if cells, ok := strings.CutSuffix(l, ` \\`); ok && strings.Count(cells, " & ")+1 != len(m[1]) {
				t.Errorf("%d columns, row %s", len(m[1]), l)
			}
		}
	}
	if strings.Contains(text, "×") || strings.Contains(text, "\u00a0") && strings.Contains(tables[0][2], "\u00a0") {
		t.Error("signs that pdfLaTeX does not know came through")
	}
}

// Texts that others named end no table and run no command.
func TestLaTeXIsHarmless(t *testing.T) {
	o := small(2)
	o.Title = `\input{/etc/passwd} \write18{x} % & _ ^^41` + "\n\\end{document}"
	o.NodeName = func(int) string { return `a}\b$&#_` }
	text := latexOf(t, build(t, Options{}, o))
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "%") {
			continue
		}
		for _, bad := range []string{`\input`, `\write18`, `\end{document}`, `\b$`} {
			if strings.Contains(l, bad) {
				t.Errorf("%s came through: %s", bad, l)
			}
		}
	}
}

// The tables and the data of the figures are what LaTeX and pgfplots read.
func TestLaTeXReadsThem(t *testing.T) {
	testenv.Need(t, testenv.Program("pdflatex"))
	dir := t.TempDir()
	o := small(3)
	o.Title = `100 % of_it & more`
	r := build(t, Options{}, o)
	if err := os.WriteFile(filepath.Join(dir, "tables.tex"), []byte(latexOf(t, r)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteFigures(dir); err != nil {
		t.Fatal(err)
	}
	doc := "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{textcomp,booktabs,pgfplots}\\pgfplotsset{compat=1.18}\\extrafloats{100}\\begin{document}\n\\input{tables}\n" +
		"\\begin{tikzpicture}\\begin{semilogxaxis}\\addplot table[col sep=tab, x=goodput-bps, y=share-of-flows] {c1g1-goodput-cdf.dat};\\end{semilogxaxis}\\end{tikzpicture}\n\\end{document}\n"
	if err := os.WriteFile(filepath.Join(dir, "doc.tex"), []byte(doc), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "doc.tex")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
