package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
)

// saturation holds the UDP flows of a node that fill one of its queues, the radio's
// or a wired link's: always, or when they have messages. They take turns, else the first one would have the
// queue for itself.
//
// A place that becomes free is not filled in the same instant: no process is that
// quick, and packets that the node forwards would never find one. As agents do, the
// sources look at the queue when half of it can have drained since their last look;
// after a departure that moment is uniform within this pause.
type saturation struct {
	net   *Net
	node  int
	port  *port // nil: the radio
	flows []*udpFlow
	turn  int
	look  des.EventID // when the sources look at the queue again; 0: not planned
	draws *des.Stream // of these moments
	left  uint64      // packets that have left since the last look
	at    vtime.Time  // of the last look
	pause vtime.Duration
	rate  float64 // departures per nanosecond; 0: none known
}

// The bounds of the pause, and the pause before any rate is known.
const (
	pauseLeast = 200 * vtime.Microsecond
	pauseMost  = 2 * vtime.Millisecond
	pauseFirst = vtime.Millisecond
)

const (
	// maxVain is how many datagrams in a row may be lost on entering the link
	// (100 % loss, or a node that is down) before the source pauses: their number
	// in an instant would have no end.
	maxVain   = 1000
	vainPause = vtime.Millisecond
)

// join adds a flow, which fills the queue at once.
func (s *saturation) join(now vtime.Time, u *udpFlow) {
	if s.draws == nil {
		number := 0
		if s.port != nil {
			number = s.port.number
		}
		s.draws = des.NewStream(s.net.cfg.Seed, fmt.Sprintf("udp/%d/%d/refill", s.node, number))
	}
	if len(s.flows) == 0 {
		s.at, s.pause = now, pauseFirst
	}
	s.flows = append(s.flows, u)
	s.fill(now)
}

// freed is called when a packet has left the queue.
func (s *saturation) freed(now vtime.Time) {
	if len(s.flows) == 0 {
		return
	}
	s.left++
	if s.look == 0 && s.wanted(now) {
		s.later(now, vtime.Duration(s.draws.IntN(int(s.pause))))
	}
}

// wanted reports whether anybody may want the place: a flow that keeps the queue
// full, or one with a message that waits.
func (s *saturation) wanted(now vtime.Time) bool {
	for _, u := range s.flows {
		if u.ends.receipts == nil || u.wants(now) {
			return true
		}
	}
	return false
}

func (s *saturation) later(now vtime.Time, d vtime.Duration) {
	s.look = s.net.eng.Schedule(now.Add(d), s, uint64(s.node))
}

// Fire implements des.Handler: the sources look at the queue.
func (s *saturation) Fire(now vtime.Time, _ uint64) {
	s.look = 0
	// The fastest that was seen lately: a pause that is too long leaves the link
	// idle, one that is too short costs a look.
	if d := now.Sub(s.at); d > 0 {
		s.rate = max(float64(s.left)/float64(d), float64(0.9*s.rate))
	}
	s.left, s.at = 0, now
	if s.rate > 0 {
		half := float64(max(1, s.limit()/2)) / s.rate
		s.pause = min(max(vtime.Duration(min(half, float64(pauseMost))), pauseLeast), pauseMost)
	}
	s.fill(now)
}

// fill fills the queue.
func (s *saturation) fill(now vtime.Time) {
	vain := 0
	for idle := 0; idle < len(s.flows); {
		u := s.flows[s.turn]
		wants := u.wants(now)
		full := wants && !s.room(now, u)
		if full && s.port != nil {
			return // one FIFO: a smaller datagram of another flow waits its turn
		}
		s.turn = (s.turn + 1) % len(s.flows)
		if !wants || full {
			if !wants {
				u.ends.wait(now)
			}
			idle++
			continue
		}
		idle = 0
		if u.send(now) {
			vain = 0
		} else if vain++; vain == maxVain {
			s.net.eng.Cancel(s.look)
			s.later(now, vainPause)
			return
		}
	}
}

// room reports whether the queue takes one of a flow's datagrams now.
func (s *saturation) room(now vtime.Time, u *udpFlow) bool {
	switch {
	case s.port != nil:
		return s.port.pipe.Room(u.length(now)+udpHeaders) > 0
	case s.net.med == nil:
		return true // no route: what is sent is lost at once
	}
	return s.net.med.Queue(s.node, u.ac).FreePackets > 0
}

// limit is how many of the first flow's datagrams the queue holds.
func (s *saturation) limit() int {
	u := s.flows[0]
	switch {
	case s.port != nil:
		return s.port.pipe.Queued() + s.port.pipe.Room(u.size+udpHeaders)
	case s.net.med == nil:
		return 1
	}
	q := s.net.med.Queue(s.node, u.ac)
	return q.FreePackets + q.Packets
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
