package backend

import (
	"net/netip"
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// A sized transfer that began before the warm-up's end could be over before
// anything is measured: it begins with the measured interval.
func TestSizedFlowsBeginWithTheMeasuredInterval(t *testing.T) {
	e, err := spec.Parse("f.yaml", []byte(`hopbed: 1
name: f
topology: {generate: {kind: chain, nodes: 2, spacing: 10m}}
flows:
  - {pairs: [{src: n01, dst: n02}], transport: hop, workload: {kind: sized, size: 1MB}}
  - {pairs: [{src: n02, dst: n01}], transport: hop}
warmup: 3s
duration: 10s
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Scenario()
	if err != nil {
		t.Fatal(err)
	}
	o := Orders(s, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) })
	rec := NewRecord(s, func(int) string { return "" })
	if o[0].Start.Seconds() != 3 || o[1].Start != 0 || rec.Flows[0].StartS != 3 || rec.Flows[1].StartS != 0 {
		t.Errorf("orders start at %v and %v, records at %v and %v; want 3 s and 0", o[0].Start, o[1].Start, rec.Flows[0].StartS, rec.Flows[1].StartS)
	}
}
