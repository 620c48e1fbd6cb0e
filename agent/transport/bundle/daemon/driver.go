//go:build linux

package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/agent/transport/bundle/cut"
	"github.com/hopbed/hopbed/agent/transport/sock"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Driver is the driver of "bundle/CC".
type Driver struct{}

// Family returns "bundle".
func (Driver) Family() string { return "bundle" }

// Wanted is false: only the nodes of a flow's path relay it.
func (Driver) Wanted(*transport.Node) bool { return false }

// Check refuses a flow without congestion control or path, and the options of
// other transports.
func (Driver) Check(f *proto.Flow) error {
	if _, cc := transport.Split(f.Transport); cc == "" {
		return &proto.Error{Code: proto.CodeOrder, What: "transport", Got: f.Transport, Wanted: "bundle/CC, such as bundle/cubic"}
	}
	if len(f.Path) < 2 {
		return &proto.Error{Code: proto.CodeOrder, What: "path", Got: fmt.Sprint(f.Path), Wanted: "the nodes from source to destination"}
	}
	for i := range f.Path {
		c := cut.NodeConfig(f, i)
		if err := c.Validate(); err != nil {
			return &proto.Error{Code: proto.CodeOrder, What: "options", Detail: err.Error()}
		}
	}
	if b := cut.OptionsOf(f); b.Size < 1 || b.Size > b.Limit-cut.Headers {
		return &proto.Error{Code: proto.CodeOrder, What: "option bundle", Got: b.Size.String(), Wanted: fmt.Sprintf("1 B to the limit of the storage, less %v for its headers (%v)", cut.Headers, b.Limit-cut.Headers)}
	}
	o := f.Options
	return sock.CheckStreamOptions(f, []sock.Foreign{{Name: "block_size", Set: o.BlockSize != 0}, {Name: "rate", Set: o.Rate != 0}, {Name: "packet_size", Set: o.PacketSize != 0},
		{Name: "relay_buffer", Set: o.RelayBuffer != 0}, {Name: "program", Set: o.Program != nil},
		{Name: "receive_window", Set: o.ReceiveWindow != 0}, {Name: "cwnd_cap", Set: o.CwndCap != 0}})
}

// endpoint is the node's part in all flows of bundles.
type endpoint struct {
	node   *transport.Node
	setups []proto.FlowSetup
	flows  []*flow
	spool  *spool

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Open listens on the port of each flow that comes through or ends here, and makes
// its storage.
func (Driver) Open(n *transport.Node, flows []proto.Flow) (transport.Endpoint, error) {
	e := &endpoint{node: n}
	e.ctx, e.cancel = context.WithCancel(context.Background())
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
func (e *endpoint) add(order proto.Flow) error {
	i := slices.Index(order.Path, e.node.ID)
	if i < 0 {
		return &proto.Error{Code: proto.CodeOrder, What: "path", Got: fmt.Sprint(order.Path), Detail: fmt.Sprintf("node %d is not on it", e.node.ID)}
	}
	f, err := newFlow(e, order, i)
	if err != nil {
		return err
	}
	e.flows = append(e.flows, f)
	side, _ := e.node.Side(&order)
	if side != proto.Source {
		if err := f.listen(); err != nil {
			return err
		}
	}
	if side == proto.Destination {
		setup, err := sock.SetupOf(f.listener, order.ID, side)
		e.setups = append(e.setups, setup)
		return err
	}
	return e.try(order.ID, side, f.opt)
}

// try applies the options to a socket, so that what the kernel lacks is known
// before the run.
func (e *endpoint) try(flow int, side proto.Side, opt sock.Options) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "socket", Detail: err.Error()}
	}
	defer unix.Close(fd)
	if err := opt.Apply(fd); err != nil {
		return err
	}
	e.setups = append(e.setups, sock.Setup(fd, flow, side))
	return nil
}

// Setups returns what the kernel took.
func (e *endpoint) Setups() []proto.FlowSetup { return e.setups }

// Start schedules the flows.
func (e *endpoint) Start(sched transport.Schedule) error {
	for _, f := range e.flows {
		if err := f.begin(sched); err != nil {
			return err
		}
		for _, peer := range e.flows {
			if p := f.order.Peer; p != nil && *p == peer.order.ID && f.side == proto.Destination && peer.side == proto.Source {
				f.peer = peer
			}
		}
	}
	for _, f := range e.flows {
		f.run()
	}
	return nil
}

// Sample appends one sample per flow and side.
func (e *endpoint) Sample(now vtime.Time, to []proto.Sample) []proto.Sample {
	for _, f := range e.flows {
		if s, ok := f.sample(now); ok {
			to = append(to, s)
		}
	}
	return to
}

// Messages appends what became of messages; relays see bundles only.
func (e *endpoint) Messages(to []proto.Message, most int) []proto.Message {
	for _, f := range e.flows {
		to = f.messages(to, most)
	}
	return to
}

// Stop aborts every connection.
func (e *endpoint) Stop() {
	e.cancel()
	for _, f := range e.flows {
		f.halt()
	}
	e.wg.Wait()
}

// Results returns one result per flow.
func (e *endpoint) Results() []proto.FlowResult {
	var out []proto.FlowResult
	for _, f := range e.flows {
		out = append(out, f.outcome())
	}
	return out
}

// Facts adds nothing: the counters are the flows'.
func (e *endpoint) Facts(*proto.NodeFacts) {}

// Close stops and frees everything, the storage included.
func (e *endpoint) Close() error {
	e.Stop()
	s := e.spool
	e.spool = nil
	return s.close()
}

// NodeDown forgets all that is in memory: the node is switched off.
func (e *endpoint) NodeDown(now vtime.Time) {
	for _, f := range e.flows {
		f.switchOff(now)
	}
}

// NodeUp begins afresh with what is on disk.
func (e *endpoint) NodeUp(now vtime.Time) error {
	for _, f := range e.flows {
		if err := f.switchOn(now); err != nil {
			return err
		}
	}
	return nil
}
