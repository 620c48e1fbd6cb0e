package run

import (
	"errors"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

const recordedText = `hopbed: 1
name: x
topology: {generate: {kind: chain, nodes: 3, spacing: 20m}}
flows: [{pairs: [{src: n01, dst: n03}], transport: $transport}]
matrix: {transport: [hop, tcp/cubic]}
repeat: 5
duration: 10s
quick: {duration: 2s}
`

// TestRecordedIsWhatWasRun: what the database keeps gives the experiment again,
// with every change of the command line.
func TestRecordedIsWhatWasRun(t *testing.T) {
	for name, change := range map[string]func(e *spec.Experiment) error{
		"as it is": func(*spec.Experiment) error { return nil },
		"quick":    (*spec.Experiment).ApplyQuick,
		"set": func(e *spec.Experiment) error {
			return e.Set(spec.Assignment{Key: "repeat", Value: "2"}, spec.Assignment{Key: "matrix.transport", Value: "[hop]"})
		},
		"both": func(e *spec.Experiment) error {
			return errors.Join(e.ApplyQuick(), e.Set(spec.Assignment{Key: "radio.rate", Value: "2mbit"}))
		},
	} {
		e, err := spec.Parse("x", []byte(recordedText))
		if err != nil {
			t.Fatal(err)
		}
		if err := change(e); err != nil {
			t.Fatal(err)
		}
		got, err := Recorded("x", Text(e), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if Text(got) != Text(e) || got.Quick != e.Quick || len(got.Points()) != len(e.Points()) || got.Base().Duration != e.Base().Duration || got.Base().Repeat != e.Base().Repeat {
			t.Errorf("%s: %d points of %v", name, len(got.Points()), got.Base().Duration)
		}
	}
}

func TestAFileThatChangedIsNoReproduction(t *testing.T) {
	text := recordedText + "# with the file \"trace\", sha256 00\n"
	if _, err := Recorded("x", text, nil); !errors.Is(err, ErrOtherFiles) {
		t.Errorf("got %v", err)
	}
	if _, err := Recorded("x", "nonsense: 1\n", nil); err == nil {
		t.Error("what is no experiment is taken for one")
	}
}
