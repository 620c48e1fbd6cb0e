package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

func parse(t *testing.T, text string) *Plan {
	t.Helper()
	e, err := spec.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Build(e)
}

const chainOf3 = `hopbed: 1
name: m
topology: {generate: {kind: chain, nodes: 3, spacing: 200m, vary: $vary}}
radio: {path-loss: {kind: disk, range: 250m}}
routing: {kind: measured, metric: $metric}
flows: [{pairs: [{src: n01, dst: n03}], transport: $transport}]
matrix: {vary: [repetition, never], metric: [etx, hops], transport: [hop, tcp/reno]}
repeat: 3
duration: 10s
`

// Points that differ in nothing that a link depends on share a measurement.
func TestSurveysAreOfDifferentNetworks(t *testing.T) {
	p := parse(t, chainOf3)
	s := p.Surveys()
	if len(s) != 3+1 {
		t.Fatalf("%d networks of %d runs", len(s), len(p.Runs))
	}
	total := 0
	for _, n := range s {
		total += n.Runs
		if n.Key != n.Run.NetworkKey() || !n.Run.Unmeasured() {
			t.Errorf("%+v", n)
		}
	}
	if total != len(p.Runs) || s[0].Runs != 4 || s[1].Runs != 12 {
		t.Errorf("%d of %d runs; %+v", total, len(p.Runs), s)
	}
	if got := parse(t, `hopbed: 1
name: m
topology: {nodes: [{name: a}, {name: b}], links: [{from: a, to: b}]}
flows: [{pairs: [{src: a, dst: b}], transport: hop}]
duration: 10s
`).Surveys(); got != nil {
		t.Errorf("a plan of static routes wants %d measured", len(got))
	}
}

// A lab of real nodes is one network, whatever the model would make of the file: its
// routes are the same in all repetitions. What is set at its radios makes another one.
func TestRealNodesAreOneNetwork(t *testing.T) {
	for _, c := range []struct {
		nodes, rate, capture, transport string
		matrix                          string
		want                            int
	}{
		{"8", "11mbit", "10dB", "$x", "x: [hop, tcp/reno]", 1},
		{"8", "11mbit", "$x", "hop", "x: [3dB, 10dB]", 1},
		{"8", "$x", "10dB", "hop", "x: [2mbit, 11mbit]", 2},
		{"$x", "11mbit", "10dB", "hop", "x: [8, 9]", 2},
	} {
		p := parse(t, fmt.Sprintf(`hopbed: 1
name: m
topology: {generate: {kind: random-mesh, nodes: %s, area: [400m, 400m]}}
radio: {rate: %s, capture: %s, path-loss: {kind: disk, range: 250m}}
flows: [{count: 2, pairs: random, transport: %s}]
matrix: {%s}
repeat: 3
duration: 10s
`, c.nodes, c.rate, c.capture, c.transport, c.matrix))
		if got := len(p.Real().Measure().Surveys()); got != c.want {
			t.Errorf("%s: %d networks of real nodes, want %d", c.matrix, got, c.want)
		}
		if got := len(p.Measure().Surveys()); got < 3 {
			t.Errorf("%s: %d networks of the model, which places anew in each of 3 repetitions", c.matrix, got)
		}
	}
}

