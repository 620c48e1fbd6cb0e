package figure

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/reports/stats"
)

// Of four flows one had not completed when its run ended.
func TestFlowsThatHadNotCompletedAreNoTimes(t *testing.T) {
	s := []Series{{Label: "hop", Values: []float64{1, 2, 4}, Open: []float64{30}}}
	var csv bytes.Buffer
	f := CDF("x", Completion, s)
	if err := f.CSV(&csv); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(csv.String(), "\r", ""); !strings.HasPrefix(got, "transport,completion_s,share_of_flows,lo,hi\n") || !strings.HasSuffix(got, "hop,4,0.75,,\n") {
		t.Errorf("distribution:\n%s", got)
	}
	if strings.Contains(string(f.SVG()), "starved") {
		t.Error("a completion time is called starved")
	}
	box := string(Box("x", Completion, s).SVG())
	if strings.Count(box, "hb-s0 hb-hollow") != 1 || !strings.Contains(box, "median 3.00\u00a0s") {
		t.Error("the box has no hollow dot for the flow that had not completed, or a wrong median")
	}
	s[0].Open = []float64{30, 30, 30, 30}
	if box := string(Box("x", Completion, s).SVG()); !strings.Contains(box, "median ≥\u00a030.0\u00a0s") {
		t.Error("a median that rests on flows that had not completed is not marked")
	}
}

func TestIntervalsOfFewRepetitionsAreDotted(t *testing.T) {
	for n, want := range map[int]bool{3: true, 5: false} {
		f := Gains("x", "tcp/cubic", Goodput, []Gain{{"hop", 0, []int{2}, []stats.Estimate{{Value: 2, N: n, HasInterval: true, Lo: 1, Hi: 3}}}})
		if got := strings.Contains(string(f.SVG()), `class="hb-doubt`) && strings.Contains(f.Caption, "not to be trusted"); got != want {
			t.Errorf("%d repetitions: dotted %v", n, got)
		}
	}
}

func TestSeconds(t *testing.T) {
	for v, want := range map[float64]string{0: "0\u00a0s", 0.085: "85.0\u00a0ms", 0.99999: "1.00\u00a0s", 12.34: "12.3\u00a0s", 300: "300\u00a0s"} {
		if got := Seconds(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
