package hopnet

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hopbed/hopbed/agent/transport/datagram"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Node is one Hop node: a UDP socket, the protocol's state machine, and the
// streams and blocks that begin or end here. Its methods may be called by any
// goroutine.
type Node struct {
	cfg   Config
	sock  *datagram.Socket
	base  time.Time // monotonic; the state machine's time is baseNano + what has passed
	nano  int64
	epoch uint64

	done chan struct{} // closed by Close
	over sync.WaitGroup

	mu      sync.Mutex
	hop     *hop.Node
	peers   neighbours
	routes  routes
	counts  Counts
	from    *neighbour          // of the packet that is being taken
	full    bool                // the kernel took no more; try again at retry
	retry   vtime.Time          // …
	given   [hop.NumClasses]int // packets of the radio in the batch
	batch   []packetOf          // the batch's packets, in order
	armed   vtime.Time          // when the loop's present Wait ends
	askAt   vtime.Time          // the next introduction
	sweepAt vtime.Time
	closed  bool
	failure error // of the socket

	nextFlow  hop.FlowID // see flowTo
	senders   map[hop.FlowKey]*sender
	receivers map[hop.FlowKey]*receiver
	ended     []hop.FlowKey // receivers that have everything, oldest first
	sources   map[NodeID]*source
	listeners map[Service]*Listener
	dialling  map[hop.FlowID]*Conn
	bare      int                    // senders that are a preamble and nothing else
	unread    int                    // bytes that nobody has read
	brim      bool                   // they are as many as UnreadLimit allows
	later     []func(now vtime.Time) // what the state machine's calls must not do themselves
	idle      chan struct{}          // closed when the last sender has ended, if somebody waits
}

// packetOf says whose a datagram in the batch is.
type packetOf struct {
	port  hop.Port
	class hop.Class
}

// Open makes a node and starts it.
func Open(cfg Config) (*Node, error) {
	at, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	p := Defaults()
	if cfg.Tune != nil {
		cfg.Tune(&p)
	}
	p.ID = hop.NodeID(cfg.ID)
	n := &Node{cfg: cfg, base: time.Now(), done: make(chan struct{}), armed: vtime.Never,
		senders: make(map[hop.FlowKey]*sender), receivers: make(map[hop.FlowKey]*receiver),
		sources: make(map[NodeID]*source), listeners: make(map[Service]*Listener), dialling: make(map[hop.FlowID]*Conn)}
	n.nano = n.base.UnixNano()
	n.epoch = uint64(n.nano)
	n.nextFlow = firstFlow()
	n.peers.init()
	n.routes.init(&cfg)
	if n.hop, err = hop.NewNode(p, (*network)(n), (*network)(n), (*app)(n)); err != nil {
		return nil, fmt.Errorf("hopnet: %w", err)
	}
	if n.sock, err = datagram.Listen(at, datagram.Options{ReceiveBuffer: cfg.SocketBuffer, SendBuffer: sendBuffer, NoOffload: cfg.NoOffload}); err != nil {
		return nil, fmt.Errorf("hopnet: %w", err)
	}
	for _, p := range cfg.Peers {
		if err := n.addPeer(p); err != nil {
			return nil, errors.Join(err, n.sock.Close())
		}
	}
	n.settle(n.now()) // the first introductions
	n.over.Go(n.run)
	return n, nil
}

// firstFlow begins the numbers of this life's flows at random: a flow's number
// is used once by a source, and an earlier life's may still be remembered
// elsewhere.
func firstFlow() hop.FlowID {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hop.FlowID(binary.BigEndian.Uint32(b[:]))
}

// flowTo returns the number of a new flow. Towards each destination they grow by
// one with every flow of the node; where they begin is another secret for each,
// so that those who see the flows to one cannot guess the flows to another.
func (n *Node) flowTo(dst NodeID) hop.FlowID {
	h := hmac.New(sha256.New, n.peers.secret[:])
	_ = binary.Write(h, binary.BigEndian, uint32(dst))
	n.nextFlow++
	return n.nextFlow + hop.FlowID(binary.BigEndian.Uint32(h.Sum(nil)))
}

// addPeer notes a configured neighbour. n.mu is held, or nobody else knows n.
func (n *Node) addPeer(p Peer) error {
	a, err := resolve(p.Addr)
	switch {
	case err != nil:
		return err
	case a.Addr().IsUnspecified() || a.Port() == 0:
		return fmt.Errorf("hopnet: peer %q: want the address of a host and a port", p.Addr)
	case p.ID != 0 && !p.ID.Valid() || p.ID == n.cfg.ID:
		return fmt.Errorf("hopnet: peer %q: node id %v is this node's, or none", p.Addr, p.ID)
	case n.sock.LocalAddr().Addr().Is4() && !a.Addr().Is4():
		return fmt.Errorf("hopnet: peer %q is %v, but this node is bound to an IPv4 address: listen at [::]:PORT", p.Addr, a.Addr())
	}
	now := n.now()
	x := n.peers.byAddr[a]
	switch other := n.peers.byID[p.ID]; {
	case x != nil && x.fixed:
		return fmt.Errorf("hopnet: peer %v is given twice", a)
	case p.ID != 0 && other != nil && other != x:
		return fmt.Errorf("hopnet: the peers %v and %v have the same id %v", other.addr, a, p.ID)
	}
	if x == nil {
		if x = n.peers.add(now, a, p.ID); x == nil {
			return fmt.Errorf("hopnet: peer %v: there are %d already", a, mostNeighbours)
		}
	}
	x.fixed, x.fixID, x.radio = true, p.ID != 0, p.Radio
	x.askAt, n.askAt = now, now
	return nil
}

