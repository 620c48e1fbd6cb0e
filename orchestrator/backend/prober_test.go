package backend

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestSurveyed(t *testing.T) {
	top := &topology.Topology{Nodes: []topology.Node{{Name: "a", Radio: true}, {Name: "b", Radio: true}, {Name: "wired"}}}
	heard := func() []*proto.Heard {
		return []*proto.Heard{
			{Node: 0, Sent: 5, From: []proto.HeardFrom{{Node: 1, Received: 2, Last: 3, Missing: []int{0, 1}}}},
			{Node: 1, Sent: 5, From: []proto.HeardFrom{{Node: 0, Received: 5, Last: 4}}},
			nil,
		}
	}
	got, err := Surveyed(top, 5, heard())
	want := &etx.Survey{Nodes: 3, Probes: 5, Mute: []int{2}, Heard: []etx.Heard{{From: 1, To: 0, Received: 2, Lost: []int{0, 1, 4}}, {From: 0, To: 1, Received: 5, Lost: []int{}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for name, c := range map[string]struct {
		change func([]*proto.Heard) []*proto.Heard
		want   string
	}{
		"one sent less":   {func(h []*proto.Heard) []*proto.Heard { h[1].Sent = 4; return h }, "node b sent 4 of its 5 probes"},
		"one is silent":   {func(h []*proto.Heard) []*proto.Heard { h[0] = nil; return h }, "node a said nothing"},
		"one is missing":  {func(h []*proto.Heard) []*proto.Heard { return h[:2] }, "2 nodes answered of 3"},
		"of nobody":       {func(h []*proto.Heard) []*proto.Heard { h[0].From[0].Node = 7; return h }, "node 7"},
		"of a mute node":  {func(h []*proto.Heard) []*proto.Heard { h[0].From[0].Node = 2; return h }, "took no part"},
		"more than sent":  {func(h []*proto.Heard) []*proto.Heard { h[1].From[0].Received = 6; return h }, "6 received"},
		"does not add up": {func(h []*proto.Heard) []*proto.Heard { h[0].From[0].Missing[1] = 0; return h }, "number 0 after 0"},
	} {
		if _, err := Surveyed(top, 5, c.change(heard())); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	h := heard()
	h[0].From[0].Missing = nil // a report that was cut
	if got, err := Surveyed(top, 5, h); err != nil || got.Heard[0].Lost != nil || got.Heard[0].Received != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Probes of a host that was too busy measure the host.
func TestLateProbesSpoilAMeasurement(t *testing.T) {
	top := &topology.Topology{Nodes: []topology.Node{{Name: "a", Radio: true}, {Name: "b", Radio: true}, {Name: "wired"}}}
	heard := []*proto.Heard{{Sent: 100, Late: 5, LateMax: 9 * vtime.Second}, {Sent: 100, Late: 2}, nil}
	if r := LateProbes(top, heard); r != nil {
		t.Errorf("5 %% of one node: %q", r)
	}
	heard[1].Late, heard[1].LateMax = 31, 800*vtime.Millisecond
	heard[0].Late = 7
	if r := LateProbes(top, heard); len(r) != 1 || !strings.Contains(r[0], "node b sent 31 of its 100 probes more than 5ms late, up to 800ms") {
		t.Errorf("31 %% of one node: %q", r)
	}
}
