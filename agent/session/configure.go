//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/route"
	"github.com/hopbed/hopbed/agent/transport"
	"github.com/hopbed/hopbed/netem/board"
)

// configure makes the node, reads everything back and opens the transports.
// After an error nothing of it is left.
func (s *session) configure(ctx context.Context, c *proto.Configure) (*proto.Readback, error) {
	if err := s.need(proto.TypeConfigure, greeted); err != nil {
		return nil, err
	}
	if err := check(c); err != nil {
		return nil, err
	}
	if err := checkProtected(c); err != nil {
		return nil, named(err, c.Name)
	}
	groups, err := s.opt.Transports.Group(c.Flows)
	if err != nil {
		return nil, named(err, c.Name)
	}
	if s.opt.Guarded != nil { // others cannot reach a namespace that the controller made
		if err := s.claims.take(ctx, names(c)); err != nil {
			return nil, named(err, c.Name)
		}
	}
	s.cfg, s.name = c, c.Name
	s.sysctls = ofInterfaces(c.Sysctls, names(c))
	if c.Bridge != nil {
		s.sysctls = ofBridge(s.sysctls)
	}
	r, err := s.apply(ctx, c, groups)
	if err != nil {
		err = named(err, c.Name)
		for _, f := range s.revert().Failed {
			err = errors.Join(err, &f)
		}
		return nil, flatten(err)
	}
	s.state = configured
	return r, nil
}

// named adds the node's name to an error for the wire.
func named(err error, node string) error {
	e := *proto.AsError(err, proto.CodeSystem)
	e.Node = node
	return &e
}

// flatten keeps the first error's type and adds the others' text.
func flatten(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	list := joined.Unwrap()
	e := *proto.AsError(list[0], proto.CodeSystem)
	for _, more := range list[1:] {
		e.Detail += "; and the revert failed: " + more.Error()
	}
	return &e
}

// check refuses what makes no sense before anything is touched.
func check(c *proto.Configure) error {
	bad := func(what, detail string) error {
		return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: what, Detail: detail}
	}
	switch {
	case c.Node < 0:
		return bad("node", fmt.Sprintf("the id %d is negative", c.Node))
	case len(c.Interfaces) == 0:
		return bad("interfaces", "none is given")
	case c.Address.IsValid() && !c.Address.Addr().Is4():
		return bad("address", fmt.Sprintf("%v is not an IPv4 address", c.Address))
	case c.KeepAddress && (c.Bridge != nil || !c.Address.IsValid()):
		return bad("address", "it is to be kept, and there is none, or a bridge is to get it")
	case c.MTU < 0 || c.SampleInterval < 0 || c.WaitInterfaces < 0:
		return bad("configure", "a size or a time is negative")
	}
	if err := checkInterfaces(c); err != nil {
		return err
	}
	for _, part := range []func(*proto.Configure) error{checkSwitches, checkRadio, checkShapers} {
		if err := part(c); err != nil {
			return err
		}
	}
	seen := make(map[int]bool, len(c.Peers))
	for _, p := range c.Peers {
		if seen[p.Node] || !p.Addr.Is4() {
			return bad(fmt.Sprintf("peer %d", p.Node), fmt.Sprintf("it is given twice or its address %v is not IPv4", p.Addr))
		}
		seen[p.Node] = true
	}
	for _, f := range c.Flows {
		if err := checkFlow(c, &f); err != nil {
			return err
		}
	}
	return nil
}

// names are those of the interfaces and the bridge.
func names(c *proto.Configure) []string {
	var out []string
	for _, i := range c.Interfaces {
		out = append(out, i.Name)
	}
	if c.Bridge != nil {
		out = append(out, c.Bridge.Name)
	}
	return out
}

func checkInterfaces(c *proto.Configure) error {
	bad := func(name, detail string) error {
		return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: fmt.Sprintf("interface %q", name), Detail: detail}
	}
	seen := make(map[string]bool, len(c.Interfaces))
	for _, name := range names(c) {
		switch {
		case name == "" || len(name) >= unix.IFNAMSIZ || strings.ContainsAny(name, "/ .:"):
			return bad(name, fmt.Sprintf("want a name of 1 to %d characters", unix.IFNAMSIZ-1))
		case name == "lo":
			return bad(name, "lo is not a link of the experiment")
		case seen[name]:
			return bad(name, "it is given twice")
		}
		seen[name] = true
	}
	queues := 1
	if c.Board != nil {
		queues += len(c.Board.Pipes)
	}
	for _, p := range c.Ports {
		if p.Port < 0 || c.Board != nil && p.Port >= queues {
			return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: fmt.Sprintf("port towards node %d", p.Node), Got: fmt.Sprint(p.Port), Wanted: fmt.Sprintf("0 to %d", queues-1)}
		}
	}
	return nil
}

