//go:build linux

package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// DefaultBuffer is the most that a relay holds of a flow unless the flow says
// otherwise: one Hop block.
const DefaultBuffer = 1 * vtime.MiB

// The share of a relay's bound that each place may use. The kernel doubles the
// sizes that are asked for and counts its overhead in them (socket(7)), so a
// buffer for which an eighth is asked holds at most a quarter of payload.
const (
	ringShare   = 2 // the relay's own buffer: a half, less a piece that is being written
	socketShare = 8 // each of the two sockets
)

// minBuffer keeps the socket buffers above a few segments.
const minBuffer = 64 * vtime.KiB

// Driver is the driver of "hop-by-hop-tcp/CC".
type Driver struct{}

// Family returns "hop-by-hop-tcp".
func (Driver) Family() string { return "hop-by-hop-tcp" }

// Wanted is false: only the nodes of a flow's path relay it.
func (Driver) Wanted(*transport.Node) bool { return false }

// Check refuses a flow without congestion control or path, and the options of
// other transports.
func (Driver) Check(f *proto.Flow) error {
	if _, cc := transport.Split(f.Transport); cc == "" {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Got: f.Transport, Wanted: "hop-by-hop-tcp/CC, such as hop-by-hop-tcp/cubic"}
	}
	if len(f.Path) < 2 {
		return &proto.Error{Code: proto.CodeOrder, What: "path", Got: fmt.Sprint(f.Path), Wanted: "the nodes from source to destination"}
	}
	o := f.Options
	if o.RelayBuffer != 0 && (o.RelayBuffer < minBuffer || o.RelayBuffer > vtime.GiB) {
		return &proto.Error{Code: proto.CodeOrder, What: "option relay_buffer", Got: o.RelayBuffer.String(), Wanted: fmt.Sprintf("%v to %v", minBuffer, vtime.GiB)}
	}
	// The socket buffers follow from the relay's bound.
	return sock.CheckStreamOptions(f, []sock.Foreign{{Name: "block_size", Set: o.BlockSize != 0}, {Name: "rate", Set: o.Rate != 0}, {Name: "packet_size", Set: o.PacketSize != 0},
		{Name: "send_buffer", Set: o.SendBuffer != 0}, {Name: "receive_buffer", Set: o.ReceiveBuffer != 0},
		{Name: "receive_window", Set: o.ReceiveWindow != 0}, {Name: "cwnd_cap", Set: o.CwndCap != 0}})
}

// bound is the most that a relay may hold of a flow.
func bound(f *proto.Flow) vtime.Bytes {
	if f.Options.RelayBuffer > 0 {
		return f.Options.RelayBuffer
	}
	return DefaultBuffer
}

// socketOptions are those of one hop's connection, bounded on the sides that
// are asked for.
func socketOptions(f *proto.Flow, send, receive bool) sock.Options {
	_, cc := transport.Split(f.Transport)
	opt := sock.FlowOptions(f, cc)
	if send {
		opt.SendBuffer = bound(f) / socketShare
	}
	if receive {
		opt.ReceiveBuffer = bound(f) / socketShare
	}
	return opt
}

// endpoint is the node's part in all hop-by-hop flows.
type endpoint struct {
	node     *transport.Node
	listener *net.TCPListener
	setups   []proto.FlowSetup
	sources  []*sock.Source
	sinks    map[uint32]*sock.Sink
	relays   map[uint32]*flow
	order    []uint32 // of sinks and relays, for results
	flows    map[uint32]proto.Flow

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sched  transport.Schedule
}

// Open listens on the relay port if a flow comes through or ends here.
func (Driver) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &endpoint{node: n, sinks: make(map[uint32]*sock.Sink), relays: make(map[uint32]*flow), flows: make(map[uint32]proto.Flow)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if err := e.open(flows); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *endpoint) open(flows []proto.Flow) error {
	listen := sock.Options{}
	incoming := false
	for _, f := range flows {
		if err := e.add(f); err != nil {
			w := *proto.AsError(err, proto.CodeSystem)
			w.What = fmt.Sprintf("flow %d: %s", f.ID, w.What)
			return &w
		}
		if side, _ := e.node.Side(&f); side != proto.Source {
			incoming = true
			// A connection's first window is given before its flow is known, so the
			// listener has the smallest buffer of all; an accepted connection then
			// gets its own.
			if r := bound(&f) / socketShare; listen.ReceiveBuffer == 0 || r < listen.ReceiveBuffer {
				listen.ReceiveBuffer = r
			}
		}
	}
	if !incoming {
		return nil
	}
	l, err := sock.Listen(netip.AddrPortFrom(e.node.Addr, transport.RelayPort), listen)
	if err != nil {
		return err
	}
	e.listener = l
	return nil
}

// add prepares one flow, trying its options on a socket.
func (e *endpoint) add(f proto.Flow) error {
	id := uint32(f.ID)
	e.flows[id] = f
	side, _ := e.node.Side(&f)
	if side == proto.Destination {
		opt := socketOptions(&f, false, false)
		// The listener's bound is for relays; a destination reads at once.
		opt.ReceiveBuffer = bound(&f) / 2
		e.sinks[id] = sock.NewSink(e.node, f, opt)
		e.order = append(e.order, id)
		return e.try(f, side, opt)
	}
	next, err := e.nextHop(&f)
	if err != nil {
		return err
	}
	opt := socketOptions(&f, side == proto.Relay, false)
	if err := e.try(f, side, opt); err != nil {
		return err
	}
	if side == proto.Relay {
		e.relays[id] = newFlow(e, f, next)
		e.order = append(e.order, id)
		return nil
	}
	h := Header{Flow: id, Src: uint32(f.Src), Dst: uint32(f.Dst)}
	s, err := sock.NewSource(e.node, f, opt, next, h.Append(nil))
	if err != nil {
		return err
	}
	e.sources = append(e.sources, s)
	return nil
}

