package simnet

import (
	"encoding/binary"
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/winrewrite"
)

// addRewriters makes the filters of the nodes that rewrite windows.
func (n *Net) addRewriters() error {
	for i, cfg := range n.cfg.Rewriting {
		if cfg == nil {
			continue
		}
		var err error
		if n.hosts[i].rewriter, err = winrewrite.New(*cfg); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	return nil
}

// rewritten shows a packet that passes a node's radio to the node's filter, and
// returns the window that it is to have instead of its own; false: none.
func (n *Net) rewritten(node int, p *packet, d winrewrite.Direction) (uint16, bool) {
	r := n.hosts[node].rewriter
	if r == nil || p.seg == nil {
		return 0, false
	}
	s := winrewrite.Segment{
		Src: address(p.to.peer), Dst: address(p.to), SYN: p.seg.Flags&tcp.SYN != 0,
		Window: p.seg.Window, Payload: p.seg.Len, MSS: p.seg.MSS, WScale: p.seg.WScale,
	}
	to := r.See(n.eng.Now(), &s, d)
	return to, to != s.Window
}

// address stands for a socket's in the filters: its node's number in place of an
// address.
func address(s *socket) (a winrewrite.Addr) {
	binary.BigEndian.PutUint64(a.IP[8:], uint64(s.node))
	a.Port = s.port
	return a
}

// rewriteCounters are those of a node's filter over the whole run, nil without one.
func (n *Net) rewriteCounters(node int) []proto.Counter {
	r := n.hosts[node].rewriter
	if r == nil {
		return nil
	}
	var out []proto.Counter
	for _, c := range r.Stats().Counters() {
		out = append(out, proto.Counter{Name: c.Name, Delta: c.Value})
	}
	return out
}