func checkFlow(c *proto.Configure, f *proto.Flow) error {
	bad := func(detail string) error {
		return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: fmt.Sprintf("flow %d", f.ID), Detail: detail}
	}
	part := f.Src == c.Node || f.Dst == c.Node
	for _, id := range f.Path {
		part = part || id == c.Node
	}
	switch {
	case f.ID < 0 || f.ID >= transport.MaxFlows:
		return bad(fmt.Sprintf("the id is outside 0…%d (ports)", transport.MaxFlows-1))
	case f.Src == f.Dst:
		return bad("source and destination are one node")
	case !part:
		return bad(fmt.Sprintf("node %d is neither its source, its destination nor on its path", c.Node))
	case !f.SrcAddr.Is4() || !f.DstAddr.Is4():
		return bad(fmt.Sprintf("its addresses %v and %v are not both IPv4", f.SrcAddr, f.DstAddr))
	case f.Start < 0 || f.Stop < 0 || f.Stop > 0 && f.Stop <= f.Start:
		return bad(fmt.Sprintf("it would run from %v to %v", f.Start, f.Stop))
	case len(f.Path) > 0 && (f.Path[0] != f.Src || f.Path[len(f.Path)-1] != f.Dst):
		return bad(fmt.Sprintf("its path %v does not lead from %d to %d", f.Path, f.Src, f.Dst))
	}
	if cap := f.Options.CwndCap; cap > 0 && f.Src == c.Node {
		to := slices.IndexFunc(c.Routes, func(r proto.Route) bool { return r.Dst == netip.PrefixFrom(f.DstAddr, 32) })
		if to < 0 || c.Routes[to].CwndCap != cap {
			return bad(fmt.Sprintf("its congestion window is to be capped at %d segments, and the route to %v is not: the kernel knows caps of routes only", cap, f.DstAddr))
		}
	}
	return checkExchange(c, f)
}

