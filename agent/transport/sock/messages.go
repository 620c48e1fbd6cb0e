//go:build linux

package sock

import (
	"iter"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/workload"
)

// Begin gives the schedule to the ends of stream flows at one node, before any of
// them sends or receives, and joins those that are the two directions of one
// exchange.
func Begin(sched transport.Schedule, sources []*Source, sinks []*Sink) error {
	for _, s := range sources {
		if err := s.Begin(sched); err != nil {
			return err
		}
	}
	for _, s := range sinks {
		if err := s.Begin(sched); err != nil {
			return err
		}
		for _, peer := range sources {
			if s.flow.Peer != nil && *s.flow.Peer == peer.flow.ID {
				s.peer = peer
			}
		}
	}
	return nil
}

// report appends receipts as messages of the flow until to has the length most;
// the others wait.
func report(to []proto.Message, most, flow int, receipts iter.Seq[workload.Receipt]) []proto.Message {
	if len(to) >= most {
		return to
	}
	for r := range receipts {
		if to = append(to, proto.Message{Flow: flow, Receipt: r}); len(to) >= most {
			break
		}
	}
	return to
}
