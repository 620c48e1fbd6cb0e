//go:build linux

package sock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/vtime"
)

// TCP is the driver of flows over one kernel TCP connection each:
// "tcp/CC".
type TCP struct{}

// Family returns "tcp".
func (TCP) Family() string { return "tcp" }

// Wanted is false: the kernel forwards.
func (TCP) Wanted(*transport.Node) bool { return false }

// Check refuses a flow without a congestion control and the options of other
// transports.
func (TCP) Check(f *proto.Flow) error {
	if _, cc := transport.Split(f.Transport); cc == "" {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Got: f.Transport, Wanted: "tcp/CC, such as tcp/cubic"}
	}
	o := f.Options
	return CheckStreamOptions(f, []Foreign{{"relay_buffer", o.RelayBuffer != 0}, {"block_size", o.BlockSize != 0}, {"rate", o.Rate != 0}, {"packet_size", o.PacketSize != 0}})
}

// Foreign is an option of another transport and whether the flow has it.
type Foreign struct {
	Name string
	Set  bool
}

// CheckStreamOptions checks the options of a TCP connection and refuses
// foreign ones.
func CheckStreamOptions(f *proto.Flow, foreign []Foreign) error {
	family, _ := transport.Split(f.Transport)
	foreign = append(foreign, Foreign{"coop", f.Options.Coop != nil && family != coopFamily})
	if err := refuseForeign(family, foreign); err != nil {
		return err
	}
	o := f.Options
	for _, v := range []struct {
		name   string
		v      int64
		lo, hi int64 // of a value that is given
	}{
		{"mss", int64(o.MSS), 88, 32767}, // TCP_MIN_MSS, MAX_TCP_WINDOW: the kernel's own limits
		{"send_buffer", int64(o.SendBuffer), 4096, 1 << 30},
		{"receive_buffer", int64(o.ReceiveBuffer), 2048, 1 << 30},
		{"not_sent_low_water", int64(o.NotSentLow), 1, 1 << 30},
		{"dscp", int64(o.DSCP), 0, 63},
		{"connect_within", int64(o.ConnectWithin), 1, int64(vtime.Hour)},
		{"receive_window", int64(o.ReceiveWindow), 1, 65535},
		{"cwnd_cap", int64(o.CwndCap), 1, 1 << 24},
	} {
		if v.v != 0 && (v.v < v.lo || v.v > v.hi) {
			return &proto.Error{Code: proto.CodeOrder, What: "option " + v.name, Got: fmt.Sprint(v.v), Wanted: fmt.Sprintf("%d to %d", v.lo, v.hi)}
		}
	}
	if o.ReceiveWindow > 0 && o.ReceiveBuffer > 0 {
		return &proto.Error{Code: proto.CodeOrder, What: "options receive_window and receive_buffer", Detail: "a window of so many segments comes with a buffer that holds it", Remedy: "leave one of them out"}
	}
	return nil
}

func refuseForeign(family string, foreign []Foreign) error {
	for _, o := range foreign {
		if o.Set {
			return &proto.Error{Code: proto.CodeOrder, What: "option " + o.Name, Detail: "the transport " + family + " does not know it", Remedy: "leave it out"}
		}
	}
	return nil
}

// tcpEndpoint is the node's part in all TCP flows.
type tcpEndpoint struct {
	node *transport.Node
	// prepare gives a source what bounds its window, and may change its options; nil:
	// nothing does.
	prepare func(f *proto.Flow, opt *Options) *coopWindow
	setups  []proto.FlowSetup
	sources []*Source
	sinks   []*tcpSink

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

type tcpSink struct {
	*Sink
	listener *net.TCPListener
}

// Open makes the listeners of the flows that end here and tries the options of
// those that begin here.
func (TCP) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &tcpEndpoint{node: n}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, f := range flows {
		if err := e.open(f); err != nil {
			err = errors.Join(err, e.Close())
			return nil, inFlow(err, f.ID)
		}
	}
	return e, nil
}

// inFlow names the flow in an error.
func inFlow(err error, flow int) error {
	e := *proto.AsError(err, proto.CodeSystem)
	e.What = fmt.Sprintf("flow %d: %s", flow, e.What)
	return &e
}

