package render

import (
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/dataset"
)

// A report says where measured routes come from, and nothing of others.
func TestMeasuredRoutesAreSaid(t *testing.T) {
	s := &Section{Set: &dataset.Set{}}
	if got := s.routes(); got != "" {
		t.Errorf("routes of the model: %q", got)
	}
	s.Set.Surveys = []store.Survey{{Probes: 100, Size: 134, Rate: 2_000_000, PeriodS: 1}}
	if got, want := s.routes(), "over the links of the network as measured before the first run: 100 probes of 134 B at 2.00\u00a0Mb/s from each node, one every 1 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Set.Surveys = append(s.Set.Surveys, s.Set.Surveys[0])
	if got, want := s.routes(), "over the links of each of 2 networks as measured before the first run: 100 probes of 134 B at 2.00\u00a0Mb/s from each node, one every 1 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
