package topology

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/experiments/etx"
)

// probed rates a survey of 100 probes: heard[i][j] of i's arrived at j.
func probed(t *testing.T, n int, heard map[[2]int]int, least float64) []etx.Pair {
	t.Helper()
	s := etx.Survey{Nodes: n, Probes: 100}
	for at, k := range heard {
		s.Heard = append(s.Heard, etx.Heard{From: at[0], To: at[1], Received: k})
	}
	rated, err := s.Rate(etx.Rating{})
	if err != nil {
		t.Fatal(err)
	}
	return etx.Pairs(rated, least)
}

// TestRoutesGoOverMeasuredLinks: the medium and the places stay those of the
// model; the routes are of the probes alone, whatever the model thinks.
func TestRoutesGoOverMeasuredLinks(t *testing.T) {
	c := config(t, "{generate: {kind: chain, nodes: 4, spacing: 200m}}", oneFlow, disk) // neighbours hear each other
	model := build(t, c, 0)
	if model.Routes.Hops(0, 2) != 2 {
		t.Fatalf("the model has %d hops", model.Routes.Hops(0, 2))
	}
	// 0 and 2 hear each other, 1 and 2 do not; 2 to 3 is one-way.
	pairs := probed(t, 4, map[[2]int]int{{0, 1}: 90, {1, 0}: 80, {0, 2}: 50, {2, 0}: 100, {2, 3}: 99}, 0.1)
	m, err := BuildOn(Ground{Measured: true, Pairs: pairs}, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Routes.Path(1, 2), []int{1, 0, 2}) || m.Routes.Hops(0, 3) != etx.Unreachable || m.Routes.Cost(1, 2) != 1.388889+2 {
		t.Errorf("1→2 by %v at %v, 0→3 in %d hops", m.Routes.Path(1, 2), m.Routes.Cost(1, 2), m.Routes.Hops(0, 3))
	}
	if m.ChannelSeed != model.ChannelSeed || !reflect.DeepEqual(m.Nodes, model.Nodes) || m.Channel == nil {
		t.Error("the medium is not the model's")
	}
	if _, ok := m.Egress(1, 2); ok {
		t.Error("1 and 2 are neighbours")
	}
	if e, ok := m.Egress(0, 2); !ok || e.Next != 2 {
		t.Errorf("0 to 2 leaves by %+v, %v", e, ok)
	}
	at := map[[2]int]Link{}
	for i, l := range m.Links {
		if i > 0 && (m.Links[i-1].From > l.From || m.Links[i-1].From == l.From && m.Links[i-1].To >= l.To) {
			t.Errorf("link %d is out of order", i)
		}
		at[[2]int{l.From, l.To}] = l
	}
	if l := at[[2]int{1, 0}]; l.Delivery != 0.8 || l.Reverse != 0.9 || math.Abs(l.ETX-1/0.72) > 1e-12 || !l.Usable || l.Measured.Received != 80 || !l.Senses {
		t.Errorf("1→0 %+v", l)
	}
	if l := at[[2]int{2, 3}]; l.Usable || !math.IsInf(l.ETX, 1) || l.Delivery != 0.99 {
		t.Errorf("the one-way link %+v", l)
	}
	if l := at[[2]int{1, 2}]; l.Usable || l.Measured != nil || l.Delivery != 0 || !l.Senses {
		t.Errorf("the link that was not heard %+v", l)
	}
	if l, ok := at[[2]int{0, 2}]; !ok || l.Distance != 400 || !l.Usable {
		t.Errorf("the link that the model lacks %+v", l)
	}
	for _, bad := range []map[[2]int]int{{{0, 4}: 5}, {{5, 0}: 5}} {
		if _, err := BuildOn(Ground{Measured: true, Pairs: probed(t, 6, bad, 0.1)}, c, 0); err == nil || !strings.Contains(err.Error(), "4 nodes") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestWiresStayBesideMeasuredLinks: they are not measured.
func TestWiresStayBesideMeasuredLinks(t *testing.T) {
	c := config(t, accessPoint(""), toStation, disk)
	n := len(build(t, c, 0).Nodes)
	heard := map[[2]int]int{}
	for i := range n {
		for j := range n {
			if i != j && build(t, c, 0).Nodes[i].Radio && build(t, c, 0).Nodes[j].Radio {
				heard[[2]int{i, j}] = 100
			}
		}
	}
	m, err := BuildOn(Ground{Measured: true, Pairs: probed(t, n, heard, 0.1)}, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if parts := m.apart(); parts != "" {
		t.Errorf("the wire is gone: %s", parts)
	}
	var mute int
	for i := range m.Nodes {
		if !m.Nodes[i].Radio {
			mute = i
		}
	}
	if _, err := BuildOn(Ground{Measured: true, Pairs: probed(t, n, map[[2]int]int{{mute, (mute + 1) % n}: 9}, 0.1)}, c, 0); err == nil || !strings.Contains(err.Error(), "no radio") {
		t.Errorf("a measured link of a wired node: %v", err)
	}
}

func TestRealNodesHaveNoModel(t *testing.T) {
	c := config(t, "{generate: {kind: chain, nodes: 3, spacing: 200m}}", oneFlow, disk)
	if _, err := BuildOn(Ground{Real: true}, c, 0); !errors.Is(err, ErrNoLinks) {
		t.Errorf("without links: %v", err)
	}
	m, err := BuildOn(Ground{Real: true, Measured: true, Pairs: probed(t, 3, map[[2]int]int{{0, 2}: 50, {2, 0}: 100}, 0.1)}, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m.Channel != nil || len(m.Links) != 2 || m.Routes.Hops(0, 2) != 1 || m.Routes.Hops(0, 1) != etx.Unreachable || m.Nodes[1].Name != "n02" {
		t.Errorf("%+v", m)
	}
	listed := config(t, "{nodes: [{name: a}, {name: b}, {name: c}], links: [{from: c, to: a, delivery: 80%, reverse: 50%}, {from: a, to: b, delivery: 5%}]}", oneFlow, "")
	m, err = BuildOn(Ground{Real: true}, listed, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m.Channel != nil || m.Delivery != nil || len(m.Links) != 4 || m.Links[0].To != 1 || m.Links[0].Usable || m.Links[1].Delivery != 0.5 || m.Links[1].Reverse != 0.8 || m.Routes.Cost(0, 2) != 2.5 {
		t.Errorf("%+v", m.Links)
	}
}