func (e *tcpEndpoint) open(f proto.Flow) error {
	_, cc := transport.Split(f.Transport)
	opt := FlowOptions(&f, cc)
	to := netip.AddrPortFrom(f.DstAddr, uint16(transport.FlowPort+f.ID))
	switch side, _ := e.node.Side(&f); side {
	case proto.Source:
		var w *coopWindow
		if e.prepare != nil {
			w = e.prepare(&f, &opt)
		}
		s, err := NewSource(e.node, f, opt, to, nil)
		if err != nil {
			return err
		}
		s.window = w
		setup, err := s.Probe()
		if err != nil {
			return err
		}
		e.sources, e.setups = append(e.sources, s), append(e.setups, setup)
	case proto.Destination:
		opt.ReceiveWindow = f.Options.ReceiveWindow
		l, err := Listen(to, opt)
		if err != nil {
			return err
		}
		e.sinks = append(e.sinks, &tcpSink{NewSink(e.node, f, opt), l})
		setup, err := SetupOf(l, f.ID, proto.Destination)
		if err != nil {
			return err
		}
		e.setups = append(e.setups, setup)
	}
	return nil
}

// Listen listens with the options, which accepted connections inherit.
func Listen(at netip.AddrPort, opt Options) (*net.TCPListener, error) {
	control := func(_, _ string, c syscall.RawConn) error {
		return onFD(c, func(fd int) error {
			if err := opt.Apply(fd); err != nil {
				return err
			}
			return opt.listenWindow(fd)
		})
	}
	lc := net.ListenConfig{Control: control, KeepAlive: -1}
	// The default would be an MPTCP socket, whose options and TCP_INFO differ.
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp4", at.String())
	if e, ok := errors.AsType[*proto.Error](err); ok {
		return nil, e
	}
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "listen at " + at.String(), Detail: err.Error()}
	}
	return l.(*net.TCPListener), nil
}

// SetupOf reads a listener's options back.
func SetupOf(l *net.TCPListener, flow int, side proto.Side) (setup proto.FlowSetup, err error) {
	raw, err := l.SyscallConn()
	if err == nil {
		err = onFD(raw, func(fd int) error { setup = Setup(fd, flow, side); return nil })
	}
	if err != nil {
		return setup, &proto.Error{Code: proto.CodeSystem, What: "socket options", Detail: err.Error()}
	}
	return setup, nil
}

// Setups returns what the kernel took.
func (e *tcpEndpoint) Setups() []proto.FlowSetup { return e.setups }

// Start schedules the flows.
func (e *tcpEndpoint) Start(sched transport.Schedule) error {
	var sinks []*Sink
	for _, s := range e.sinks {
		sinks = append(sinks, s.Sink)
	}
	if err := Begin(sched, e.sources, sinks); err != nil {
		return err
	}
	for _, s := range e.sinks {
		e.wg.Go(func() { e.accept(s) })
	}
	for _, s := range e.sources {
		e.wg.Go(func() { s.Run(e.ctx, sched) })
	}
	return nil
}

// accept serves the flow's connections: one, and another only when the source
// had to try again.
func (e *tcpEndpoint) accept(s *tcpSink) {
	for {
		c, err := s.listener.AcceptTCP()
		if err != nil {
			if e.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				e.node.Log("warn", fmt.Sprintf("flow %d: accept: %v", s.flow.ID, err))
				time.Sleep(10 * time.Millisecond) // out of descriptors: not at once again
				continue
			}
			return
		}
		from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if from != s.flow.SrcAddr {
			Abort(c)
			e.node.Log("warn", fmt.Sprintf("flow %d: a connection from %v was refused: the source is %v", s.flow.ID, from, s.flow.SrcAddr))
			continue
		}
		e.wg.Go(func() { s.Receive(e.ctx, c) })
	}
}

// Sample appends one sample per flow and side.
func (e *tcpEndpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	for _, s := range e.sources {
		if sample, ok := s.Sample(now); ok {
			to = append(to, sample)
		}
	}
	for _, s := range e.sinks {
		if sample, ok := s.Sample(now); ok {
			to = append(to, sample)
		}
	}
	return to
}

// Messages appends what became of messages.
func (e *tcpEndpoint) Messages(to []proto.Message, most int) []proto.Message {
	for _, s := range e.sources {
		to = s.Messages(to, most)
	}
	for _, s := range e.sinks {
		to = s.Messages(to, most)
	}
	return to
}

// Stop aborts every connection. Each wait of the flows ends with the context
// or with the listener, none with the network.
func (e *tcpEndpoint) Stop() {
	e.cancel()
	for _, s := range e.sinks {
		s.Halt()
		_ = s.listener.Close() // fails only when it is closed already
	}
	e.wg.Wait()
}

// Results returns one result per flow.
func (e *tcpEndpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, s := range e.sources {
		out = append(out, s.Result())
	}
	for _, s := range e.sinks {
		out = append(out, s.Result())
	}
	return out
}

// Facts adds nothing: the namespace's counters are read for all transports.
func (e *tcpEndpoint) Facts(*proto.NodeFacts) {}

// Close stops and frees everything.
func (e *tcpEndpoint) Close() error {
	e.Stop()
	return nil
}