// try applies the options to a socket, so that what the kernel lacks is known
// before the run.
func (e *endpoint) try(f proto.Flow, side proto.Side, opt sock.Options) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "socket", Detail: err.Error()}
	}
	defer unix.Close(fd)
	if err := opt.Apply(fd); err != nil {
		return err
	}
	e.setups = append(e.setups, sock.Setup(fd, f.ID, side))
	return nil
}

// neighbour returns the node before (−1) or after (+1) this one on the path.
func (e *endpoint) neighbour(f *proto.Flow, step int) (netip.Addr, error) {
	for i, id := range f.Path {
		if id != e.node.ID {
			continue
		}
		if j := i + step; j >= 0 && j < len(f.Path) {
			if a, ok := e.node.Addrs[f.Path[j]]; ok {
				return a, nil
			}
			return netip.Addr{}, &proto.Error{Code: proto.CodeOrder, What: "path", Detail: fmt.Sprintf("node %d has no address among the peers", f.Path[j])}
		}
	}
	return netip.Addr{}, &proto.Error{Code: proto.CodeOrder, What: "path", Got: fmt.Sprint(f.Path), Detail: fmt.Sprintf("node %d has no neighbour there", e.node.ID)}
}

func (e *endpoint) nextHop(f *proto.Flow) (netip.AddrPort, error) {
	a, err := e.neighbour(f, +1)
	return netip.AddrPortFrom(a, transport.RelayPort), err
}

// Setups returns what the kernel took.
func (e *endpoint) Setups() []proto.FlowSetup { return e.setups }

// Start schedules the flows.
func (e *endpoint) Start(sched transport.Schedule) error {
	e.sched = sched
	for _, s := range e.sinks {
		s.Begin(sched)
	}
	for _, r := range e.relays {
		r.begin(sched)
	}
	if e.listener != nil {
		e.wg.Go(e.accept)
	}
	for _, s := range e.sources {
		e.wg.Go(func() { s.Run(e.ctx, sched) })
	}
	return nil
}

func (e *endpoint) accept() {
	for {
		c, err := e.listener.AcceptTCP()
		if err != nil {
			if e.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				e.node.Log("warn", fmt.Sprintf("relay: accept: %v", err))
				time.Sleep(10 * time.Millisecond) // out of descriptors: not at once again
				continue
			}
			return
		}
		e.wg.Go(func() { e.serve(c) })
	}
}

// headerWithin bounds the wait for a connection's header; it travels in the
// first segment, which may have to be repeated several times.
const headerWithin = 60 * time.Second

// serve hands a connection to its flow.
func (e *endpoint) serve(c *net.TCPConn) {
	cancel := context.AfterFunc(e.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer cancel()
	// Fails only on a closed connection, which the read reports.
	_ = c.SetReadDeadline(time.Now().Add(headerWithin))
	h, err := ReadHeader(c)
	if err != nil {
		sock.Abort(c)
		if e.ctx.Err() == nil && e.sched.Clock.Now() < e.sched.End {
			e.node.Log("warn", fmt.Sprintf("a connection from %v: %v", c.RemoteAddr(), err))
		}
		return
	}
	f, known := e.flows[h.Flow]
	if !known || int(h.Src) != f.Src || int(h.Dst) != f.Dst {
		refuse(c, e.node.Name, fmt.Sprintf("flow %d from %d to %d is not known here", h.Flow, h.Src, h.Dst))
		return
	}
	prev, err := e.neighbour(&f, -1)
	if from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(); err != nil || from != prev {
		refuse(c, e.node.Name, fmt.Sprintf("flow %d does not come from %v", h.Flow, from))
		return
	}
	if s := e.sinks[h.Flow]; s != nil {
		s.Receive(e.ctx, c)
		return
	}
	e.relays[h.Flow].run(e.ctx, c)
}

// Sample appends one sample per flow and side.
func (e *endpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	for _, s := range e.sources {
		if sample, ok := s.Sample(now); ok {
			to = append(to, sample)
		}
	}
	for _, id := range e.order {
		if s := e.sinks[id]; s != nil {
			if sample, ok := s.Sample(now); ok {
				to = append(to, sample)
			}
			continue
		}
		if sample, ok := e.relays[id].sample(now); ok {
			to = append(to, sample)
		}
	}
	return to
}

// Stop aborts every connection.
func (e *endpoint) Stop() {
	e.cancel()
	for _, s := range e.sinks {
		s.Halt()
	}
	if e.listener != nil {
		_ = e.listener.Close() // fails only when it is closed already
	}
	e.wg.Wait()
}

// Results returns one result per flow.
func (e *endpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, s := range e.sources {
		out = append(out, s.Result())
	}
	for _, id := range e.order {
		if s := e.sinks[id]; s != nil {
			out = append(out, s.Result())
		} else {
			out = append(out, e.relays[id].outcome())
		}
	}
	return out
}

// Facts adds nothing.
func (e *endpoint) Facts(*proto.NodeFacts) {}

// Close stops and frees everything.
func (e *endpoint) Close() error {
	e.Stop()
	return nil
}