// ID is this node's id.
func (n *Node) ID() NodeID { return n.cfg.ID }

// LocalAddr is the UDP address that the node is bound to.
func (n *Node) LocalAddr() netip.AddrPort { return n.sock.LocalAddr() }

// Connect makes the node at a UDP address a neighbour and returns its id once it
// has introduced itself.
func (n *Node) Connect(ctx context.Context, addr string) (NodeID, error) {
	a, err := resolve(addr)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	p := n.peers.byAddr[a]
	if n.closed {
		err = net.ErrClosed
	} else if p == nil || !p.fixed {
		err = n.addPeer(Peer{Addr: a.String()})
		p = n.peers.byAddr[a]
	}
	if err != nil {
		n.mu.Unlock()
		return 0, &Error{Op: "connect to " + addr, Err: err}
	}
	if p.known {
		defer n.mu.Unlock()
		return p.id, nil
	}
	if p.wanted == nil {
		p.wanted = make(chan struct{})
	}
	wanted := p.wanted
	n.settle(n.now())
	n.mu.Unlock()
	select {
	case <-wanted:
	case <-ctx.Done():
		return 0, &Error{Op: "connect to " + addr, Err: fmt.Errorf("no Hop node has answered at %v: %w", a, context.Cause(ctx))}
	case <-n.done:
		return 0, &Error{Op: "connect to " + addr, Err: n.why()}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.id, nil
}

// why is the reason that the node is closed.
func (n *Node) why() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failure != nil {
		return n.failure
	}
	return net.ErrClosed
}

// Shutdown waits until everything that was written to closed streams has been
// acknowledged by its destinations, or ctx ends, and closes the node.
func (n *Node) Shutdown(ctx context.Context) error {
	for {
		n.mu.Lock()
		left := len(n.senders)
		if n.closed || left == 0 {
			n.mu.Unlock()
			return n.Close()
		}
		if n.idle == nil {
			n.idle = make(chan struct{})
		}
		idle := n.idle
		n.mu.Unlock()
		select {
		case <-idle:
		case <-n.done:
		case <-ctx.Done():
			return errors.Join(&Error{Op: "shutdown", Err: fmt.Errorf("%d streams or blocks are not acknowledged: %w", left, context.Cause(ctx))}, n.Close())
		}
	}
}

// Close ends the node at once: its streams fail, and what was not delivered may
// be lost.
func (n *Node) Close() error {
	n.end(nil)
	n.over.Wait()
	return nil
}

// end closes the node, once, for a reason; nil is Close.
func (n *Node) end(reason error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.closed, n.failure = true, reason
	if reason == nil {
		reason = net.ErrClosed
	}
	for _, l := range n.listeners {
		l.fail(reason)
	}
	for _, s := range n.senders {
		s.fail(reason)
	}
	for _, r := range n.receivers {
		r.fail(reason)
	}
	for _, c := range n.dialling {
		c.refuse(reason)
	}
	close(n.done)
	_ = n.sock.Close()
}

// now is the state machine's time: nanoseconds since 1970 at Open, then counted
// by the monotonic clock.
func (n *Node) now() vtime.Time { return vtime.Time(n.nano + int64(time.Since(n.base))) }

func (n *Node) log(format string, args ...any) {
	if n.cfg.Log != nil {
		n.cfg.Log(fmt.Sprintf(format, args...))
	}
}

// Counts are a node's counters.
type Counts struct {
	Hop      hop.NodeStats  // of the state machine
	Socket   datagram.Facts // of the socket
	Received uint64         // datagrams
	// Strangers are datagrams from addresses that nobody is known at; BadIntros
	// introductions that were damaged or contradict another; BadFlows flows whose
	// beginning makes no sense.
	Strangers, BadIntros, BadFlows uint64
	NoticesDropped                 uint64 // too many were not acknowledged
	Neighbours                     int    // now
	Senders, Receivers             int    // flows that begin and end here, now
	Unread                         int    // bytes that nobody has read, now
	// Again are the data packets that were sent again, of the flows that begin here
	// and have not ended.
	Again uint64
}

// Counts returns the node's counters.
func (n *Node) Counts() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counts
	c.Hop, c.Socket = n.hop.Stats(), n.sock.Facts()
	c.Neighbours, c.Senders, c.Receivers, c.Unread = len(n.peers.list), len(n.senders), len(n.receivers), n.unread
	for key := range n.senders {
		s, _ := n.hop.FlowStats(key)
		c.Again += s.Retransmitted
	}
	return c
}
