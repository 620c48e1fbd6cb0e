package backend

import (
	"fmt"
	"os"

	"github.com/hopbed/hopbed/netem/capture"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Capture asks a back end to record what passes on a run's links. The run itself
// is the same with and without.
type Capture struct {
	// Packets takes a pcapng file and Events the event log; either may be nil.
	// Both are open for writing and empty, and stay their owner's.
	Packets, Events *os.File
	SnapLen         vtime.Bytes // of each packet, from its IP header on; 0 = all
	At              []string    // interfaces; none: all
	Comment         string      // describes the run

	// What became of it, filled in by the back end: the errors are why either file
	// is incomplete, a full disk mostly. They do not spoil the run.
	Stats                 capture.Stats
	PacketsErr, EventsErr error
}

// Config describes a scenario's network to a capture. Who gives the packets'
// bytes is the back end's to add.
func (c *Capture) Config(s *plan.Scenario) capture.Config {
	t := s.Topology
	cfg := capture.Config{SnapLen: c.SnapLen, At: c.At, Comment: c.Comment}
	radios := 0
	for i := range t.Nodes {
		cfg.Nodes = append(cfg.Nodes, t.Nodes[i].Name)
		if t.Nodes[i].Radio {
			radios++
		}
	}
	if radios > 0 {
		cfg.MACs = []wifi.MAC{t.MAC}
	}
	for i := range t.Pipes {
		p := &t.Pipes[i]
		cfg.Links = append(cfg.Links, capture.Link{Ends: p.Ends, Interfaces: p.Interfaces, Rate: [2]vtime.BitRate{capture.SteadyRate(&p.Config[0]), capture.SteadyRate(&p.Config[1])}})
	}
	return cfg
}

// Check reports an interface of c.At that a scenario does not have.
func (c *Capture) Check(s *plan.Scenario) error {
	if _, err := capture.NewSniffer(c.Config(s), nil, nil); err != nil {
		return fmt.Errorf("%s, repetition %d: %w", s.Label(), s.Repetition, err)
	}
	return nil
}
