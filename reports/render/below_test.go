package render

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
	"github.com/hopbed/hopbed/reports/stats"
)

// Warnings and reasons are sentences: they stand below their row over its
// whole width, so that no column of them lies outside the page.
func TestSentencesStandBelowTheirRow(t *testing.T) {
	one := func(rep int) *store.RunRecord {
		return &store.RunRecord{Run: store.Run{Repetition: rep, Transport: "hop", Status: store.RunComplete, Warnings: store.Strings{"the governor is powersave"}}, Flows: []store.Flow{oneFlow(0, "hop")}}
	}
	bad := one(1)
	bad.Run.Status, bad.Run.InvalidReasons = store.RunInvalid, store.Strings{"too late"}
	text := written(t, buildRuns(t, 2, bad, one(1), one(2)))
	for ext, want := range map[string][]string{
		"html": {`<tr class="below"><td class="l" colspan="5"><span>too late</span>`, `<span>warnings: the governor is powersave</span>`},
		"md":   {"- run 1: too late\n", "- runs 1, 2, 3: warnings: the governor is powersave\n"},
	} {
		for _, w := range want {
			if !strings.Contains(text[ext], w) {
				t.Errorf("%s does not have %s", ext, w)
			}
		}
	}
}

// A share of 2 % less one of 13 % are 11 percentage points less.
func TestDifferencesOfSharesAreInPoints(t *testing.T) {
	e := stats.Estimate{Value: -0.11, N: 5, HasInterval: true, Lo: -0.2, Hi: 0.05}
	if got := difference(e, "share"); got != "−11.0\u00a0pp. (−20.0 to +5.00)" {
		t.Errorf("of shares: %q", got)
	}
	if got := difference(e, "index"); got != "−0.11 (−0.20 to +0.050)" {
		t.Errorf("of an index: %q", got)
	}
}
