//go:build linux

package live

import (
	"strings"
	"testing"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// TestJudgeSwitches: every change of a node has to be carried out, in time and
// without an error.
func TestJudgeSwitches(t *testing.T) {
	const second = vtime.Time(vtime.Second)
	top := &topology.Topology{Changes: []topology.Change{
		{At: second, Link: [2]int{0, 1}}, {At: 2 * second, Link: [2]int{1, 1}}, {At: 3 * second, Link: [2]int{1, 1}, Up: true}, {At: 9 * second, Link: [2]int{1, 1}},
	}}
	if w := switches(top, 1); len(w) != 3 || w[0] != (proto.Switch{T: 2 * second}) || w[1] != (proto.Switch{T: 3 * second, Up: true}) || switches(top, 0) != nil {
		t.Errorf("switches %+v and %+v", w, switches(top, 0))
	}
	if c := emulatorChanges(top); len(c) != 4 || c[2] != (emulator.Change{At: 3 * second, Link: [2]int{1, 1}, Up: true}) {
		t.Errorf("changes %+v", c)
	}
	for name, c := range map[string]struct {
		change func(*proto.NodeFacts)
		want   string
	}{
		"as ordered": {func(*proto.NodeFacts) {}, ""},
		"late":       {func(f *proto.NodeFacts) { f.Switched[1].Late = emulator.MaxChangeLate + vtime.Millisecond }, "the agent of node b followed the change of its node at 3s only 51ms later"},
		"at once":    {func(f *proto.NodeFacts) { f.Switched[1].Late = emulator.MaxChangeLate }, ""},
		"missing":    {func(f *proto.NodeFacts) { f.Switched = f.Switched[:1] }, "carried out 1 of the 2 changes"},
		"failed":     {func(f *proto.NodeFacts) { f.Switched[1].Err = &proto.Error{Code: proto.CodeSystem, What: "port"} }, "did not begin again at 3s"},
	} {
		facts := proto.NodeFacts{Switched: []proto.Switched{{T: 2 * second}, {T: 3 * second, Up: true}}}
		c.change(&facts)
		var run store.Run
		judgeSwitches(&run, top, []string{"a", "b", "c"}, []*proto.Results{{}, {Facts: facts}, nil}, 8*second)
		if got := strings.Join(run.InvalidReasons, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for applied, want := range map[int]string{3: "", 4: "", 2: "applied 2 of the 3 changes"} {
		var run store.Run
		judgeChanges(&run, top, &emulator.Report{Changes: &emulator.ChangesReport{Applied: applied}}, 8*second)
		if got := strings.Join(run.InvalidReasons, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%d applied: %q, want %q", applied, got, want)
		}
	}
	var run store.Run
	judgeChanges(&run, &topology.Topology{}, &emulator.Report{}, second)
	if len(run.InvalidReasons) > 0 {
		t.Errorf("without changes: %q", run.InvalidReasons)
	}
}
