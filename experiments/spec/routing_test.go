package spec

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/netem/vtime"
)

const routed = `hopbed: 1
name: r
topology: {generate: {kind: chain, nodes: 3, spacing: 20m}}
flows: [{pairs: random, count: 1, transport: hop}]
duration: 10s
`

func TestMeasuredRouting(t *testing.T) {
	e, err := Parse("r", []byte(routed+"routing: {kind: measured}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := e.Base().Routing
	if r.Kind != RoutingMeasured || r.Probes != 100 || r.Period != vtime.Second || r.Size != 134 || r.Window != 0 || r.Hysteresis != nil || e.Base().ProbeRate() != 2*vtime.MbitPerSecond {
		t.Errorf("the defaults are %+v at %v", r, e.Base().ProbeRate())
	}
	e, err = Parse("r", []byte(routed+"routing: {kind: measured, probes: 200, period: 500ms, size: 1500B, rate: 11mbit, window: 100, hysteresis: {low: 20%}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r = e.Base().Routing
	if r.Probes != 200 || r.Window != 100 || e.Base().ProbeRate() != 11*vtime.MbitPerSecond || *r.Hysteresis != (Hysteresis{0.5, 0.8, 0.2}) {
		t.Errorf("%+v, hysteresis %+v", r, r.Hysteresis)
	}
	for in, want := range map[string]string{
		"probes: 50":                                      "has no meaning here: static routes are computed",
		"kind: measured, window: 101":                     "more than the 100 probes",
		"kind: measured, rate: 24mbit":                    "not a rate of 802.11b",
		"kind: measured, size: 40B":                       "48B",
		"kind: measured, hysteresis: {low: 80%}":          "low: 80% is not below high: 80%",
		"kind: measured, period: 1ms":                     "10ms",
		"kind: measured, probes: 2000":                    "10 to 1000",
		"kind: olsr":                                      "static, measured",
		"hysteresis: {low: 20%}":                          "has no meaning here",
		"kind: measured, hysteresis: {low: 20%, lof: 2%}": "lof",
	} {
		_, err := Parse("r", []byte(routed+"routing: {"+in+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	wired := strings.Replace(routed, "{generate: {kind: chain, nodes: 3, spacing: 20m}}", "{nodes: [{name: a, radio: false}, {name: b, radio: false}], pipes: [{ends: [a, b]}]}", 1)
	if _, err := Parse("r", []byte(wired+"routing: {kind: measured}\n")); err == nil || !strings.Contains(err.Error(), "wires are not measured") {
		t.Errorf("wires alone: %v", err)
	}
}
