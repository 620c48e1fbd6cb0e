//go:build linux

package session

import (
	"time"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
)

// readClock reads both clocks.
func readClock() proto.Clock {
	return proto.Clock{MonotonicNS: probe.MonotonicNS(), UnixNS: time.Now().UnixNano()}
}

// reading is a clock that was read when its order came.
type reading struct {
	order proto.Envelope
	clock proto.Clock
}

// tellTime answers clock orders beside the others, which may take long: the
// controller takes the answers for the agent's sign of life.
func (s *session) tellTime(readings <-chan reading, done <-chan struct{}) {
	for {
		select {
		case r := <-readings:
			// The reader of orders sees a broken stream.
			if err := proto.DecodeBody(r.order, nil); err != nil {
				_ = s.srv.Fail(r.order, err)
				continue
			}
			_ = s.srv.Reply(r.order, r.clock)
		case <-done:
			return
		}
	}
}
