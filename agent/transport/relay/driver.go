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
	socketShare = 8 // each of the relay's two sockets
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
	setups   []proto.FlowSetup
	sources  []*sock.Source
	incoming []*incoming

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sched  transport.Schedule
	life   *life // of the relays at this node
}

// incoming is a flow that comes through this node or ends here. It has a listener
// of its own, since the kernel takes the bound and the scale of a connection's
// window from the listener's buffer when the SYN comes (tcp_openreq_init_rwin),
// and a larger buffer of the accepted connection raises neither.
type incoming struct {
	flow     proto.Flow
	listener *net.TCPListener
	sink     *sock.Sink // at the destination
	relay    *flow      // at a relay
}

func (in *incoming) sample(now vtime.Time) (proto.Sample, bool) {
	if in.sink != nil {
		return in.sink.Sample(now)
	}
	return in.relay.sample(now)
}

// Open listens on the port of each flow that comes through or ends here.
func (Driver) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &endpoint{node: n}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.life = newLife(e.ctx)
	for _, f := range flows {
		if err := e.add(f); err != nil {
			w := *proto.AsError(errors.Join(err, e.Close()), proto.CodeSystem)
			w.What = fmt.Sprintf("flow %d: %s", f.ID, w.What)
			return nil, &w
		}
	}
	return e, nil
}

// add prepares one flow, trying its options on a socket.
func (e *endpoint) add(f proto.Flow) error {
	side, _ := e.node.Side(&f)
	if side == proto.Destination {
		// A relay's bound is not the destination's: that is an ordinary receiver,
		// which reads at once, and the kernel tunes its buffer.
		opt := socketOptions(&f, false, false)
		in, err := e.listen(f, opt)
		if err != nil {
			return err
		}
		in.sink = sock.NewSink(e.node, f, opt)
		setup, err := sock.SetupOf(in.listener, f.ID, side)
		e.setups = append(e.setups, setup)
		return err
	}
	next, err := e.nextHop(&f)
	if err != nil {
		return err
	}
	if side == proto.Relay {
		if err := e.try(f, side, socketOptions(&f, true, true)); err != nil {
			return err
		}
		in, err := e.listen(f, socketOptions(&f, false, true))
		if err != nil {
			return err
		}
		in.relay = newFlow(e, f, next)
		return nil
	}
	opt := socketOptions(&f, false, false)
	if err := e.try(f, side, opt); err != nil {
		return err
	}
	h := Header{Flow: uint32(f.ID), Src: uint32(f.Src), Dst: uint32(f.Dst)}
	s, err := sock.NewSource(e.node, f, opt, next, h.Append(nil))
	if err != nil {
		return err
	}
	e.sources = append(e.sources, s)
	return nil
}

// listen makes the listener of a flow.
func (e *endpoint) listen(f proto.Flow, opt sock.Options) (*incoming, error) {
	l, err := sock.Listen(netip.AddrPortFrom(e.node.Addr, port(&f)), opt)
	if err != nil {
		return nil, err
	}
	in := &incoming{flow: f, listener: l}
	e.incoming = append(e.incoming, in)
	return in, nil
}

// port is the flow's port, the same at every node that listens for it.
func port(f *proto.Flow) uint16 { return uint16(transport.FlowPort + f.ID) }

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
	return netip.AddrPortFrom(a, port(f)), err
}

// Setups returns what the kernel took.
func (e *endpoint) Setups() []proto.FlowSetup { return e.setups }

// Start schedules the flows.
func (e *endpoint) Start(sched transport.Schedule) error {
	e.sched = sched
	var sinks []*sock.Sink
	for _, in := range e.incoming {
		if in.sink != nil {
			sinks = append(sinks, in.sink)
		}
	}
	if err := sock.Begin(sched, e.sources, sinks); err != nil {
		return err
	}
	for _, in := range e.incoming {
		if in.relay != nil {
			in.relay.begin(sched)
			e.relayFrom(in)
			continue
		}
		e.wg.Go(func() {
			e.accept(in, in.listener, func(c *net.TCPConn) { e.wg.Go(func() { e.serve(e.ctx, in, c) }) })
		})
	}
	for _, s := range e.sources {
		e.wg.Go(func() { s.Run(e.ctx, sched) })
	}
	return nil
}

// accept hands every connection that comes to serve, until the listener is closed.
func (e *endpoint) accept(in *incoming, l *net.TCPListener, serve func(*net.TCPConn)) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if e.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				e.node.Log("warn", fmt.Sprintf("flow %d: accept: %v", in.flow.ID, err))
				time.Sleep(10 * time.Millisecond) // out of descriptors: not at once again
				continue
			}
			return
		}
		serve(c)
	}
}

// headerWithin bounds the wait for a connection's header; it travels in the
// first segment, which may have to be repeated several times.
const headerWithin = 60 * time.Second

// serve takes a connection of a flow, if its header says so, until ctx ends.
func (e *endpoint) serve(ctx context.Context, in *incoming, c *net.TCPConn) {
	cancel := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer cancel()
	// Fails only on a closed connection, which the read reports.
	_ = c.SetReadDeadline(time.Now().Add(headerWithin))
	h, err := ReadHeader(c)
	if err != nil {
		sock.Abort(c)
		if ctx.Err() == nil && e.sched.Clock.Now() < e.sched.End {
			e.node.Log("warn", fmt.Sprintf("a connection from %v: %v", c.RemoteAddr(), err))
		}
		return
	}
	f := &in.flow
	if int(h.Flow) != f.ID || int(h.Src) != f.Src || int(h.Dst) != f.Dst {
		refuse(c, e.node.Name, fmt.Sprintf("flow %d from %d to %d came where flow %d from %d to %d does", h.Flow, h.Src, h.Dst, f.ID, f.Src, f.Dst))
		return
	}
	prev, err := e.neighbour(f, -1)
	if from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(); err != nil || from != prev {
		refuse(c, e.node.Name, fmt.Sprintf("flow %d does not come from %v", h.Flow, from))
		return
	}
	if in.sink != nil {
		in.sink.Receive(ctx, c)
		return
	}
	in.relay.run(ctx, c)
}

// Sample appends one sample per flow and side.
func (e *endpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	for _, s := range e.sources {
		if sample, ok := s.Sample(now); ok {
			to = append(to, sample)
		}
	}
	for _, in := range e.incoming {
		if sample, ok := in.sample(now); ok {
			to = append(to, sample)
		}
	}
	return to
}

// Messages appends what became of messages; relays see bytes only.
func (e *endpoint) Messages(to []proto.Message, most int) []proto.Message {
	for _, s := range e.sources {
		to = s.Messages(to, most)
	}
	for _, in := range e.incoming {
		if in.sink != nil {
			to = in.sink.Messages(to, most)
		}
	}
	return to
}

// Stop aborts every connection.
func (e *endpoint) Stop() {
	e.cancel()
	for _, in := range e.incoming {
		if in.sink != nil {
			in.sink.Halt()
		}
		_ = in.listener.Close() // fails only when it is closed already
	}
	e.life.wg.Wait()
	e.wg.Wait()
}

// Results returns one result per flow.
func (e *endpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, s := range e.sources {
		out = append(out, s.Result())
	}
	for _, in := range e.incoming {
		if in.sink != nil {
			out = append(out, in.sink.Result())
		} else {
			out = append(out, in.relay.outcome())
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
