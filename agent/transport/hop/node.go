package hop

import "github.com/hopbed/hopbed/netem/vtime"

// Node is one node's Hop. It is not safe for concurrent use. After each call
// of Receive, Expire, TxDone, OpenFlow, Wake or CloseFlow the driver calls
// Poll until it returns false and sends what it got, then reads Deadline and
// calls Expire at that time or later.
type Node struct {
	cfg    Config
	radio  Radio
	routes Routes
	app    App

	flows  []*flow           // in the order in which they were met
	index  map[FlowKey]*flow // for look-ups only: never iterated
	looked *flow             // the last one looked up

	ports   []*port // by id; nil: not used so far
	nowhere *port   // of what has no route just now
	active  []*port // those for which something waits
	turn    int     // where in active the next Poll begins
	moved   bool    // a message has moved to another port
	dice    uint64  // of the gaps' lengths

	heldLarge bool     // destinations take no large block (hold.go)
	granted   *block   // the large block being received; nil: none
	waiting   []*block // announcements withheld, in the order of arrival

	timers         timers
	memory         vtime.Bytes // block buffers in use
	ownBytes       vtime.Bytes // those of flows that begin here
	oldest, newest *block      // cache
	pool           []*block
	buffers        [numClasses][]*buffer // free ones

	stats   NodeStats
	in      message
	out     *Message // the one to build
	built   Message  // that of Poll
	scratch [MaxPacket]byte
}

// NewNode returns a node without flows, or an error for an invalid
// configuration.
func NewNode(cfg Config, radio Radio, routes Routes, app App) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, radio: radio, routes: routes, app: app, index: make(map[FlowKey]*flow)}
	n.nowhere = n.newPort(nowherePort)
	n.dice = mix(uint64(cfg.ID))
	return n, nil
}

// Config returns the node's parameters.
func (n *Node) Config() Config { return n.cfg }

// OpenFlow starts a flow from this node at now. It fails if the flow exists,
// if dst is this node, or if an option is out of range.
func (n *Node) OpenFlow(now vtime.Time, id FlowID, dst NodeID, src Source, opt FlowOptions) error {
	return n.openFlow(now, FlowKey{Src: n.cfg.ID, Dst: dst, Flow: id}, src, opt)
}

// Wake tells that a Source that had nothing has bytes again.
func (n *Node) Wake(now vtime.Time, id FlowID, dst NodeID) {
	if f := n.lookup(FlowKey{Src: n.cfg.ID, Dst: dst, Flow: id}); f != nil && f.role == SourceRole {
		f.dry = false
		n.pump(now, f)
		n.settle(now, f)
	}
}

// CloseFlow ends a flow at this node. At the source no further block is taken
// from the Source; blocks under way are still delivered. With abort, at any
// role, the flow's blocks and state are dropped at once.
func (n *Node) CloseFlow(now vtime.Time, key FlowKey, abort bool) {
	f := n.lookup(key)
	if f == nil {
		return
	}
	if abort {
		n.forget(f)
		n.regrant(now)
		return
	}
	if f.role == SourceRole {
		f.ended = true
		n.settle(now, f)
	}
}

// Receive takes a packet that the neighbour from sent. pkt is not kept.
func (n *Node) Receive(now vtime.Time, from NodeID, pkt []byte) {
	m := &n.in
	if err := parse(m, pkt); err != nil {
		n.stats.BadPackets++
		return
	}
	n.receive(now, from, m)
}

// receive takes a well-formed message.
func (n *Node) receive(now vtime.Time, from NodeID, m *message) {
	if from == n.cfg.ID {
		n.stats.Unexpected++
		return
	}
	n.stats.Received++
	switch m.typ {
	case typeData:
		n.onData(now, from, m)
	case typeBSYN, typeVBSYN:
		n.onAnnounce(now, from, m)
	case typeBACK:
		n.onBACK(now, from, m)
	case typeVBACK:
		n.onVBACK(now, from, m)
	case typeE2EBACK:
		n.onE2E(now, m)
	}
}

// Expire fires the timers due at now.
func (n *Node) Expire(now vtime.Time) {
	for t := n.timers.pop(now); t != nil; t = n.timers.pop(now) {
		switch t.kind {
		case timerSend:
			n.sendExpired(now, t.b)
		case timerReceive:
			n.grantExpired(now, t.b)
		case timerVirtual:
			n.virtualExpired(now, t.b)
		case timerLook:
			// Poll, which the driver calls next, looks at the queues.
			if p := t.p; p.wire && now.Sub(p.mac[Data].progress) >= lookRepair {
				n.reroute(now, p)
			}
		}
	}
}

// Deadline returns when Expire has work to do, vtime.Never if at no time.
func (n *Node) Deadline() vtime.Time { return n.timers.next() }

// TxDone tells that k packets of the class have left the port's queue, sent or
// dropped, in the order in which they were given; on a wire, whose queue both
// classes share, c is not looked at. k = 0 only says that the queue's free
// space may have changed.
func (n *Node) TxDone(now vtime.Time, p Port, c Class, k int) {
	if p < 0 || int(p) >= len(n.ports) || n.ports[p] == nil || c >= NumClasses {
		return // nothing was ever given to it
	}
	x := n.ports[p]
	x.queue(c).done(now, k)
	if x.wire && k > 0 {
		x.departed(now, &n.cfg)
	}
}
