package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/orchestrator/node"
)

// TagVariable is the environment variable by which `hopbed clean` recognises a
// process of a run, even one that an agent started and nobody journalled.
const TagVariable = journal.TagVariable

// DefaultGrace is the time that an agent gets between the request to end and
// SIGKILL: it has to stop its flows and flush its results.
const DefaultGrace = 2 * time.Second

// Kinds of journal entries.
const (
	KindAgent = "agent" // before the start; id = node name
	KindPID   = "pid"   // after the start; id = "PID:START", START as in /proc/PID/stat field 22
)

// Options configure a Driver.
type Options struct {
	// Part is the agent's name in the program's reexec.Table ("hopbed-agent").
	Part string
	Args []string
	// Env is added to the environment of every agent.
	Env []string
	// Tag is the ownership tag, unique to the campaign; the agent and what it
	// starts have it in TagVariable.
	Tag string
	// Journal, if set, is called before each process is started (KindAgent) and
	// once more with its identity (KindPID). An error of the former aborts the
	// start. It is called by several goroutines at once.
	Journal func(kind, id string) error
	// Grace is the time for a polite end; 0 = DefaultGrace.
	Grace time.Duration
}

// Driver is a node.Driver. Its methods are safe for concurrent use.
type Driver struct {
	opt     Options
	spawner *spawner

	mu      sync.Mutex
	handles []*handle
	closed  bool
}

var _ node.Driver = (*Driver)(nil)

// New returns a driver. Nothing is created before Start.
func New(o Options) (*Driver, error) {
	if o.Part == "" {
		return nil, errors.New("namespace driver: no part to run as the agent")
	}
	if o.Tag == "" {
		return nil, errors.New("namespace driver: no ownership tag: what a killed run leaves could not be recognised")
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Journal == nil {
		o.Journal = func(string, string) error { return nil }
	}
	return &Driver{opt: o, spawner: newSpawner()}, nil
}

// Start starts one agent per spec, each in a new network namespace.
func (d *Driver) Start(ctx context.Context, specs []node.Spec) ([]node.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("namespace driver: already closed")
	}
	if err := d.check(specs); err != nil {
		return nil, err
	}
	// All entries first and at once, so that the journal can write them with one
	// sync to disk.
	if err := parallel(len(specs), func(i int) error { return d.opt.Journal(KindAgent, specs[i].Name) }); err != nil {
		return nil, fmt.Errorf("namespace driver: %w", err)
	}
	started := make([]*handle, len(specs))
	var err error
	for i, s := range specs {
		if err = ctx.Err(); err != nil {
			break
		}
		if started[i], err = d.launch(s); err != nil {
			break
		}
	}
	started = slices.DeleteFunc(started, func(h *handle) bool { return h == nil })
	if err != nil {
		return nil, errors.Join(err, d.end(context.WithoutCancel(ctx), started, 0))
	}
	d.handles = append(d.handles, started...)
	out := make([]node.Handle, len(started))
	for i, h := range started {
		out[i] = h
	}
	return out, nil
}

func (d *Driver) check(specs []node.Spec) error {
	seen := map[string]bool{}
	for _, h := range d.handles {
		seen[h.Name()] = true
	}
	for _, s := range specs {
		if s.Name == "" || seen[s.Name] {
			return fmt.Errorf("namespace driver: node %d: the name %q is empty or taken", s.ID, s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

// Close ends all agents in parallel and waits until no process is left in
// their namespaces.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.end(ctx, d.handles, d.opt.Grace)
	d.handles = nil
	if !d.closed {
		d.closed = true
		d.spawner.close() // last: its thread's end kills what it started
	}
	return err
}

func (d *Driver) end(ctx context.Context, hs []*handle, grace time.Duration) error {
	err := parallel(len(hs), func(i int) error { return hs[i].stop(ctx, grace) })
	spaces := map[string]string{}
	for _, h := range hs {
		if h.namespace != "" {
			spaces[h.namespace] = h.Name()
		}
	}
	return errors.Join(err, vacate(ctx, spaces))
}

// parallel runs f(0…n-1) at once and joins the errors in order, each text once:
// a hundred nodes may fail for one reason.
func parallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	said := map[string]bool{}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		again := err == nil || said[err.Error()]
		if err != nil {
			said[err.Error()] = true
		}
		return again
	})...)
}

// ownNamespace is the identity of the calling process's network namespace.
func ownNamespace() (string, error) { return os.Readlink("/proc/thread-self/ns/net") }