func TestRunsGoOverWhatWasMeasured(t *testing.T) {
	p := parse(t, chainOf3)
	links := map[string]*etx.Survey{}
	for i, n := range p.Surveys() {
		s := &etx.Survey{Nodes: 3, Probes: 10, Heard: []etx.Heard{{From: 0, To: 1, Received: 10}, {From: 1, To: 0, Received: 10}, {From: 1, To: 2, Received: 10}, {From: 2, To: 1, Received: 10}}}
		if i == 0 {
			s.Heard = append(s.Heard, etx.Heard{From: 0, To: 2, Received: 9}, etx.Heard{From: 2, To: 0, Received: 9})
		}
		links[n.Key] = s
	}
	q := p.WithLinks(links)
	for i, r := range q.Runs {
		s, err := r.Scenario()
		if err != nil {
			t.Fatal(err)
		}
		want := 2
		if r.NetworkKey() == p.Surveys()[0].Key {
			want = 1
		}
		if got := s.Flows[0].Hops(); got != want || r.Unmeasured() || r.Surveyed() == nil {
			t.Errorf("run %d: %d hops, want %d", i, got, want)
		}
		if !p.Runs[i].Unmeasured() {
			t.Error("the plan itself was changed")
		}
	}
	// Before, it goes by the model.
	if s, err := p.Runs[0].Scenario(); err != nil || s.Flows[0].Hops() != 2 {
		t.Errorf("unmeasured: %+v, %v", s, err)
	}
}

func TestRealNodesAreMeasured(t *testing.T) {
	p := parse(t, `hopbed: 1
name: m
topology: {nodes: [{name: a}, {name: b}], links: [{from: a, to: b}]}
flows: [{pairs: [{src: a, dst: b}], transport: hop}]
duration: 10s
`)
	if s, err := p.Real().Runs[0].Scenario(); err != nil || s.Topology.Channel != nil || s.Flows[0].Hops() != 1 {
		t.Errorf("listed links: %v", err)
	}
	m := p.Real().Measure()
	if p.Runs[0].Measured() || !m.Runs[0].Unmeasured() || len(m.Surveys()) != 1 {
		t.Error("not measured")
	}
	n, err := m.Runs[0].Network()
	if err != nil || len(n.Topology.Nodes) != 2 || len(n.Topology.Links) != 0 || n.Flows != nil {
		t.Errorf("%+v, %v", n, err)
	}
	if s, err := m.WithLinks(map[string]*etx.Survey{m.Surveys()[0].Key: {Nodes: 2, Probes: 10, Heard: []etx.Heard{{From: 0, To: 1, Received: 5}}}}).Runs[0].Scenario(); err == nil {
		t.Errorf("a link of one direction carries %v", s.Flows)
	}
	bare := parse(t, chainOf3).Real()
	i := slices.IndexFunc(bare.Runs, Run.Unmeasured)
	if _, err := bare.Runs[i].Scenario(); !errors.Is(err, topology.ErrNoLinks) {
		t.Errorf("nothing known: %v", err)
	}
}

func TestWarningsOfMeasuring(t *testing.T) {
	warn := func(routing string) []string {
		p := parse(t, `hopbed: 1
name: m
topology: {generate: {kind: chain, nodes: 30, spacing: 20m}}
routing: {`+routing+`}
flows: [{pairs: random, count: 1, transport: hop}]
duration: 10s
`)
		return surveyWarnings(p.Runs[0].Config())
	}
	for routing, want := range map[string]string{
		"kind: static":                                          "",
		"kind: measured":                                        "",
		"kind: measured, period: 200ms":                         "134B at 2mbit from 30 nodes take up to 18 %",
		"kind: measured, size: 1500B":                           "take up to 20 %",
		"kind: measured, size: 1500B, rate: 11mbit":             "take up to 5 %",
		"kind: measured, probes: 20":                            "20 probes leave a delivery of 50 % anywhere between 30 % and 70 %",
		"kind: measured, probes: 1000, window: 20":              "20 probes leave a delivery of 50 % anywhere between 30 % and 70 %",
		"kind: measured, size: 1500B, rate: 11mbit, period: 2s": "",
	} {
		got := strings.Join(warn(routing), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", routing, got, want)
		}
	}
	p := parse(t, chainOf3)
	if n, d := p.SurveyTime(); n != 4 || d != 400*vtime.Second {
		t.Errorf("%d networks, %v", n, d)
	}
	if w := p.WallTime(0); w != (24*10+400)*time.Second {
		t.Errorf("the whole takes %v for %d runs", w, len(p.Runs))
	}
}
