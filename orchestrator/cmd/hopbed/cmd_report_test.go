package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report and a comparison as tables for a paper, with their figures as files.
func TestReportForPapers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.yaml"), tiny)
	if status, _, stderr := hopbed(t, dir, "run", "f.yaml", "--backend", "sim", "--set", "repeat=2"); status != 0 {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		args   []string
		figure string
	}{
		{[]string{"report", "-o", "r.tex", "--figures", "of-report"}, "of-report/c1g1-goodput-cdf"},
		{[]string{"compare", "hop", "tcp/cubic", "-o", "c.tex", "--figures", "of-comparison"}, "of-comparison/comparison-goodput"},
	} {
		status, out, stderr := hopbed(t, dir, c.args...)
		if status != 0 || out != "" {
			t.Fatalf("%v: status %d, %q: %s", c.args, status, out, stderr)
		}
		var file string
		for i, a := range c.args {
			if a == "-o" {
				file = c.args[i+1]
			}
		}
		tex, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		says(t, string(tex), `\toprule`, `\bottomrule`, "(sim)", "tcp/cubic")
		for _, ext := range []string{".svg", ".png", ".csv", ".dat"} {
			if st, err := os.Stat(filepath.Join(dir, c.figure+ext)); err != nil || st.Size() == 0 {
				t.Errorf("%v: %v", c.args, err)
			}
		}
		f, err := os.Open(filepath.Join(dir, c.figure+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(f); err != nil {
			t.Error(err)
		}
		f.Close()
	}
	status, _, stderr := hopbed(t, dir, "report", "-o", "r.pdf")
	if status == 0 || !strings.Contains(stderr, ".html, .md, .json or .tex") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
