package topology

import (
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
)

// A random offset is another one in each repetition, the same at all points of a
// repetition, and the same share of both directions' traces.
func TestRandomOffsets(t *testing.T) {
	e, err := spec.Parse("x.yaml", []byte(`
hopbed: 1
name: x
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}]
  pipes: [{ends: [a, b], queue: {packets: $q}, trace: {generate: hsdpa, length: 20s, random-offset: true},
    reverse: {trace: {generate: e-dch, length: 10s, random-offset: true}}}]
flows: [{pairs: [{src: a, dst: b}], transport: $transport}]
matrix: {q: [100, 300], transport: [tcp/reno, tcp/cubic]}
duration: 5s
`))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[vtime.Duration]bool{}
	for rep := range 5 {
		var first [2]vtime.Duration
		for i, p := range e.Points() {
			net, err := Build(p.Config, rep)
			if err != nil {
				t.Fatal(err)
			}
			c := net.Pipes[0].Config
			got := [2]vtime.Duration{c[0].TraceOffset, c[1].TraceOffset}
			if i == 0 {
				first = got
			}
			if got != first {
				t.Errorf("repetition %d, %s: offsets %v, elsewhere %v", rep, p.Label(), got, first)
			}
			a, b := got[0].Seconds()/c[0].Trace.Period().Seconds(), got[1].Seconds()/c[1].Trace.Period().Seconds()
			if d := a - b; a < 0 || a >= 1 || d > 1e-3 || d < -1e-3 {
				t.Errorf("repetition %d: %v and %v of the traces", rep, a, b)
			}
		}
		if seen[first[0]] {
			t.Errorf("repetition %d begins where another one does, at %v", rep, first[0])
		}
		seen[first[0]] = true
	}
}
