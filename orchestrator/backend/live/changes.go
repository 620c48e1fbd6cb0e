//go:build linux

package live

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// emulatorChanges are a topology's changes as the emulator applies them.
func emulatorChanges(t *topology.Topology) []emulator.Change {
	var out []emulator.Change
	for _, c := range t.Changes {
		out = append(out, emulator.Change{At: c.At, Link: c.Link, Up: c.Up})
	}
	return out
}

// switches are the moments at which a node is switched off and on: its agent has to
// forget what it has in memory. Links concern nobody but the emulator.
func switches(t *topology.Topology, node int) []proto.Switch {
	var out []proto.Switch
	for i := range t.Changes {
		if n, is := t.Changes[i].Node(); is && n == node {
			out = append(out, proto.Switch{T: t.Changes[i].At, Up: t.Changes[i].Up})
		}
	}
	return out
}

// judgeChanges adds the verdict on changes that the emulator did not get to before the
// run's end.
func judgeChanges(run *store.Run, t *topology.Topology, rep *emulator.Report, end vtime.Time) {
	want, applied := 0, 0
	for i := range t.Changes {
		if t.Changes[i].At < end {
			want++
		}
	}
	if rep.Changes != nil {
		applied = rep.Changes.Applied
	}
	if applied < want {
		note(run, true, fmt.Sprintf("the emulator applied %d of the %d changes of the network", applied, want))
	}
}

// judgeSwitches adds the verdict on how the agents followed the changes of their
// nodes, once with the worst. The emulator's part is in its own verdict.
func judgeSwitches(run *store.Run, t *topology.Topology, names []string, results []*proto.Results, end vtime.Time) {
	var worst struct {
		node int
		at   vtime.Time
		late vtime.Duration
	}
	for i, r := range results {
		if r == nil {
			continue
		}
		want := 0
		for _, w := range switches(t, i) {
			if w.T < end {
				want++
			}
		}
		if got := len(r.Facts.Switched); got != want {
			note(run, true, fmt.Sprintf("the agent of node %s carried out %d of the %d changes of its node", names[i], got, want))
		}
		for _, w := range r.Facts.Switched {
			if w.Err != nil {
				note(run, true, fmt.Sprintf("node %s did not begin again at %v: %v", names[i], vtime.Duration(w.T), w.Err))
			}
			if w.Late > worst.late {
				worst.node, worst.at, worst.late = i, w.T, w.Late
			}
		}
	}
	if worst.late > emulator.MaxChangeLate {
		note(run, true, fmt.Sprintf("the agent of node %s followed the change of its node at %v only %v later (worst of all nodes; at most %v): the host is too slow or too busy",
			names[worst.node], vtime.Duration(worst.at), worst.late.Std().Round(time.Millisecond), emulator.MaxChangeLate.Std()))
	}
}
