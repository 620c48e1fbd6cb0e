//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/emulator"
	"github.com/hopbed/hopbed/orchestrator/backend"
	"github.com/hopbed/hopbed/orchestrator/plan"
)

// Standing says how a network that is kept standing differs from that of a run.
type Standing struct {
	// NoRoutes leaves the nodes without routes and neighbour entries: a routing
	// daemon, or a hand, makes them.
	NoRoutes bool
	// IPv6 leaves IPv6 on, and lets it pass; see emulator.Config.IPv6.
	IPv6 bool
}

// Network is a scenario's network without its flows: nodes that are configured and
// joined, until Close.
type Network struct{ r *session }

// NetworkNode is a node of a Network.
type NetworkNode struct {
	Name       string
	PID        int // of its agent, which holds the namespace
	Addr       netip.Addr
	Interfaces []string
}

// Stand brings the network of a scenario up and returns when every node is
// configured, and what was configured was read back. After an error nothing is
// left. The run's clock never begins: schedules and changes of the file do not
// happen by themselves.
func (b *Backend) Stand(ctx context.Context, s *plan.Scenario, o Standing, tell backend.Progress) (*Network, error) {
	r := b.newSession(s, tell, nil)
	e, ok := r.fabric.(*emulated)
	if !ok {
		return nil, &backend.ErrUnsupported{Backend: b.Name(), What: "a network that is kept standing", Because: "its nodes are real hosts, whose links are what they are",
			Do: "log in to them by ssh; hopbed up makes emulated networks"}
	}
	e.userSpace = true // a hand may change every link
	r.fabric = &standing{emulated: e, o: o}
	err := r.standUp(ctx)
	if err == nil {
		return &Network{r}, nil
	}
	err = r.explain(err)
	for _, h := range r.handles {
		if text := h.Stderr(); text != "" {
			err = fmt.Errorf("%w (node %s said: %s)", err, h.Name(), text)
			break
		}
	}
	if cerr := r.close(ctx); cerr != nil {
		err = errors.Join(err, cerr)
	}
	r.gather.drains.Wait()
	return nil, err
}

func (r *session) standUp(ctx context.Context) error {
	ctx, cancel := within(ctx, r.b.limits.start)
	defer cancel()
	if err := r.up(ctx); err != nil {
		return err
	}
	_, err := r.configure(ctx, nil)
	return err
}

// Nodes are the nodes in their order.
func (n *Network) Nodes() []NetworkNode {
	var out []NetworkNode
	t := n.r.s.Topology
	for i, h := range n.r.handles {
		out = append(out, NetworkNode{Name: h.Name(), PID: h.PID(), Addr: n.r.fabric.addr(i), Interfaces: t.InterfaceNames(i)})
	}
	return out
}

// Set changes the network, all or, with an error, nothing; see emulator.Set.
func (n *Network) Set(ctx context.Context, s emulator.Set) error {
	return n.r.fabric.(*standing).emu.Set(ctx, s)
}

// Priority is what the emulator got of the host.
func (n *Network) Priority() string { return n.r.fabric.(*standing).emu.Ready().Priority }

// Health is what the emulator last said of itself, about a second ago; nil before
// it has said anything.
func (n *Network) Health() *emulator.Health { return n.r.fabric.(*standing).health.Load() }

// Failed is closed when an agent or the emulator has ended by itself: the network
// is no longer what it was. Err then says which.
func (n *Network) Failed() <-chan struct{} { return n.r.gather.failed }

// Err is why Failed was closed, nil before.
func (n *Network) Err() error { return n.r.gather.failure() }

// Close removes the network with every process in its namespaces. The error says
// what could not be removed.
func (n *Network) Close(ctx context.Context) error {
	err := n.r.close(ctx)
	n.r.gather.drains.Wait()
	return err
}

// standing is the fabric of a network that is kept standing.
type standing struct {
	*emulated
	o      Standing
	health atomic.Pointer[emulator.Health]
}

func (f *standing) start(ctx context.Context, r *session) error {
	cfg := emulatorConfig(f.s, r.handles)
	cfg.IPv6, cfg.Changes = f.o.IPv6, nil
	return f.launch(ctx, r, cfg, emulator.Options{Board: f.board, Env: f.b.opt.Env, Journal: f.b.opt.Journal, OnHealth: func(h emulator.Health) { f.health.Store(&h) }})
}

func (f *standing) order(i int, flows []proto.Flow) (*proto.Configure, error) {
	cfg, err := f.emulated.order(i, flows)
	if err != nil {
		return nil, err
	}
	cfg.Switches = nil
	if f.o.NoRoutes {
		cfg.Routes, cfg.NextHops, cfg.Neighbours, cfg.Ports = nil, nil, nil, nil
	}
	if f.o.IPv6 {
		cfg.Sysctls = slices.DeleteFunc(cfg.Sysctls, func(s proto.Sysctl) bool { return strings.HasPrefix(s.Key, "net.ipv6.") })
		cfg.Sysctls = append(cfg.Sysctls, proto.Sysctl{Key: "net.ipv6.conf.all.forwarding", Value: "1"})
	}
	return cfg, nil
}
