package sim

import (
	"context"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/experiments/spec"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/tap"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/backend/sim/simnet"
	"github.com/hopbed/hopbed/orchestrator/plan"
	"github.com/hopbed/hopbed/orchestrator/store"
)

// world is one run: the engine, the medium, and the network over it.
type world struct {
	s        *plan.Scenario
	eng      *des.Engine
	med      *wifi.Medium // nil: no node has a radio
	net      *simnet.Net
	rec      *store.RunRecord
	series   *series
	messages *backend.Messages
	// unlikely is what the messages said first that cannot be.
	unlikely error

	recording *recording // nil: nothing is captured

	warmup, end vtime.Time
}

// newWorld lays a scenario out as the live back end does: the same channel, the
// same medium with the same seed, the same orders for the flows.
func newWorld(s *plan.Scenario) (*world, error) {
	c, t := s.Config(), s.Topology
	hop, err := backend.HopConfig(c)
	if err != nil {
		return nil, err
	}
	w := &world{s: s, eng: des.New(), messages: backend.NewMessages(s), warmup: vtime.Time(c.Warmup), end: vtime.Time(c.Warmup + c.Duration)}
	flows := backend.Orders(s, tap.Addr)
	if w.series, err = newSeries(flows, w.end, c.Sample); err != nil {
		return nil, err
	}
	cfg := simnet.Config{
		Seed: s.Seed, Nodes: len(t.Nodes), Routes: t.Routes, Flows: flows,
		Warmup: w.warmup, End: w.end, Hop: hop, TCP: tcpConfig(&c.Transports.TCP), RelayDue: w.series.relayDue,
	}
	for i := range t.Nodes {
		cfg.Rewriting = append(cfg.Rewriting, t.Rewriting(i))
	}
	if len(t.Pipes) > 0 {
		cfg.Links = links{t}
		for _, p := range t.Pipes {
			cfg.Pipes = append(cfg.Pipes, simnet.Pipe{ID: p.ID, Ends: p.Ends, Slot: p.Slot, Config: p.Config})
		}
	}
	if w.net, err = simnet.New(w.eng, cfg); err != nil {
		return nil, err
	}
	if err := w.addMedium(); err != nil {
		return nil, err
	}
	(&changes{w: w, todo: t.Changes}).schedule()
	w.rec = backend.NewRecord(s, func(i int) string { return tap.Addr(i).String() })
	return w, nil
}

// tcpConfig is what the nodes' kernels are told of TCP, beside the options of flows.
func tcpConfig(o *spec.TCPOptions) tcp.Config {
	c := tcp.DefaultConfig()
	c.SACK, c.Timestamps = o.SACK, o.Timestamps
	if o.QuickAck {
		c.Ack = tcp.AckEvery
	}
	return c
}

// links is the topology as the network sees it.
type links struct{ t *topology.Topology }

// Egress implements simnet.Links.
func (l links) Egress(from, via int) (simnet.Egress, bool) {
	e, ok := l.t.Egress(from, via)
	return simnet.Egress(e), ok
}

// addMedium makes the medium, where any node has a radio.
func (w *world) addMedium() error {
	t := w.s.Topology
	if len(t.Mute()) == len(t.Nodes) {
		return nil
	}
	if err := w.addMediumOf(w.net); err != nil {
		return err
	}
	w.net.Attach(w.med)
	return nil
}

// addMediumOf makes the medium for a sink.
func (w *world) addMediumOf(sink wifi.Sink) error {
	t := w.s.Topology
	var err error
	if w.med, err = wifi.NewMedium(w.eng, w.s.Seed, t.Channel, t.MACs(), sink); err != nil {
		return err
	}
	drop := w.s.Config().Radio.Drop
	if drop == 0 {
		return nil
	}
	for from := range t.Nodes {
		for to := range t.Nodes {
			if from == to {
				continue
			}
			if err := w.med.SetLoss(from, to, drop); err != nil {
				return err
			}
		}
	}
	return nil
}

// resetStats begins the measured interval.
func (w *world) resetStats() {
	if w.med != nil {
		w.med.ResetStats()
	}
	w.net.ResetStats()
}

// observe takes a round of samples, and what became of messages meanwhile.
func (w *world) observe(now vtime.Time) {
	w.net.Observe(now, w.series.add)
	w.net.Messages(w.keep)
}

func (w *world) keep(node int, m *proto.Message) {
	if err := w.messages.Add(node, m); err != nil && w.unlikely == nil {
		w.unlikely = err
	}
}

// tick is how often a run looks whether it is still wanted, and says how far it
// has come.
const tick = vtime.Second

// run carries the scenario out. The samples are taken before the events of
// their moment, and so are the marks of the measured interval.
func (w *world) run(ctx context.Context, tell backend.Progress) error {
	every := w.s.Config().Sample
	w.net.Start()
	w.observe(0)
	if w.warmup == 0 {
		w.resetStats()
	}
	nextTick, nextSample := vtime.Time(0), vtime.Time(every)
	for now := vtime.Time(0); now < w.end; {
		if now >= nextTick {
			if err := ctx.Err(); err != nil {
				return err
			}
			phase := "warm-up"
			if now >= w.warmup {
				phase = "measure"
			}
			tell(phase, vtime.Duration(now), vtime.Duration(w.end))
			nextTick = now.Add(tick)
		}
		to := min(nextTick, nextSample, w.end)
		if now < w.warmup {
			to = min(to, w.warmup)
		}
		w.net.RunTo(to)
		now = to
		if now == w.warmup {
			w.resetStats()
		}
		if now == nextSample {
			w.observe(now)
			nextSample = now.Add(every)
		}
	}
	tell("collect", vtime.Duration(w.end), vtime.Duration(w.end))
	return nil
}
