package figure

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	// Two triangles that one link joins, and a node alone.
	links := []MapLink{{A: 0, B: 1, Delivery: 1}, {A: 1, B: 2, Delivery: 1}, {A: 0, B: 2, Delivery: 1}, {A: 3, B: 4, Delivery: 1}, {A: 4, B: 5, Delivery: 1}, {A: 3, B: 5, Delivery: 1}, {A: 2, B: 3, Delivery: 1}}
	x, y := Spread(7, links)
	x2, y2 := Spread(7, links)
	if !reflect.DeepEqual(x, x2) || !reflect.DeepEqual(y, y2) {
		t.Error("the same network looks different")
	}
	d := func(i, j int) float64 { return math.Hypot(x[i]-x[j], y[i]-y[j]) }
	if d(0, 1) > d(0, 4) || d(4, 5) > d(1, 5) || d(0, 4) < 1.5*d(0, 1) {
		t.Errorf("joined %v and %v, apart %v and %v", d(0, 1), d(4, 5), d(0, 4), d(1, 5))
	}
	for i := range 7 {
		for j := range i {
			if !(d(i, j) > 0.1) || d(i, j) > 20 {
				t.Errorf("nodes %d and %d are %v apart", i, j, d(i, j))
			}
		}
	}
	if x, y := Spread(0, nil); len(x)+len(y) != 0 {
		t.Error("nodes of nothing")
	}
}

func TestASpreadMapHasNoScale(t *testing.T) {
	m := Map{Spread: true, Caption: "An imported mesh.", Links: []MapLink{{A: 0, B: 1, Delivery: 0.3, Routed: true}}}
	m.Nodes = []MapNode{{Name: "a", Placed: true}, {Name: "b", XM: 100, Placed: true}}
	svg := Topology("x", m).SVG()
	if !bytes.Contains(svg, []byte("An imported mesh.")) || !strings.Contains(string(svg), "positions mean nothing: nodes with good links stand close") {
		t.Errorf("%s", svg)
	}
	m.Spread = false
	if svg := Topology("x", m).SVG(); bytes.Contains(svg, []byte("positions mean nothing")) {
		t.Error("a map with positions says that they mean nothing")
	}
}
