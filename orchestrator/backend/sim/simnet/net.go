package simnet

import (
	"fmt"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport/hop"
	"github.com/hopbed/hopbed/agent/transport/tcp"
	"github.com/hopbed/hopbed/netem/des"
	"github.com/hopbed/hopbed/netem/vtime"
	"github.com/hopbed/hopbed/netem/wifi"
	"github.com/hopbed/hopbed/netem/winrewrite"
	"github.com/hopbed/hopbed/orchestrator/backend/sim/simhop"
)

// Routes is the static routing table of all nodes.
type Routes interface {
	// NextHop returns the neighbour of node from towards node dst; false when
	// there is no route, or from is dst.
	NextHop(from, dst int) (int, bool)
}

// Config describes the network of one run.
type Config struct {
	Seed   uint64
	Nodes  int
	Routes Routes
	// Pipes are the wired links and Links tells when packets take them; without
	// Links every packet leaves by the radio, for the next hop itself.
	Pipes       []Pipe
	Links       Links
	Flows       []proto.Flow
	Warmup, End vtime.Time // the measured interval is [Warmup, End)
	// Hop is the configuration of every node's Hop; used when a flow is Hop's.
	Hop hop.Config
	// TCP holds the defaults of every connection; flows change them by their
	// options and name the congestion control.
	TCP tcp.Config
	// Rewriting says, by node, how it rewrites the windows in the TCP segments that pass
	// its radio; nil: not.
	Rewriting []*winrewrite.Config
	// RelayDue says whether a sample of a flow at one of its relays is wanted, so
	// that none is made in vain; nil: always.
	RelayDue func(now vtime.Time, flow, node int) bool
}

// Net is the network of one run: the medium's sink, and every flow.
type Net struct {
	eng      *des.Engine
	med      *wifi.Medium
	cfg      Config
	hop      *simhop.Net // nil without a Hop flow
	hosts    []host
	ports    [][2]*port // of the wired links, as in cfg.Pipes
	wires    [][]*port  // the same by node
	outs     [][]out    // by node and neighbour; nil: radio only
	flows    []flow
	talks    []*ends      // of the flows whose data are messages
	hops     []*hopFlow   // those of flows that are Hop's
	stations []*station   // of cooperative TCP, by node; nil: no flow is
	udp      []saturation // per node: the UDP flows that keep its radio's queue full
	pool     tcp.Pool
	packets  *packet
	scratch  proto.Sample
	message  proto.Message // scratch
	events   []proto.Event

	off   []bool          // nodes that are switched off; nil: none ever was
	lives []hop.NodeStats // of Hop at each node before it was switched off last; nil: none ever was
}

// host counts what a node's IP layer does.
type host struct {
	forwarded, noRoute, expired, refused uint64
	tcp                                  tcpCounters
	rewriter                             *winrewrite.Rewriter // nil: it rewrites no windows
	ident                                uint16               // IP identification of its last packet
	ephemeral                            uint16               // ports used by connections that it made
}

// flow is one flow with both its ends.
type flow interface {
	begin(now vtime.Time)
	// end stops the flow at its own stop, before the run's end.
	end(now vtime.Time)
	// observe reports one sample for each side that has something to say.
	observe(now vtime.Time, to Observer)
	// account gives one result for each side, at the end of the run.
	account(now vtime.Time, to func(node int, r proto.FlowResult))
}

// Observer takes one sample; it must not keep s.
type Observer func(node int, s *proto.Sample)

// New makes the network's wired links and flows. Attach gives it its medium; a
// network without a node that has a radio needs none.
func New(eng *des.Engine, cfg Config) (*Net, error) {
	n := &Net{eng: eng, cfg: cfg, hosts: make([]host, cfg.Nodes), udp: make([]saturation, cfg.Nodes)}
	for i := range n.udp {
		n.udp[i].net, n.udp[i].node = n, i
	}
	if err := n.addPipes(); err != nil {
		return nil, err
	}
	if err := n.addRewriters(); err != nil {
		return nil, err
	}
	for i := range cfg.Flows {
		f, err := n.newFlow(&cfg.Flows[i])
		if err != nil {
			return nil, fmt.Errorf("flow %d (%s): %w", cfg.Flows[i].ID, cfg.Flows[i].Transport, err)
		}
		n.flows = append(n.flows, f)
		if h, ok := f.(*hopFlow); ok {
			n.hops = append(n.hops, h)
		}
	}
	if err := n.pair(); err != nil {
		return nil, err
	}
	return n, nil
}

// Attach sets the medium, which is made after its sink.
func (n *Net) Attach(m *wifi.Medium) {
	n.med = m
}

// startSpread is the interval over which flows with one start really begin:
// processes on real nodes do not begin on the same nanosecond either, and the
// phase against the kernel's timer tick (4 ms) is random.
const startSpread = 4 * vtime.Millisecond

// Kinds of the network's own events, in the lowest bit of their argument.
const (
	flowBegins = iota
	flowEnds
	kinds
)

// Start schedules every flow. Each flow's start is spread by a draw of a stream
// of its own.
func (n *Net) Start() {
	for i := range n.flows {
		f := &n.cfg.Flows[i]
		late := des.NewStream(n.cfg.Seed, fmt.Sprintf("flow/%d/start", f.ID)).IntN(int(startSpread))
		if at := f.Start.Add(vtime.Duration(late)); at < n.stopOf(f) {
			n.eng.Schedule(at, n, uint64(i*kinds+flowBegins))
		}
		if f.Stop > 0 && f.Stop < n.cfg.End {
			n.eng.Schedule(f.Stop, n, uint64(i*kinds+flowEnds))
		}
	}
}

