package hop

import "github.com/hopbed/hopbed/netem/vtime"

// port is one of the node's interfaces, with everything that waits for it.
// Ports share nothing on the send side: a full queue holds up its own port
// only.
type port struct {
	id   Port
	wire bool
	mac  [NumClasses]macQueue // a wire uses the first for both classes

	control  fifo[controlItem]
	replies  int          // items of control that belong to no block or flow
	micro    fifo[*block] // micro-blocks with packets to send
	ring     fifo[*flow]  // flows with packets to send, round robin
	credit   int          // packets left of the first flow's txop
	draining fifo[*block] // rounds that have not left the MAC
	look     timer
	active   bool // in Node.active

	gap      gapState // radio only
	gapTimer timer
	ahead    ahead // wire only
}

// nowherePort is the id of the port of what has no route just now.
const nowherePort Port = -1

// newPort makes a port.
func (n *Node) newPort(id Port) *port {
	p := &port{id: id, wire: id != RadioPort, credit: n.cfg.quantum()}
	p.look.kind, p.look.p = timerLook, p
	p.gapTimer.kind, p.gapTimer.p = timerLook, p
	p.ahead.n = p.leastAhead(&n.cfg)
	return p
}

// port returns the port with the id, made when it is first named.
func (n *Node) port(id Port) *port {
	for int(id) >= len(n.ports) {
		n.ports = append(n.ports, nil)
	}
	if n.ports[id] == nil {
		n.ports[id] = n.newPort(id)
	}
	return n.ports[id]
}

// portTo returns the port towards a neighbour.
func (n *Node) portTo(to NodeID) *port { return n.port(n.radio.Port(to)) }

// portToward returns the port towards the next hop on the way to dst, and
// nowhere if there is none.
func (n *Node) portToward(dst NodeID) *port {
	if next, ok := n.routes.NextHop(dst); ok {
		return n.portTo(next)
	}
	return n.nowhere
}

// queue returns the port's queue for a class.
func (p *port) queue(c Class) *macQueue {
	if p.wire {
		c = Data
	}
	return &p.mac[c]
}

// activate has Poll look at the port.
func (n *Node) activate(p *port) {
	if !p.active {
		p.active = true
		n.active = append(n.active, p)
	}
}

// idle reports whether nothing waits for the port.
func (p *port) idle() bool {
	return p.control.len() == 0 && p.micro.len() == 0 && p.ring.len() == 0 && p.draining.len() == 0
}

// inRing reports whether the flow is in the port's round robin.
func (p *port) inRing(f *flow) bool {
	for i := range p.ring.len() {
		if *p.ring.at(i) == f {
			return true
		}
	}
	return false
}

// push queues a control message at the port through which it has to leave.
func (n *Node) push(c controlItem) {
	p := n.portOf(&c)
	p.control.push(c)
	n.activate(p)
}

// portOf returns the port through which a control message has to leave now.
func (n *Node) portOf(c *controlItem) *port {
	switch c.kind {
	case sendBSYN:
		if c.b.port == nil {
			return n.nowhere
		}
		return c.b.port
	case sendBACK:
		return n.portTo(c.b.from)
	case sendVBSYN:
		return n.portToward(c.f.key.Dst)
	case sendE2E:
		return n.portToward(c.f.key.Src)
	case forwardE2E:
		return n.portToward(c.hdr.key.Src)
	}
	return n.portTo(c.to)
}

// elsewhere moves a control message that was taken from the port to another
// one, if the routes have changed since it was queued.
func (n *Node) elsewhere(p *port, c *controlItem) bool {
	q := n.portOf(c)
	if q == p || q == n.nowhere {
		return false // without a route it ends here
	}
	if c.kind >= sendFull {
		p.replies--
		q.replies++
	}
	q.control.push(*c)
	n.activate(q)
	n.moved = true
	return true
}

// reroute is called when nothing has left a wire for a while: it may be down,
// and what waits for it may have another way by now. (A radio gives up what it
// cannot send; its blocks look for a route at their next BSYN.)
func (n *Node) reroute(now vtime.Time, p *port) {
	for i := 0; i < p.control.len(); i++ {
		if c := p.control.at(i); c.kind == sendBSYN && n.followRoute(now, c.b) {
			i-- // it is owed no more, or at another port
		}
	}
	p.control.remove(func(c *controlItem) bool { return n.elsewhere(p, c) })
	for i := 0; i < p.ring.len(); i++ {
		for _, b := range (*p.ring.at(i)).blocks {
			if b.port == p && b.tx == txSending {
				n.followRoute(now, b)
			}
		}
	}
	for _, q := range []*fifo[*block]{&p.micro, &p.draining} {
		for i := 0; i < q.len(); i++ {
			if n.followRoute(now, *q.at(i)) {
				i-- // it has left the list
			}
		}
	}
}

// followRoute begins a transfer again if the routes name another next hop, or
// another port towards it.
func (n *Node) followRoute(now vtime.Time, b *block) bool {
	next, ok := n.routes.NextHop(b.f.key.Dst)
	if !ok || next == b.next && n.portTo(next) == b.port {
		return false
	}
	n.stopSending(b)
	n.start(now, b)
	return true
}
