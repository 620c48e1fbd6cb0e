//go:build linux

package session

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

func TestCheckSwitches(t *testing.T) {
	const second = vtime.Time(vtime.Second)
	for _, c := range []struct {
		name     string
		switches []proto.Switch
		flow     proto.Flow
		want     string
	}{
		{"none", nil, proto.Flow{Src: 1, Dst: 2}, ""},
		{"off and on", []proto.Switch{{T: second}, {T: 2 * second, Up: true}, {T: 3 * second}}, proto.Flow{Src: 0, Dst: 2}, ""},
		{"on at first", []proto.Switch{{T: second, Up: true}}, proto.Flow{Src: 0, Dst: 2}, "in that state already"},
		{"off twice", []proto.Switch{{T: second}, {T: 2 * second}}, proto.Flow{Src: 0, Dst: 2}, "in that state already"},
		{"not ascending", []proto.Switch{{T: second}, {T: second, Up: true}}, proto.Flow{Src: 0, Dst: 2}, "not after"},
		{"an end", []proto.Switch{{T: second}}, proto.Flow{Src: 0, Dst: 1}, "begins or ends"},
	} {
		err := checkSwitches(&proto.Configure{Node: 1, Name: "n02", Switches: c.switches, Flows: []proto.Flow{c.flow}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
