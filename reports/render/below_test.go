package render

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
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
