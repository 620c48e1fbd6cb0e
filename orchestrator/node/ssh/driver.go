package ssh

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopbed/hopbed/deploy/agents"
	"github.com/hopbed/hopbed/deploy/inventory"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// DefaultGrace is the time that an agent gets between the request to end and the
// signals: it has to stop its flows and to put back what it changed.
const DefaultGrace = 5 * time.Second

// Options configure a Driver.
type Options struct {
	// Pool has the connections; the driver leaves them open.
	Pool *Pool
	// Nodes says which node of the inventory is meant.
	Nodes func(node.Spec) (*inventory.Node, error)
	// Args are the agent's; nil = "--guarded": what it changed is put back even when
	// it is killed.
	Args []string
	// Env is added to the environment of every agent. It can be read in the node's
	// process list.
	Env []string
	// Tag is the ownership tag of the campaign; agents have it in their environment.
	Tag string
	// Grace is the time for a polite end; 0 = DefaultGrace.
	Grace time.Duration
	// Patience is the time for a node's connection, upload and start; nil or 0 =
	// DefaultPatience.
	Patience func(name string) time.Duration
}

// Driver is a node.Driver. Its methods are safe for concurrent use.
type Driver struct {
	opt Options

	mu      sync.Mutex
	handles []*handle
	closed  bool
}

var _ node.Driver = (*Driver)(nil)

// New returns a driver. Nothing is done before Start.
func New(o Options) (*Driver, error) {
	if o.Pool == nil || o.Nodes == nil {
		return nil, errors.New("SSH driver: no connections, or no nodes")
	}
	if o.Tag == "" {
		return nil, errors.New("SSH driver: no ownership tag: what a killed run leaves could not be recognised")
	}
	if o.Args == nil {
		o.Args = []string{"--guarded"}
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Patience == nil {
		o.Patience = func(string) time.Duration { return 0 }
	}
	return &Driver{opt: o}, nil
}

// NotStarted says that a node has no agent; Err is typed.
type NotStarted struct {
	Name string
	Err  error
}

// Error names the node.
func (n *NotStarted) Error() string {
	text := n.Err.Error()
	if strings.Contains(text, n.Name) {
		return text
	}
	return fmt.Sprintf("node %s: %s", n.Name, text)
}

// Unwrap returns the reason.
func (n *NotStarted) Unwrap() error { return n.Err }

// NodeName is the node's name, for callers that know drivers by their interface only.
func (n *NotStarted) NodeName() string { return n.Name }

// Start connects to the nodes, uploads agents where needed, and starts them. The
// error has a *NotStarted for every node that has none.
func (d *Driver) Start(ctx context.Context, specs []node.Spec) ([]node.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("SSH driver: already closed")
	}
	nodes, err := d.check(specs)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	started := make([]*handle, len(specs))
	errs := make([]error, len(specs))
	var wg sync.WaitGroup
	for i, s := range specs {
		wg.Go(func() {
			patience := d.opt.Patience(s.Name)
			if patience <= 0 {
				patience = DefaultPatience
			}
			ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not connected and started within %v", patience))
			defer cancel()
			h, err := d.launch(ctx, s, nodes[i])
			if err != nil {
				err = &NotStarted{s.Name, err}
			}
			started[i], errs[i] = h, err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		started = slices.DeleteFunc(started, func(h *handle) bool { return h == nil })
		return nil, errors.Join(err, d.end(ctx, started)) // without politeness when the user does not want to wait
	}
	d.handles = append(d.handles, started...)
	out := make([]node.Handle, len(started))
	for i, h := range started {
		out[i] = h
	}
	return out, nil
}

func (d *Driver) check(specs []node.Spec) ([]*inventory.Node, error) {
	seen := map[string]bool{}
	for _, h := range d.handles {
		seen[h.Name()] = true
	}
	nodes := make([]*inventory.Node, len(specs))
	for i, s := range specs {
		if s.Name == "" || seen[s.Name] {
			return nil, fmt.Errorf("SSH driver: node %d: the name %q is empty or taken", s.ID, s.Name)
		}
		seen[s.Name] = true
		if len(s.Files) > 0 {
			return nil, fmt.Errorf("SSH driver: node %s: descriptors cannot be handed over to a node that is reached over SSH", s.Name)
		}
		for _, e := range s.Env {
			if k, _, ok := strings.Cut(e, "="); !ok || k == "" || strings.HasPrefix(k, "-") {
				return nil, fmt.Errorf("SSH driver: node %s: %q is no environment variable", s.Name, e)
			}
		}
		var err error
		if nodes[i], err = d.opt.Nodes(s); err != nil {
			return nil, fmt.Errorf("node %s: %w", s.Name, err)
		}
	}
	return nodes, nil
}

// Close ends all agents in parallel; a node that is lost is asked once more whether
// its agent still runs. The error says what may be left.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	err := d.end(ctx, d.handles)
	d.handles = nil
	return err
}

// end ends agents. Ends that failed are in their handles; here it matters what may
// still run.
func (d *Driver) end(ctx context.Context, hs []*handle) error {
	left := make([]string, len(hs))
	var wg sync.WaitGroup
	for i, h := range hs {
		wg.Go(func() {
			_ = h.stop(ctx, d.opt.Grace)
			left[i] = h.remains(ctx)
		})
	}
	wg.Wait()
	left = slices.DeleteFunc(left, func(s string) bool { return s == "" })
	if len(left) == 0 {
		return nil
	}
	return &node.Leftover{What: left, Remedy: "an agent without its controller puts back what it changed, and ends; where it was killed, run `hopbed deploy clean` when the node is back"}
}

// environment is what the agent's process gets, beside what the node's server gives
// it.
func (d *Driver) environment(s node.Spec, mark string) []string {
	env := []string{agents.PartVariable + "=" + agents.Part, journal.TagVariable + "=" + d.opt.Tag, markVariable + "=" + mark}
	return append(append(env, d.opt.Env...), s.Env...)
}

// Facts are what a driver knows of a node that runs.
type Facts struct {
	Machine    string // uname -m
	PID        int    // of the agent, on the node
	Controller netip.Addr
	Address    netip.Addr // of the node, in the connection's
	Agent      agents.Placed
}

// FactsOf returns what is known of a node that was started over SSH; false for
// others.
func FactsOf(h node.Handle) (Facts, bool) {
	if f, ok := h.(interface{ Facts() Facts }); ok {
		return f.Facts(), true
	}
	return Facts{}, false
}
