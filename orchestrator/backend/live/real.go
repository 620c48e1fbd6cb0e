//go:build linux

package live

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// Lab makes a back end one of real nodes.
type Lab struct {
	Inventory *inventory.Inventory
	// NewDriver makes the driver of one run's nodes; of gives the node of the
	// inventory for each.
	NewDriver func(of func(node.Spec) (*inventory.Node, error)) (node.Driver, error)
	// Ready connects to nodes and puts their agents in place; the error names every
	// node that is not ready.
	Ready func(ctx context.Context, nodes []*inventory.Node) error
	// Reached says how a node is reached.
	Reached func(node.Handle) Reached
	// StopOnLoss ends the campaign with the first node that is lost.
	StopOnLoss bool
}

// Reached is how a node is reached; zero values are not known.
type Reached struct {
	Controller netip.Addr // as the node sees it
	Address    netip.Addr // the node's own
}

// real is the fabric of a lab: whatever lies between real nodes.
type real struct {
	b      *Backend
	s      *plan.Scenario
	site   *site.Site
	err    error // why there is no site
	known  []site.Known
	caught bool // a capture was asked for
}

var _ fabric = (*real)(nil)

func (b *Backend) newReal(s *plan.Scenario, c *backend.Capture) *real {
	l := &real{b: b, s: s, caught: c != nil}
	var names []string
	for _, n := range s.Topology.Nodes {
		names = append(names, n.Name)
	}
	l.site, l.err = site.Match(names, b.opt.Lab.Inventory)
	return l
}

func (l *real) addr(i int) netip.Addr {
	if l.site == nil {
		return netip.Addr{} // specs says why
	}
	return l.site.Addr(i)
}

func (l *real) specs() ([]node.Spec, error) {
	if l.err != nil {
		return nil, &backend.Fatal{Err: l.err}
	}
	if l.caught {
		return nil, &backend.Permanent{Err: noCapture}
	}
	var specs []node.Spec
	for i, nd := range l.s.Topology.Nodes {
		specs = append(specs, node.Spec{ID: i, Name: nd.Name})
	}
	return specs, nil
}

// noCapture is what --trace meets on real nodes.
var noCapture = &backend.ErrUnsupported{Backend: site.Name, What: "a capture", Because: "the packets of real nodes pass elsewhere",
	Do: "leave --trace and --events out, and run tcpdump on the nodes"}

func (l *real) driver() (node.Driver, error) {
	return l.b.opt.Lab.NewDriver(func(s node.Spec) (*inventory.Node, error) {
		if s.ID < 0 || s.ID >= len(l.site.Nodes) {
			return nil, fmt.Errorf("node %s is none of the experiment's", s.Name)
		}
		return l.site.Nodes[s.ID], nil
	})
}

// start looks at what the nodes said of themselves.
func (l *real) start(_ context.Context, r *session) error {
	l.known = make([]site.Known, len(r.hellos))
	if l.site.Note != "" {
		note(&r.rec.Run, false, l.site.Note)
	}
	for i := range r.hellos {
		h, k, f := &r.hellos[i], &l.known[i], r.rec.Nodes[i].Facts
		k.Interfaces = h.Interfaces
		at := l.b.opt.Lab.Reached(r.handles[i])
		for _, a := range []netip.Addr{at.Address, at.Controller} {
			if a.IsValid() && !a.IsLoopback() {
				k.Protect = append(k.Protect, a.Unmap())
			}
		}
		maps.Copy(f, l.site.Facts(i))
		f["kernel"], f["machine"], f["agent"] = h.Kernel, h.Machine, h.Agent
		l.b.noteBoot(r, i)
	}
	return nil
}

func (l *real) order(i int, flows []proto.Flow) (*proto.Configure, error) {
	return l.site.Order(l.s, i, flows, l.known)
}

func (l *real) begin(context.Context, int64, vtime.Time, vtime.Time) error { return nil }
func (l *real) stop(context.Context) error                                 { return nil }
func (l *real) kill()                                                      {}
func (l *real) close() error                                               { return nil }

// collect has nothing to count: the links are nobody's. What follows from their
// rates is judged as in emulated networks.
func (l *real) collect(*store.RunRecord) {}

// noteBoot remembers a node's boot between runs, and tells of one that is new.
func (b *Backend) noteBoot(r *session, i int) {
	name, boot := r.handles[i].Name(), r.hellos[i].BootID
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, known := b.boots[name]; known && boot != "" && last != boot {
		note(&r.rec.Run, false, fmt.Sprintf("node %s was rebooted since the run before", name))
	}
	if b.boots == nil {
		b.boots = map[string]string{}
	}
	b.boots[name] = boot
}

// radioFacts keeps the evidence of a node's radio settings as its facts, and
// returns the names of those that nobody could verify.
func radioFacts(f store.Facts, settings []radio.Setting) (unverified []string) {
	for _, s := range settings {
		value := s.Got
		if value == "" {
			value = s.Wanted
		}
		text := fmt.Sprintf("%s (%s)", value, s.State)
		if s.Why != "" {
			text = fmt.Sprintf("%s (%s: %s)", value, s.State, s.Why)
		}
		f["radio."+s.Name] = text
		if s.State != radio.Verified {
			unverified = append(unverified, s.Name+" ("+string(s.State)+")")
		}
	}
	return unverified
}

// warnUnverified says once which radio settings could not be verified, and where.
func warnUnverified(run *store.Run, nodes []store.Node, unverified map[int][]string) {
	at := map[string][]string{}
	for i := range nodes {
		for _, s := range unverified[i] {
			at[s] = append(at[s], nodes[i].Name)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(at)) {
		note(run, false, fmt.Sprintf("radio setting %s could not be read back on %d of %d nodes (%s): results are those of what was asked for only if the driver did it",
			s, len(at[s]), len(nodes), strings.Join(at[s][:min(4, len(at[s]))], " ")))
	}
}
