//go:build linux

package live

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/orchestrator/store"
)

// A run says that a flow over wires without a rate measured this host, and only
// then.
func TestFlowsThatNothingLimitsAreSaid(t *testing.T) {
	const free = "delay: 1ms"
	for name, c := range map[string]struct {
		first, second, transport, extra string
		idle                            bool
		want                            string
	}{
		"no rate on the way":      {first: free, second: free, transport: "tcp/cubic", want: "no link on the way has a rate (flow 0, a to c)"},
		"and a relay":             {first: free, second: free, transport: "hop-by-hop-tcp/cubic", want: "has a rate"},
		"nothing came":            {first: free, second: free, transport: "tcp/cubic", idle: true},
		"the second has one":      {first: free, second: "rate: 1mbit, queue: {packets: 9}", transport: "tcp/cubic"},
		"only the way back has":   {first: free, second: "delay: 1ms, reverse: {rate: 1mbit, queue: {packets: 9}}", transport: "tcp/cubic", want: "has a rate"},
		"one from a later time":   {first: free, second: "queue: {packets: 9}, schedule: [{at: 5s, rate: 1mbit}]", transport: "tcp/cubic"},
		"the flow has a rate":     {first: free, second: free, transport: "udp", extra: "transports: {udp: {rate: 1mbit}}\n"},
		"the flow has a window":   {first: free, second: free, transport: "tcp/cubic", extra: "transports: {tcp: {receive-window: 10}}\n"},
		"its load is given":       {first: free, second: free, transport: "tcp/cubic, workload: voip"},
		"its sender has a window": {first: free, second: free, transport: "tcp/cubic", extra: "transports: {tcp: {cwnd-cap: 10}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenarioOf(t, `hopbed: 1
name: free
topology:
  nodes: [{name: a, radio: false}, {name: b, radio: false}, {name: c, radio: false}]
  pipes:
    - {ends: [a, b], `+c.first+`}
    - {ends: [b, c], `+c.second+`}
flows: [{pairs: [{src: a, dst: c}], transport: `+c.transport+`}]
warmup: 1s
duration: 10s
`+c.extra)
			rec := &store.RunRecord{Nodes: []store.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Flows: []store.Flow{{Bytes: 1}}}
			if c.idle {
				rec.Flows[0].Bytes = 0
			}
			judgeUnlimited(rec, s)
			switch got := strings.Join(rec.Run.Warnings, "; "); {
			case c.want == "" && got != "":
				t.Errorf("a warning: %s", got)
			case !strings.Contains(got, c.want):
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	two := scenarioOf(t, `hopbed: 1
name: free
topology: {nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b], delay: 1ms}]}
flows: [{pairs: [{src: a, dst: b}, {src: b, dst: a}], transport: tcp/cubic}]
warmup: 1s
duration: 10s
`)
	rec := &store.RunRecord{Nodes: []store.Node{{Name: "a"}, {Name: "b"}}, Flows: []store.Flow{{Bytes: 1}, {Bytes: 1}}}
	if judgeUnlimited(rec, two); len(rec.Run.Warnings) != 1 || !strings.Contains(rec.Run.Warnings[0], "2 flows, the first is flow 0, a to b") {
		t.Errorf("two flows: %v", rec.Run.Warnings)
	}
	s := scenario(t) // over the air
	rec = &store.RunRecord{Nodes: []store.Node{{}, {}, {}}, Flows: []store.Flow{{Bytes: 1}, {Bytes: 1}}}
	if judgeUnlimited(rec, s); len(rec.Run.Warnings) != 0 {
		t.Errorf("over the air: %v", rec.Run.Warnings)
	}
}
