package simnet

import (
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
)

// socket is one end of a TCP connection on a node, with its timer.
type socket struct {
	net  *Net
	node int
	peer *socket
	conn *tcp.Conn
	ac   wifi.AC
	port uint16
	link *link

	event des.EventID
	at    vtime.Time // when event fires; vtime.Never: none
	dead  bool       // replaced by another attempt, or its flow has ended
}

// receive takes a segment from the network.
func (s *socket) receive(now vtime.Time, seg *tcp.Segment) {
	if s.dead {
		return
	}
	s.conn.Receive(now, seg)
	s.link.app.serve(now, s)
	s.flush(now)
}

// Fire implements des.Handler: a deadline of the connection may have come.
func (s *socket) Fire(now vtime.Time, _ uint64) {
	s.at, s.event = vtime.Never, 0
	if s.conn.Deadline() <= now {
		s.conn.Expire(now)
		s.link.app.serve(now, s)
	}
	s.flush(now)
}

// flush sends what the connection has to send and keeps one event at or before
// its deadline. An event that comes too early finds nothing to do and is set
// again: deadlines mostly move back, and need no cancelling then. A socket that was
// killed says nothing more.
func (s *socket) flush(now vtime.Time) {
	if s.dead {
		return
	}
	for {
		seg, ok := s.conn.Poll(now)
		if !ok {
			break
		}
		p := s.net.originate(s.node)
		p.dst, p.ac = int32(s.peer.node), s.ac
		p.len, p.to, p.seg = seg.WireLen(), s.peer, seg
		s.net.deliver(s.node, p)
	}
	if d := s.conn.Deadline(); d < s.at {
		s.net.eng.Cancel(s.event)
		s.at = vtime.Max(d, now)
		s.event = s.net.eng.Schedule(s.at, s, uint64(s.node))
	}
}

// kill ends the socket without a word on the air, or with a reset.
func (s *socket) kill(now vtime.Time, reset bool) {
	if s == nil || s.dead {
		return
	}
	if reset {
		s.conn.Abort(now)
		s.flush(now)
	}
	s.net.hosts[s.node].tcp.add(s.conn)
	s.dead = true
	s.net.eng.Cancel(s.event)
	s.event, s.at = 0, vtime.Never
}

// tcpCounters are a node's sums over its connections, named as the kernel
// names them.
type tcpCounters struct {
	segsOut, segsIn, retrans         uint64
	timeouts, probes, dsacks, undone uint64
}

func (t *tcpCounters) add(c *tcp.Conn) {
	i := c.Info()
	t.segsOut += i.SegsOut
	t.segsIn += i.SegsIn
	t.retrans += i.TotalRetrans
	t.timeouts += i.Timeouts
	t.probes += i.TLPProbes
	t.dsacks += i.DSACKDups
	t.undone += i.SpuriousRTOs
}
