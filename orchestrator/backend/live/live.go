//go:build linux

package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/live/site"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// limits bound a run's phases, beside its length.
type limits struct {
	start   time.Duration // nodes up and configured
	collect time.Duration // from the end of the traffic to the last result
}

// usual suits 1,000 nodes on a slow host.
var usual = limits{start: 60 * time.Second, collect: 30 * time.Second}

const (
	startLead    = 500 * time.Millisecond // between the start order and the flows' common start
	closeTimeout = 20 * time.Second
	// hurriedClose bounds the teardown after the user has asked to stop: hopbed
	// must be gone within 3 s of a Ctrl-C.
	hurriedClose = 1500 * time.Millisecond
)

// Options configure the back end.
type Options struct {
	// Name in results ("netns").
	Name string
	// NewDriver makes the driver of one run's nodes.
	NewDriver func() (node.Driver, error)
	// Close, if set, is called when the campaign has ended.
	Close func() error
	// BoardByPID tells agents that are not this process's children where the queue
	// board is, by this process's descriptors; others inherit it.
	BoardByPID bool
	// Lab, if set, makes this a back end of real nodes: NewDriver, BoardByPID, Env and
	// Journal are not looked at.
	Lab *Lab
	// Watchdog is the longest silence after which agents put back what they changed
	// and end by themselves; 0 where they end with this process.
	Watchdog vtime.Duration
	// Facts are added to those of every run.
	Facts map[string]string
	// Env is added to the emulator's environment (the ownership tag).
	Env []string
	// Journal, if set, is called before anything is created.
	Journal func(kind, id string) error
	// Controller is the program's version, for the agents' logs.
	Controller string
	Tag        string
}

// Backend runs scenarios on namespaces over the paced medium.
type Backend struct {
	opt    Options
	limits limits

	mu    sync.Mutex
	boots map[string]string // boot ids of real nodes, by name
	away  map[string]bool   // real nodes that the last run lost
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Planner = (*Backend)(nil)
)

// New returns the back end.
func New(o Options) *Backend { return &Backend{opt: o, limits: usual} }

// Name implements backend.Backend.
func (b *Backend) Name() string { return b.opt.Name }

// Overhead implements backend.Backend: nodes up, start, collection, nodes down.
func (b *Backend) Overhead() time.Duration { return time.Second }

// Speed implements backend.Backend.
func (b *Backend) Speed() float64 { return 1 }

// Plan implements backend.Planner.
func (b *Backend) Plan(p *plan.Plan) *plan.Plan {
	if b.opt.Lab != nil {
		return site.Plan(p)
	}
	return p
}

// Close implements backend.Backend.
func (b *Backend) Close() error {
	if b.opt.Close == nil {
		return nil
	}
	return b.opt.Close()
}

// Run implements backend.Backend.
func (b *Backend) Run(ctx context.Context, s *plan.Scenario, tell backend.Progress, c *backend.Capture) (rec *store.RunRecord, err error) {
	r := b.newSession(s, tell, c)
	defer func() {
		tell("tear down", 0, 0)
		if cerr := r.close(ctx); cerr != nil {
			err = errors.Join(err, cerr)
		}
		// What agents said is worth more where something went wrong.
		r.gather.finish(r.rec)
		if err == nil {
			judgeSamples(r.rec, r.s.Config().Sample)
		}
		if err != nil {
			r.keepLastWords()
		}
		rec = r.rec
	}()
	if err := r.start(ctx); err != nil {
		return nil, b.account(classify(r.explain(err)))
	}
	return nil, b.account(r.explain(r.measure(ctx)))
}

// classify tells the campaign what an error at the start means for other
// attempts and other runs.
func classify(err error) error {
	var u *tap.Unavailable
	if errors.As(err, &u) {
		return &backend.Fatal{Err: err} // the host cannot do it for any run
	}
	var p *proto.Error
	if errors.As(err, &p) {
		switch p.Code {
		case proto.CodeUnavailable, proto.CodeOrder, proto.CodeVersion, proto.CodeMalformed, proto.CodeInternal:
			return &backend.Permanent{Err: err}
		}
	}
	return err
}
