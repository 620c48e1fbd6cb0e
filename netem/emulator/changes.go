package emulator

import (
	"fmt"
	"time"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Change switches one radio link or one node at a moment of the run's clock.
type Change struct {
	At vtime.Time `json:"at_ns"`
	// Link holds the two nodes of a radio link; of a node's change both are the
	// node.
	Link [2]int `json:"link"`
	Up   bool   `json:"up"`
}

// node reports whether the change is of a node, and which.
func (c *Change) node() (int, bool) { return c.Link[0], c.Link[0] == c.Link[1] }

// ChangesReport says how the changes of a run were applied.
type ChangesReport struct {
	Applied int `json:"applied"` // up to the end of the run
	// MaxLate is the longest time between a change's moment and its application,
	// and LatestAt that moment.
	MaxLate  vtime.Duration `json:"max_late_ns"`
	LatestAt vtime.Time     `json:"latest_at_ns"`
}

// MaxChangeLate is how late a change may be applied: what nodes do by their clocks
// at that moment (an agent that forgets, a flow that begins) does not wait for it.
const MaxChangeLate = 50 * vtime.Millisecond

// judgeChanges returns why a run is invalid, empty if it is not.
func judgeChanges(r *ChangesReport) string {
	if r == nil || r.MaxLate <= MaxChangeLate {
		return ""
	}
	return fmt.Sprintf("the change of the network at %v was applied %v late (at most %v): the host is too slow or too busy",
		vtime.Duration(r.LatestAt), rounded(r.MaxLate), time.Duration(MaxChangeLate))
}

// validateChanges reports the first mistake in the changes.
func (c *Config) validateChanges() error {
	last := vtime.Time(0)
	for i := range c.Changes {
		ch := &c.Changes[i]
		for _, n := range ch.Link {
			if n < 0 || n >= len(c.Nodes) {
				return fmt.Errorf("emulator: change %d: node %d does not exist (there are %d)", i, n, len(c.Nodes))
			}
			if _, node := ch.node(); !node && c.Nodes[n].NoRadio {
				return fmt.Errorf("emulator: change %d: node %d (%s) has no radio", i, n, c.Nodes[n].Name)
			}
		}
		if ch.At < last {
			return fmt.Errorf("emulator: change %d is at %v, before its predecessor at %v", i, vtime.Duration(ch.At), vtime.Duration(last))
		}
		last = ch.At
	}
	return nil
}
