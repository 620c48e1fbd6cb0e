package sim

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

func survey(t *testing.T, text string) (*plan.Scenario, *etx.Survey) {
	t.Helper()
	e, err := spec.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Build(e).Runs[0].Probing()
	if err != nil {
		t.Fatal(err)
	}
	got, err := New().Probe(context.Background(), s, func(string, vtime.Duration, vtime.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	return s, got
}

// TestProbesMeasureListedLinks: a link that is listed with a delivery delivers
// that share of the probes, in either direction, whatever their size.
func TestProbesMeasureListedLinks(t *testing.T) {
	_, got := survey(t, `hopbed: 1
name: m
topology:
  nodes: [{name: a}, {name: b}, {name: c}, {name: w, radio: false}]
  links: [{from: a, to: b, delivery: 90%, reverse: 60%}, {from: b, to: c, delivery: 100%, reverse: 0%}]
  pipes: [{ends: [c, w], delay: 1ms}]
routing: {kind: measured, probes: 1000, period: 100ms}
flows: [{pairs: [{src: a, dst: b}], transport: hop}]
duration: 10s
`)
	rated, err := got.Rate(etx.Rating{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Mute, []int{3}) || len(rated) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []float64{0.9, 0.6, 1} {
		// Hidden senders take a little more: a and c do not hear each other.
		if d := rated[i].Delivery; d > want+4*math.Sqrt(want*(1-want)/1000) || d < want-0.02-4*math.Sqrt(want*(1-want)/1000) {
			t.Errorf("%d→%d delivers %v, want %v", rated[i].From, rated[i].To, d, want)
		}
	}
	pairs := etx.Pairs(rated, 0.1)
	if len(pairs) != 2 || !pairs[0].Usable || !pairs[0].Asymmetric() || !pairs[1].OneWay() || pairs[1].Usable {
		t.Errorf("%+v", pairs)
	}
}

// TestProbesAreShorterAndSlowerThanData: the difference that measured ETX has
// (De Couto et al. found it for their larger packets), and that size and rate take away.
func TestProbesAreShorterAndSlowerThanData(t *testing.T) {
	const text = `hopbed: 1
name: m
topology: {generate: {kind: chain, nodes: 2, spacing: 80m}}
radio: {path-loss: {shadowing: 0dB}}
routing: {kind: measured, probes: 1000, period: 100ms%s}
flows: [{pairs: [{src: n01, dst: n02}], transport: hop}]
duration: 10s
`
	deliver := func(more string) (measured, model float64) {
		s, got := survey(t, fmt.Sprintf(text, more))
		rated, err := got.Rate(etx.Rating{})
		if err != nil || len(rated) != 2 {
			t.Fatalf("%+v, %v", rated, err)
		}
		if s.Config().Radio.BasicRate != s.Topology.MAC.BasicRate {
			t.Errorf("basic rate %v in the config, %v in the medium", s.Config().Radio.BasicRate, s.Topology.MAC.BasicRate)
		}
		for _, l := range s.Topology.Links {
			if l.From == 0 {
				model = l.Delivery
			}
		}
		return rated[0].Delivery, model
	}
	short, data := deliver("")
	like, _ := deliver(", size: 1500B, rate: 11mbit")
	t.Logf("data frames %.3f; probes %.3f; of their size and rate %.3f", data, short, like)
	if data > 0.9 || data < 0.3 {
		t.Fatalf("the link delivers %v of the data: choose another spacing", data)
	}
	if short < data+0.1 {
		t.Errorf("short probes at the basic rate: %v, data %v", short, data)
	}
	if math.Abs(like-data) > 4*math.Sqrt(data*(1-data)/1000) {
		t.Errorf("probes like data: %v, data %v", like, data)
	}
}

func TestEqualScenariosGiveEqualSurveys(t *testing.T) {
	const text = `hopbed: 1
name: m
topology: {generate: {kind: random-mesh, nodes: 8, area: [60m, 60m]}}
routing: {kind: measured, probes: 50}
flows: [{pairs: random, count: 2, transport: hop}]
duration: 10s
`
	_, a := survey(t, text)
	_, b := survey(t, text)
	if !reflect.DeepEqual(a, b) || len(a.Heard) == 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
}
