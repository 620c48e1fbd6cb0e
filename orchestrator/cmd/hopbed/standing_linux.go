package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/hopbed/hopbed/agent/session"
	"github.com/hopbed/hopbed/agent/transport/bundle/daemon"
	"github.com/hopbed/hopbed/experiments/topology"
	"github.com/hopbed/hopbed/internal/journal"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/orchestrator/backend/live"
	"github.com/hopbed/hopbed/orchestrator/lab"
	"github.com/hopbed/hopbed/orchestrator/node"
	"github.com/hopbed/hopbed/orchestrator/node/netns"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// openStanding makes the back end of a network that is kept standing. Its journal
// ends with it.
func openStanding(ctx context.Context, warn func(string)) (*live.Backend, *journal.Journal, error) {
	j, record, err := openJournal(ctx, warn)
	if err != nil {
		return nil, nil, err
	}
	return live.New(live.Options{
		Name: "netns", Controller: version(), Tag: j.Tag(),
		Env:     []string{netns.TagVariable + "=" + j.Tag()},
		Journal: record,
		Close: func() error {
			_, err := daemon.SweepStorage(os.TempDir())
			return errors.Join(err, j.Close())
		},
		NewDriver: func() (node.Driver, error) {
			return netns.New(netns.Options{Part: session.Part, Tag: j.Tag(), Journal: record})
		},
	}), j, nil
}

// plainSettings takes out of a scenario what belongs to its flows: variants of
// their transports that are settings of the radio's queues.
func plainSettings(s *plan.Scenario) (*plan.Scenario, *lab.Settings, error) {
	cfg := *s.Config()
	cfg.Flows, cfg.Topology.Changes = nil, nil
	t := *s.Topology
	t.Changes = nil
	var err error
	if len(t.Mute()) < len(t.Nodes) {
		if t.MAC, err = topology.MAC(&cfg); err != nil {
			return nil, nil, err
		}
	}
	out := *s
	out.Topology, out.Flows = &t, nil
	out.Run.Point.Config = &cfg
	settings, err := lab.NewSettings(&out)
	return &out, settings, err
}

// network is a live network as a keeper wants it.
type network struct{ *live.Network }

// stand brings a network up; log takes what it does, step by step.
func stand(ctx context.Context, b *live.Backend, s *plan.Scenario, o live.Standing, log io.Writer) (*network, error) {
	n, err := b.Stand(ctx, s, o, func(step string, _, _ vtime.Duration) { lab.Logf(log, "%s", step) })
	if err != nil {
		return nil, err
	}
	return &network{n}, nil
}

// Nodes implements lab.Network.
func (n *network) Nodes() []lab.Node {
	var out []lab.Node
	for _, x := range n.Network.Nodes() {
		out = append(out, lab.Node{Name: x.Name, PID: x.PID, Addr: x.Addr.String(), Interfaces: x.Interfaces})
	}
	return out
}
