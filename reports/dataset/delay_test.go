package dataset

import (
	"math"
	"testing"
)

// A repetition in which nothing arrived has no finite delay, and stays in the
// median.
func TestDelaysOfLostMessages(t *testing.T) {
	d := Delays{Reps: []RepDelays{
		{Repetition: 1, Delivered: []float64{1, 2, 3}},
		{Repetition: 2, Delivered: []float64{4, 6}, Lost: 2},
		{Repetition: 3, Lost: 5},
		{Repetition: 4}, // no message became ready
	}}
	if n, lost := d.Messages(); n != 12 || lost != 7 {
		t.Errorf("%d messages, %d lost", n, lost)
	}
	if e := d.Quantile(0.5, 1); e.Value != 5 || e.N != 3 {
		t.Errorf("the median of 2, 5 and never is %+v", e)
	}
	if e := d.LostShare(1); e.Value != 0.5 || e.N != 3 {
		t.Errorf("the median of 0, a half and 1 is %+v", e)
	}
	d.Reps = d.Reps[2:3]
	if e := d.Quantile(0.5, 1); !math.IsInf(e.Value, 1) {
		t.Errorf("nothing arrived, and the median delay is %v", e.Value)
	}
	if e := d.OfSpeech(1, func(s *Speech) float64 { return s.MOS }); e.N != 0 || !math.IsNaN(e.Value) || d.HasSpeech() {
		t.Errorf("nobody spoke: %+v", e)
	}
}
