//go:build linux

package session

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
)

// message waits to be sent.
type message struct {
	typ  proto.Type
	body any
}

// post sends events and logs in the background, so that a flow never waits for
// the controller to read.
func (s *session) post() {
	for {
		select {
		case m := <-s.outbox:
			// A broken stream shows itself to the reader of orders; nothing more
			// can be said on it.
			_ = s.srv.Send(m.typ, m.body)
			s.flushed.Done()
		case <-s.ended:
			return
		}
	}
}

func (s *session) send(typ proto.Type, body any) {
	s.flushed.Add(1)
	select {
	case s.outbox <- message{typ, body}:
	default:
		s.flushed.Done()
		s.dropped.Add(1)
	}
}

func (s *session) nodeID() int {
	if s.cfg == nil {
		return -1
	}
	return s.cfg.Node
}

// maxLogLines bounds what flows may log in one run: a fault that repeats must
// not fill the controller's disk.
const maxLogLines = 200

// flowLog is the log of the transports.
func (s *session) flowLog(node int, level, text string) {
	if s.logged.Add(1) > maxLogLines {
		s.dropped.Add(1)
		return
	}
	s.send(proto.TypeLog, proto.Log{Node: node, Level: level, Message: text})
}

func (s *session) log(level, text string) {
	s.send(proto.TypeLog, proto.Log{Node: s.nodeID(), Level: level, Message: text})
}

// flush waits until events and logs are written.
func (s *session) flush() {
	if n := s.dropped.Swap(0); n > 0 {
		s.log("warn", fmt.Sprintf("%d events and log lines were dropped: there were more than %d lines, or the controller did not read", n, maxLogLines))
	}
	s.flushed.Wait()
}
