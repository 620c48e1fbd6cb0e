package live

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// maxLogs bounds the agents' log lines kept with a run; more are counted.
const maxLogs = 500

// gatherer keeps what agents say on their own while a run goes on.
type gatherer struct {
	mu      sync.Mutex
	samples []store.Sample
	events  []store.Event
	logs    int
	failed  chan error // the first failure of an agent
}

func newGatherer() *gatherer { return &gatherer{failed: make(chan error, 1)} }

// fail records the first failure.
func (g *gatherer) fail(err error) {
	select {
	case g.failed <- err:
	default:
	}
}

// drain takes the asynchronous messages of one agent until its conversation
// ends. It must run, or the agent's replies wait behind them.
func (g *gatherer) drain(node int, name string, c *proto.Client) {
	for a := range c.Async() {
		switch {
		case a.Samples != nil:
			g.mu.Lock()
			for k := range a.Samples.Samples {
				g.samples = append(g.samples, backend.SampleRow(node, &a.Samples.Samples[k]))
			}
			g.mu.Unlock()
		case a.Event != nil:
			g.add(backend.EventRow(node, a.Event))
		case a.Log != nil:
			g.mu.Lock()
			g.logs++
			keep := g.logs <= maxLogs
			g.mu.Unlock()
			if keep {
				g.add(store.Event{Node: store.Some(int64(node)), Kind: "log-" + a.Log.Level, Text: a.Log.Message})
			}
		case a.Failure != nil:
			g.fail(fmt.Errorf("node %s gave up: %w", name, &a.Failure.Error))
		}
	}
}

func (g *gatherer) add(e store.Event) {
	g.mu.Lock()
	g.events = append(g.events, e)
	g.mu.Unlock()
}

// finish moves what was gathered into the record, in the order of time.
func (g *gatherer) finish(rec *store.RunRecord) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortStableFunc(g.samples, func(a, b store.Sample) int {
		return cmp.Or(cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Node, b.Node), cmp.Compare(a.TUs, b.TUs))
	})
	// Two samples in one microsecond are one observation.
	rec.Samples = slices.CompactFunc(g.samples, func(a, b store.Sample) bool {
		return a.Flow == b.Flow && a.Side == b.Side && a.Node == b.Node && a.TUs == b.TUs
	})
	if g.logs > maxLogs {
		g.events = append(g.events, store.Event{Kind: "log-dropped", Text: "log lines beyond the bound", Count: int64(g.logs - maxLogs)})
	}
	slices.SortStableFunc(g.events, func(a, b store.Event) int { return cmp.Compare(a.TUs.Or(0), b.TUs.Or(0)) })
	rec.Events = append(rec.Events, g.events...)
}
