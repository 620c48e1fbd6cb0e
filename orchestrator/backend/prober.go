package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/linkprobe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/etx"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Prober is implemented by back ends that can measure radio links.
type Prober interface {
	// Probe lets every node with a radio broadcast probes, all over the same time,
	// as the Config's block routing says, and returns what each heard of the
	// others. s is plan.Run.Probing's. The error is a *Spoiled when the host's
	// trouble is in the counts, so that another attempt may go better; whatever
	// was created is gone when Probe returns.
	Probe(ctx context.Context, s *plan.Scenario, tell Progress) (*etx.Survey, error)
}

// Spoiled says why a measurement of links tells nothing about them.
type Spoiled struct{ Reasons []string }

// Error gives all reasons.
func (s *Spoiled) Error() string {
	return "the measurement of links is spoiled: " + strings.Join(s.Reasons, "; ")
}

// ProbeOrder is the order for the probes of a scenario's network; its epoch is
// left to the caller. tag names the measurement: on real nodes no other one may
// have it.
func ProbeOrder(s *plan.Scenario, tag uint64) proto.Probe {
	r := &s.Config().Routing
	return proto.Probe{Period: r.Period, Count: r.Probes, Size: r.Size, Seed: s.Seed, Tag: tag}
}

// Quiet tells nothing.
func Quiet(string, vtime.Duration, vtime.Duration) {}

// ProbeTail is how long after the last probe nodes go on listening: for what waits
// in queues.
const ProbeTail = 500 * vtime.Millisecond

// lateProbes is the share of a node's probes that may be late. Probes that wait for
// a processor together go together, and collide: on an overloaded host the
// deliveries of load30's mesh came out 5 % lower than in virtual time (1500 B at
// 11 Mb/s, one a second).
const lateProbes = 0.05

// LateProbes says which node's probes were too often late, the worst of all; nil
// where none's were.
func LateProbes(t *topology.Topology, heard []*proto.Heard) []string {
	worst, share := -1, lateProbes
	for i, h := range heard {
		if h != nil && h.Sent > 0 && float64(h.Late)/float64(h.Sent) > share {
			worst, share = i, float64(h.Late)/float64(h.Sent)
		}
	}
	if worst < 0 {
		return nil
	}
	h := heard[worst]
	return []string{fmt.Sprintf("host too busy: node %s sent %d of its %d probes more than %v late, up to %v (worst of all nodes; at most %.0f %%): probes that wait together collide",
		t.Nodes[worst].Name, h.Late, h.Sent, linkprobe.Late, h.LateMax.Std().Round(time.Millisecond), 100*lateProbes)}
}

// Surveyed puts together what the nodes heard, in the order of the nodes; nil for
// one without a radio. A node that did not send all its probes makes an error:
// what the others heard of it means nothing.
func Surveyed(t *topology.Topology, probes int, heard []*proto.Heard) (*etx.Survey, error) {
	if len(heard) != len(t.Nodes) {
		return nil, fmt.Errorf("link probes: %d nodes answered of %d", len(heard), len(t.Nodes))
	}
	s := &etx.Survey{Nodes: len(t.Nodes), Probes: probes, Mute: t.Mute()}
	var errs []error
	for to, h := range heard {
		if !t.Nodes[to].Radio {
			continue
		}
		name := t.Nodes[to].Name
		switch {
		case h == nil:
			errs = append(errs, fmt.Errorf("node %s said nothing of what it heard", name))
			continue
		case h.Sent != probes:
			errs = append(errs, fmt.Errorf("node %s sent %d of its %d probes", name, h.Sent, probes))
		}
		for _, f := range h.From {
			x := etx.Heard{From: f.Node, To: to, Received: f.Received}
			if f.Received+len(f.Missing) == f.Last+1 { // else there were more than a report holds
				x.Lost = append([]int{}, f.Missing...)
				for n := f.Last + 1; n < probes; n++ {
					x.Lost = append(x.Lost, n)
				}
			}
			s.Heard = append(s.Heard, x)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("link probes: %w", err)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("link probes: %w", err)
	}
	return s, nil
}
