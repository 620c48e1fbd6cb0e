package topology

import (
	"testing"

	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

func TestAccessPointsHaveTheirOwnQueue(t *testing.T) {
	build := func(ap string) *Topology {
		t.Helper()
		e, err := spec.Parse("x.yaml", []byte(`hopbed: 1
name: ap
topology: {nodes: [{name: ap, at: [0m, 0m]`+ap+`}, {name: sta, at: [10m, 0m]}]}
mac: {queues: {be: {limit: 70}}}
flows: [{pairs: [{src: ap, dst: sta}], transport: tcp/reno}]
duration: 1s
`))
		if err != nil {
			t.Fatal(err)
		}
		top, err := Build(e.Points()[0].Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		return top
	}
	top := build("")
	if m := top.MACs(); len(m) != 1 || m[0].Queues[wifi.BE].Limit != 70 || top.Rewriting(0) != nil {
		t.Errorf("%d configurations, rewriting %v", len(m), top.Rewriting(0))
	}
	top = build(", queue: 20, window-rewriting: {}")
	m := top.MACs()
	if len(m) != 2 || m[0].Queues[wifi.BE].Limit != 20 || m[0].Queues[wifi.VO].Limit != 20 || m[1].Queues[wifi.BE].Limit != 70 {
		t.Errorf("%+v", m)
	}
	if w := top.Rewriting(0); w == nil || *w != (winrewrite.Config{Buffer: 20, Idle: 5 * vtime.Second}) || top.Rewriting(1) != nil {
		t.Errorf("%+v", w)
	}
	if w := build(", window-rewriting: {share: weighted, acks: 0.5, idle: 1s}").Rewriting(0); w == nil || *w != (winrewrite.Config{Buffer: 70, Weighted: true, Acks: 0.5, Idle: vtime.Second}) {
		t.Errorf("%+v", w)
	}
	if w := build(", window-rewriting: {enabled: false}").Rewriting(0); w != nil {
		t.Errorf("switched off: %+v", w)
	}
}
