package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// Name of the back end in results.
const Name = "sim"

// Backend carries runs out in virtual time. It has no state: runs may go on at
// once.
type Backend struct{}

var (
	_ backend.Backend  = (*Backend)(nil)
	_ backend.Parallel = (*Backend)(nil)
)

// New returns the back end.
func New() *Backend { return &Backend{} }

// Name implements backend.Backend.
func (*Backend) Name() string { return Name }

// Overhead implements backend.Backend: laying out, and storing the results.
func (*Backend) Overhead() time.Duration { return 500 * time.Millisecond }

// typicalSpeed is what thirty flows over twenty nodes at 802.11b reach on one
// core of a busy machine; small networks are faster, large and fast ones slower.
const typicalSpeed = 200

// Speed implements backend.Backend.
func (*Backend) Speed() float64 { return typicalSpeed }

// Parallel implements backend.Parallel: one run a core.
func (*Backend) Parallel() int { return runtime.GOMAXPROCS(0) }

// Close implements backend.Backend; nothing is held.
func (*Backend) Close() error { return nil }

// Preflight implements backend.Backend.
func (b *Backend) Preflight(_ context.Context, p *plan.Plan) error {
	for _, pt := range p.Experiment.Points() {
		if err := supported(pt.Config); err != nil {
			return err
		}
	}
	return nil
}

// supported says what of an experiment the model does not have.
func supported(c *spec.Config) error {
	if c.Topology.Inventory != "" && len(c.Topology.Links) == 0 {
		return &backend.ErrUnsupported{Backend: Name, What: "topology.inventory", Because: "the nodes of an inventory are real hosts, and nothing says which of them would hear each other",
			Do: "--backend ssh runs on them; list topology.links to model them"}
	}
	if c.MAC.Fragment != nil {
		return &backend.ErrUnsupported{Backend: Name, What: "mac.fragment", Because: "the model's radios send frames whole",
			Do: "remove the key, or run on real nodes: --backend ssh"}
	}
	flows := 0
	for i := range c.Flows {
		f := &c.Flows[i]
		if err := carried(c, i, f.Transport); err != nil {
			return err
		}
		flows += f.Number()
		if f.Workload.Kind == spec.Web {
			flows += f.Number() // those of the requests
		}
	}
	return tooManySamples(flows, c.Warmup+c.Duration, c.Sample)
}

// carried says why the model does not have a transport; nil where it does.
func carried(c *spec.Config, i int, t spec.Transport) error {
	unsupported := &backend.ErrUnsupported{Backend: Name, What: fmt.Sprintf("flows[%d].transport: %s", i, t)}
	switch {
	case t.External():
		unsupported.Because = "it is a program, which needs a kernel"
		unsupported.Do = "use a back end with a kernel (--backend netns)"
		return unsupported
	case t.Family() == spec.FamilyHop:
		_, err := backend.HopConfig(c)
		return err
	case slices.Contains([]string{spec.FamilyTCP, spec.FamilyCoopTCP, spec.FamilyHopByHopTCP, spec.FamilyBundle}, t.Family()):
		if cc := t.Variant(); !slices.Contains(tcp.Controls(), cc) {
			unsupported.Because = "the model TCP has no congestion control " + cc
			unsupported.Do = "use one of " + strings.Join(tcp.Controls(), ", ") + ", or a back end with a kernel (--backend netns)"
			return unsupported
		}
	}
	return nil
}

// Run implements backend.Backend.
func (b *Backend) Run(ctx context.Context, s *plan.Scenario, tell backend.Progress, c *backend.Capture) (*store.RunRecord, error) {
	if err := supported(s.Config()); err != nil {
		return nil, &backend.Permanent{Err: err}
	}
	w, err := newWorld(s)
	if err == nil && c != nil {
		err = w.record(c)
	}
	if err != nil {
		// The same scenario fails in the same way every time.
		return nil, &backend.Permanent{Err: err}
	}
	if err := w.run(ctx, tell); err != nil {
		return nil, err
	}
	if c != nil {
		w.recording.end(w, c)
	}
	rec := w.results()
	if w.unlikely != nil {
		return nil, &backend.Permanent{Err: w.unlikely}
	}
	return rec, nil
}
