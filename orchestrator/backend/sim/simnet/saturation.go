package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/vtime"
)

// saturation holds the UDP flows of a node that keep one of its queues full: the
// radio's, or a wired link's. They take turns, else the first one would have the
// queue for itself.
type saturation struct {
	net   *Net
	node  int
	port  *port // nil: the radio
	flows []*udpFlow
	turn  int
	// waits: nothing was taken although there was room; the next try is an event.
	waits bool
}

const (
	// maxVain is how many datagrams in a row may be lost on entering the link
	// (100 % loss, or a node that is down) before the source pauses: their number
	// in an instant would have no end.
	maxVain   = 1000
	vainPause = vtime.Millisecond
)

func (s *saturation) fill(now vtime.Time) {
	vain := 0
	for idle := 0; idle < len(s.flows) && !s.waits; {
		u := s.flows[s.turn]
		full := u.running && !s.room(u)
		if full && s.port != nil {
			return // one FIFO: a smaller datagram of another flow waits its turn
		}
		s.turn = (s.turn + 1) % len(s.flows)
		if !u.running || full {
			idle++
			continue
		}
		idle = 0
		if u.send() {
			vain = 0
		} else if vain++; vain == maxVain {
			s.waits = true
			s.net.eng.Schedule(now.Add(vainPause), s, uint64(s.node))
		}
	}
}

func (s *saturation) room(u *udpFlow) bool {
	if s.port != nil {
		return s.port.pipe.Room(u.size+udpHeaders) > 0
	}
	return s.net.med == nil || s.net.med.Queue(s.node, u.ac).FreePackets > 0
}

// Fire implements des.Handler: the pause after many losses is over.
func (s *saturation) Fire(now vtime.Time, _ uint64) {
	s.waits = false
	s.fill(now)
}

// fillable returns why no flow can keep the link's queue full: whoever tried
// would send without end in an instant.
func (w *port) fillable() error {
	why := func(what string) error {
		return fmt.Errorf("it is to keep the queue full, but the wired link from node %d to node %d has no %s: give the flow a rate, or the link a rate and a queue", w.node, w.peer, what)
	}
	c := w.cfg
	if c.Trace == nil && c.Rate == 0 {
		return why("rate")
	}
	if c.Queue.Packets == 0 && c.Queue.Bytes == 0 {
		return why("limit of its queue")
	}
	for _, ch := range c.Schedule {
		if ch.Rate != nil && *ch.Rate == 0 {
			return why(fmt.Sprintf("rate from %v on", vtime.Duration(ch.At)))
		}
		if ch.Queue != nil && ch.Queue.Packets == 0 && ch.Queue.Bytes == 0 {
			return why(fmt.Sprintf("limit of its queue from %v on", vtime.Duration(ch.At)))
		}
	}
	return nil
}

// instant reports whether a packet may pass the link in no time at all.
func (w *port) instant() bool {
	c := w.cfg
	unlimited, immediate := c.Trace == nil && c.Rate == 0, c.Delay == 0
	for _, ch := range c.Schedule {
		unlimited = unlimited || ch.Rate != nil && *ch.Rate == 0
		immediate = immediate || ch.Delay != nil && *ch.Delay == 0
	}
	return unlimited && immediate
}

// takesTime returns an error for a path over which any number of packets passes
// in one instant of virtual time: a flow over it would never let time go on.
func (n *Net) takesTime(from, to int) error {
	via := from
	for x, links := from, 0; x != to; links++ {
		if x == via {
			var ok bool
			if via, ok = n.cfg.Routes.NextHop(x, to); !ok {
				return nil // nothing passes at all
			}
		}
		w, next, ok := n.out(x, via)
		if !ok || w == nil || !w.instant() || links > n.cfg.Nodes {
			return nil
		}
		x = next
	}
	return fmt.Errorf("all links from node %d to node %d are wired and have neither rate nor delay: data would pass infinitely fast; give one of them a rate or a delay", from, to)
}
