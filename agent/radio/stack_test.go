package radio_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/agent/undo"
)

// undoAll carries out records on this host, the newest first.
func undoAll(t *testing.T, records []undo.Record) error {
	t.Helper()
	var failed []error
	for _, r := range slices.Backward(records) {
		var argv []string
		if err := json.Unmarshal(r.Data, &argv); err != nil {
			t.Fatal(err)
		}
		if _, err := radio.System().Run(t.Context(), argv, ""); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
