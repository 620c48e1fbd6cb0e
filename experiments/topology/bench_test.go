package topology

import (
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
)

func BenchmarkRandomMesh(b *testing.B) {
	e, err := spec.Parse("x", []byte(`hopbed: 1
name: x
topology: {generate: {kind: random-mesh, nodes: 20, area: [240m, 60m]}}
radio: {path-loss: {exponent: 3.0, shadowing: 7dB, reference-loss: 40dB}, tx-power: 0dBm, sense: -7dB}
flows: [{count: 30, pairs: random, hops: {2: 30%, 3: 30%, 4: 10%, 5: 20%, 7: 10%}, transport: hop}]
duration: 10s
seed: 2009
`))
	if err != nil {
		b.Fatal(err)
	}
	tries := 0
	for i := 0; b.Loop(); i++ {
		t, err := Build(e.Base(), i%5)
		if err != nil {
			b.Fatal(err)
		}
		tries += t.Tries
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(tries), "µs/placement")
}
