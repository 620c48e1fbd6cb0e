//go:build linux

package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// The bounds of what agents may say on their own; more is counted, not kept.
const (
	maxLogs = 500     // log lines of a run
	maxText = 2 << 10 // bytes of a line
)

// gatherer keeps what agents say on their own while a run goes on. An agent is
// not trusted to be sane: what it says is bounded, and what cannot be true
// fails the run.
type gatherer struct {
	paths      [][]int // nodes of each flow
	maxSamples int     // of the whole run
	maxEvents  int

	mu       sync.Mutex
	samples  []store.Sample
	messages *backend.Messages
	events   []store.Event
	logs     int // log lines, kept or not
	dropped  int // events that were not kept
	err      error

	drains sync.WaitGroup
	failed chan struct{} // closed with the first failure
	once   sync.Once
}

func newGatherer(s *plan.Scenario) *gatherer {
	g := &gatherer{failed: make(chan struct{}), messages: backend.NewMessages(s)}
	c := s.Config()
	// An honest agent takes one sample of each of its flows at each moment.
	moments := int((c.Warmup+c.Duration)/max(c.Sample, vtime.Millisecond)) + 2
	for _, f := range s.Flows {
		g.paths = append(g.paths, f.Path)
		g.maxSamples += len(f.Path) * moments
		g.maxEvents += 4 * len(f.Path)
		if c.Flows[f.Group].Transport.Family() == spec.FamilyCoopTCP {
			g.maxEvents += maxWindowEvents
		}
	}
	return g
}

// fail records the first failure.
func (g *gatherer) fail(err error) {
	g.once.Do(func() {
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
		close(g.failed)
	})
}

// failure is the first failure, nil if there was none.
func (g *gatherer) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// drain takes the asynchronous messages of one agent until its conversation
// ends. It must run, or the agent's replies wait behind them.
func (g *gatherer) drain(node int, name string, c *proto.Client) {
	defer g.drains.Done()
	for a := range c.Async() {
		switch {
		case a.Samples != nil:
			if err := g.take(node, a.Samples); err != nil {
				g.fail(fmt.Errorf("node %s: %w", name, err))
			}
		case a.Event != nil:
			g.mu.Lock()
			full := len(g.events) >= g.maxEvents+maxLogs
			if full {
				g.dropped++
			}
			g.mu.Unlock()
			if !full {
				g.add(backend.EventRow(node, a.Event))
			}
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
	// An agent that ends is reported with its exit status; one that speaks
	// nonsense may live on.
	var nonsense *proto.Error
	if errors.As(c.Err(), &nonsense) {
		g.fail(fmt.Errorf("node %s: the agent cannot be understood any more: %w", name, nonsense))
	}
}

// take keeps samples and messages. They are rows that refer to flows: one of a flow
// that the node does not have cannot be stored.
func (g *gatherer) take(node int, batch *proto.Samples) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range batch.Messages {
		if err := g.messages.Add(node, &batch.Messages[k]); err != nil {
			return err
		}
	}
	for k := range batch.Samples {
		s := &batch.Samples[k]
		if s.Flow < 0 || s.Flow >= len(g.paths) || !slices.Contains(g.paths[s.Flow], node) {
			return fmt.Errorf("a sample of flow %d, in which it takes no part", s.Flow)
		}
		if s.Side != proto.Source && s.Side != proto.Destination && s.Side != proto.Relay {
			return fmt.Errorf("a sample of flow %d with the unknown side %.20q", s.Flow, s.Side)
		}
		if len(g.samples) >= g.maxSamples {
			return fmt.Errorf("samples beyond the %d that the whole run can have", g.maxSamples)
		}
		g.samples = append(g.samples, backend.SampleRow(node, s))
	}
	return nil
}

func (g *gatherer) add(e store.Event) {
	if len(e.Text) > maxText {
		e.Text = strings.ToValidUTF8(e.Text[:maxText], "") + "…"
	}
	if len(e.Kind) > 40 {
		e.Kind = strings.ToValidUTF8(e.Kind[:40], "")
	}
	e.Kind = cmp.Or(e.Kind, "unknown")
	g.mu.Lock()
	g.events = append(g.events, e)
	g.mu.Unlock()
}

// finish moves what was gathered into the record, in the order of time, and judges
// the messages of its flows. The conversations have been closed and the agents are
// gone.
func (g *gatherer) finish(rec *store.RunRecord) {
	g.drains.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.messages.Finish(rec)
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
	if g.dropped > 0 {
		g.events = append(g.events, store.Event{Kind: "event-dropped", Text: "events beyond the bound", Count: int64(g.dropped)})
	}
	rec.Events = append(rec.Events, g.events...)
	backend.SortEvents(rec)
}

// maxWindowEvents bounds what a flow of coop-tcp says of its window.
const maxWindowEvents = 5000
