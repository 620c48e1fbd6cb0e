package kernelcompare

import (
	"os"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

// TestPathsIsAnExperiment: paths.yaml keeps to the format, and has the paths of
// the grid.
func TestPathsIsAnExperiment(t *testing.T) {
	src, err := os.ReadFile("paths.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := spec.Parse("paths.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for _, s := range grid() {
		if s.cc != "bbr" && s.sack {
			paths++
		}
	}
	if n := len(e.Points()); n != paths {
		t.Errorf("%d points, want %d: 13 paths with reno and cubic", n, paths)
	}
}
