package figure

import (
	"math"

	"github.com/hopbed/hopbed/reports/stats"
)

// Measure is what the flows of a figure are compared by.
type Measure struct {
	name   string // of columns, "goodput"
	unit   string // of columns, "bps"
	noun   string // of texts
	sign   string // the unit in texts, "b/s"
	format func(float64) string
	mark   float64 // a threshold to draw, 0 for none
}

// Goodput is in b/s, more is better; the threshold of starvation is marked.
var Goodput = Measure{name: "goodput", unit: "bps", sign: "b/s", noun: "goodput", format: Rate, mark: stats.StarvedBelowBps}

// Completion is the time of sized flows in seconds, less is better.
var Completion = Measure{name: "completion", unit: "s", sign: "s", noun: "completion time", format: Seconds}

// Delay is that of messages in seconds, less is better.
var Delay = Measure{name: "delay", unit: "s", sign: "s", noun: "delay", format: Seconds}

// of is what a share of the values is a share of.
func (m *Measure) of() string {
	if m.name == Delay.name {
		return "messages"
	}
	return "flows"
}

func (m *Measure) axis() string { return m.noun + " (" + m.sign + ")" }

// shown is what an axis must show of the values and of the measure.
func (m *Measure) shown(v []float64) []float64 {
	if m.mark > 0 {
		return append(append([]float64(nil), v...), m.mark)
	}
	return v
}

// Seconds writes a time with three significant digits: "12.3 s", "85.0 ms".
func Seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return "–"
	case s > 0 && s < 0.9995:
		return digits(1000*s) + "\u00a0ms"
	}
	return digits(s) + "\u00a0s"
}