// stopOf returns when the flow ends.
func (n *Net) stopOf(f *proto.Flow) vtime.Time {
	if f.Stop > 0 {
		return vtime.Min(f.Stop, n.cfg.End)
	}
	return n.cfg.End
}

// Fire implements des.Handler.
func (n *Net) Fire(now vtime.Time, arg uint64) {
	f := n.flows[arg/kinds]
	if arg%kinds == flowBegins {
		f.begin(now)
	} else {
		f.end(now)
	}
}

// RunTo fires every event before t and moves the clock to t, so that what
// happens at t itself belongs to the time after it. It must be called at least
// once in two seconds of virtual time (hop.Config.GrantExpiry): Hop counts a
// partial block until then and forgets it if it gives it up.
func (n *Net) RunTo(t vtime.Time) {
	if t > n.eng.Now() {
		n.eng.RunUntil(t - 1)
		n.eng.AdvanceTo(t)
	}
	for _, h := range n.hops {
		h.progress(t - 1)
	}
}

// newSample empties the scratch sample for one side of a flow. Its fields are set one
// by one, in place: a literal would be built elsewhere and copied.
func (n *Net) newSample(flow int, side proto.Side, now vtime.Time) *proto.Sample {
	s := &n.scratch
	*s = proto.Sample{}
	s.Flow, s.Side, s.T = flow, side, now
	return s
}

func (n *Net) relayDue(now vtime.Time, flow, node int) bool {
	return n.cfg.RelayDue == nil || n.cfg.RelayDue(now, flow, node)
}

// Observe reports the state of every flow.
func (n *Net) Observe(now vtime.Time, to Observer) {
	for i, f := range n.flows {
		if now >= n.cfg.Flows[i].Start {
			f.observe(now, to)
		}
	}
}

// deliver puts a packet of this node on its way and takes it over. It reports
// false when the packet was lost at once.
func (n *Net) deliver(from int, p *packet) bool {
	via, ok := n.cfg.Routes.NextHop(from, int(p.dst))
	if !ok {
		n.hosts[from].noRoute++
		n.freePacket(p)
		return false
	}
	p.via = int32(via)
	return n.emit(from, p)
}

// emit hands a packet for the next hop p.via to the link that leads there, and
// takes it over.
func (n *Net) emit(from int, p *packet) bool {
	w, next, ok := n.out(from, int(p.via))
	if !ok || w == nil && n.med == nil {
		n.hosts[from].noRoute++
		n.freePacket(p)
		return false
	}
	if w != nil {
		return w.send(p)
	}
	if window, ok := n.rewritten(from, p, winrewrite.Down); ok {
		p.seg.Window = window
	}
	f := n.med.NewFrame()
	f.Src, f.Dst, f.AC, f.Len, f.Payload = from, next, p.ac, p.len, p
	if !n.med.Enqueue(f) {
		// The queue is full: a TAP does not push back, so the packet is lost
		// and its sender is not told.
		n.hosts[from].refused++
		n.freePacket(p)
		return false
	}
	return true
}

// Deliver implements wifi.Sink: a frame has reached a node.
func (n *Net) Deliver(now vtime.Time, node int, f *wifi.Frame) {
	if p := f.Payload.(*packet); p.beacon {
		n.heard(now, node, int(p.src))
		return
	}
	p, own := f.Payload.(*packet), false
	if window, ok := n.rewritten(node, p, winrewrite.Up); ok {
		// The sender may repeat the frame: what is on the air stays as it is.
		p, own = n.copyPacket(p), true
		p.seg.Window = window
	}
	n.arrive(now, node, p, own)
}

// arrive takes a packet from a link. One that came by wire is the node's own;
// one from the radio stays its sender's, who may still repeat the frame.
func (n *Net) arrive(now vtime.Time, node int, p *packet, own bool) {
	if bridged := int(p.via) != node; bridged || int(p.dst) != node {
		if !own {
			p = n.copyPacket(p)
		}
		if bridged {
			n.emit(node, p)
		} else {
			n.forward(node, p)
		}
		return
	}
	switch {
	case p.hop != nil:
		n.hop.Receive(now, node, int(p.src), p.hop)
	case p.udp != nil:
		p.udp.receive(now, p)
	default:
		p.to.receive(now, p.seg)
	}
	if own {
		n.freePacket(p)
	}
}

// forward passes a packet on by the routing table and takes it over.
func (n *Net) forward(node int, p *packet) {
	h := &n.hosts[node]
	if p.ttl <= 1 {
		h.expired++
		n.freePacket(p)
		return
	}
	h.forwarded++
	p.ttl--
	n.deliver(node, p)
}

// Done implements wifi.Sink: a frame has left its sender's queue. What became
// of it is not the business of IP.
func (n *Net) Done(now vtime.Time, f *wifi.Frame, o wifi.Outcome) {
	p := f.Payload.(*packet)
	if p.hop != nil {
		n.hopLeft(now, f.Src, p)
		n.freePacket(p)
		return
	}
	n.freePacket(p)
	n.udp[f.Src].freed(now)
}

// maxEvents bounds the events kept of one run.
const maxEvents = 10_000

// event notes a change in a flow's life.
func (n *Net) event(node, flow int, side proto.Side, kind proto.EventKind, at vtime.Time, err *proto.Error) {
	n.record(proto.Event{Node: node, Flow: flow, Side: side, Kind: kind, T: at, Error: err})
}

func (n *Net) record(e proto.Event) {
	if len(n.events) < maxEvents {
		n.events = append(n.events, e)
	}
}

// Events returns what happened to the flows, in the order of time.
func (n *Net) Events() []proto.Event { return n.events }