func (s *session) apply(ctx context.Context, c *proto.Configure, groups []transport.Group) (*proto.Readback, error) {
	if err := s.applyRadio(ctx, c); err != nil {
		return nil, err
	}
	ofIface := func(key string) bool { return namesInterface(key, names(c)...) }
	if err := s.keepSysctls(s.sysctls, ofIface); err != nil {
		return nil, err
	}
	if err := s.applySysctls(s.sysctls, func(key string) bool { return !ofIface(key) }); err != nil {
		return nil, err
	}
	if c.Loopback {
		if err := s.loopbackUp(); err != nil {
			return nil, err
		}
	}
	if err := s.applyInterfaces(ctx, c); err != nil {
		return nil, err
	}
	if err := s.table().Replace(s.undo.Push, c.Routes, c.Neighbours); err != nil {
		return nil, err
	}
	if err := s.caps.Enforce(s.undo.Push, c.Address.Addr(), c.Routes); err != nil {
		return nil, err
	}
	if err := s.applyShapers(c); err != nil {
		return nil, err
	}
	// The kernel's state is compared before sockets depend on it.
	r, err := s.readback(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.open(c, groups); err != nil {
		return nil, err
	}
	r.Flows = s.setups()
	return r, nil
}

// table is the route table of the interfaces that have the node's address.
func (s *session) table() *route.Table {
	if b := s.cfg.Bridge; b != nil {
		return route.NewTable(map[string]int{b.Name: s.links[b.Name]})
	}
	return route.NewTable(s.links)
}

// open opens every transport that has a flow here or has to run here anyway.
func (s *session) open(c *proto.Configure, groups []transport.Group) error {
	n := &transport.Node{
		ID: c.Node, Name: c.Name, Addr: c.Address.Addr(),
		Addrs: make(map[int]netip.Addr, len(c.Peers)), NextHop: make(map[int]int, len(c.NextHops)), Ports: make(map[int]int, len(c.Ports)),
		Hop:            c.Hop,
		SampleInterval: c.SampleInterval,
		Event:          func(e proto.Event) { e.Node = c.Node; s.send(proto.TypeEvent, e) },
		Log:            func(level, text string) { s.flowLog(c.Node, level, text) },
	}
	if c.Board != nil {
		if err := s.openBoard(c); err != nil {
			return err
		}
		n.Board = s.view
	}
	for _, p := range c.Peers {
		n.Addrs[p.Node] = p.Addr
	}
	for _, h := range c.NextHops {
		n.NextHop[h.Dst] = h.Via
	}
	for _, p := range c.Ports {
		n.Ports[p.Node] = p.Port
	}
	for _, d := range s.opt.Transports.Drivers() {
		var flows []proto.Flow
		for _, g := range groups {
			if g.Driver == d {
				flows = g.Flows
			}
		}
		if len(flows) == 0 && !d.Wanted(n) {
			continue
		}
		ep, err := d.Open(n, flows)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.endpoints = append(s.endpoints, ep)
		s.mu.Unlock()
	}
	return nil
}

// openBoard maps the queue board. An inherited one stays mapped until the agent
// exits, since its descriptors are inherited once; another process's can be
// another one the next time.
func (s *session) openBoard(c *proto.Configure) error {
	mem, event := uintptr(c.Board.MemFD), uintptr(c.Board.EventFD)
	if c.Board.PID != 0 {
		if s.view != nil {
			if err := s.view.Close(); err != nil {
				return &proto.Error{Code: proto.CodeSystem, What: "queue board", Detail: err.Error()}
			}
			s.view = nil
		}
		var err error
		if mem, event, err = board.Borrow(c.Board.PID, c.Board.MemFD, c.Board.EventFD); err != nil {
			return boardError(err)
		}
	}
	if s.view == nil {
		v, err := board.OpenViewFD(mem, event, c.Node, c.Board.Pipes)
		if err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "queue board", Detail: err.Error()}
		}
		s.view, s.viewPipes = v, c.Board.Pipes
	}
	if s.view.Node() != c.Node {
		return &proto.Error{Code: proto.CodeOrder, What: "queue board", Wanted: fmt.Sprint(c.Node), Got: fmt.Sprint(s.view.Node()), Detail: "the agent was another node before", Remedy: "start the agent anew"}
	}
	if !slices.Equal(s.viewPipes, c.Board.Pipes) {
		return &proto.Error{Code: proto.CodeOrder, What: "queue board", Wanted: fmt.Sprint(c.Board.Pipes), Got: fmt.Sprint(s.viewPipes),
			Detail: "the agent had other wired interfaces before", Remedy: "start the agent anew"}
	}
	return nil
}

// boardError says what can be done where another process's board cannot be had.
func boardError(err error) error {
	e := &proto.Error{Code: proto.CodeSystem, What: "queue board", Detail: err.Error()}
	switch {
	case errors.Is(err, board.ErrNoPidfd):
		e.Code, e.Wanted, e.Remedy = proto.CodeUnavailable, "pidfd_getfd(2)", "use Linux 5.6 or newer, or leave --via ssh out"
	case errors.Is(err, unix.EPERM):
		e.Remedy = "the agent needs the controller's user or root"
	case errors.Is(err, unix.ESRCH):
		e.Remedy = "the controller is not on this host: only its own namespaces can be nodes of an emulated medium"
	}
	return e
}

// readback reads the configuration from the kernel and compares it.
func (s *session) readback(ctx context.Context) (*proto.Readback, error) {
	c := s.cfg
	r := new(proto.Readback)
	err := s.verifyInterfaces(r)
	if err != nil {
		return nil, err
	}
	if r.Sysctls, err = verifySysctls(s.sysctls); err != nil {
		return nil, err
	}
	if r.Routes, r.Neighbours, err = s.table().Verify(c.Routes, c.Neighbours); err != nil {
		return nil, err
	}
	if err := route.VerifyCaps(c.Address.Addr(), c.Routes); err != nil {
		return nil, err
	}
	if r.Radio, err = s.readRadio(ctx); err != nil {
		return nil, err
	}
	if r.Shapers, err = s.readShapers(); err != nil {
		return nil, err
	}
	r.Flows = s.setups()
	return r, nil
}

// setups returns what the kernel took for the flows' sockets.
func (s *session) setups() []proto.FlowSetup {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []proto.FlowSetup
	for _, ep := range s.endpoints {
		out = append(out, ep.Setups()...)
	}
	return out
}
