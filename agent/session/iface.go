//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/netdump"
	"github.com/hopbed/hopbed/netem/vtime"
)

// waitInterfaces returns the interfaces in their order, waiting at most for the
// given time until all of them exist and, where an address is expected, have it:
// the emulator gives it only after the creation. An address that is still
// another at the end is left to the comparison.
func waitInterfaces(ctx context.Context, list []proto.Interface, wait vtime.Duration) ([]netlink.Link, error) {
	// The subscription comes before the look, so that no creation is missed.
	updates, done := make(chan netlink.LinkUpdate, 64), make(chan struct{})
	if wait > 0 {
		if err := netlink.LinkSubscribe(updates, done); err != nil {
			return nil, &proto.Error{Code: proto.CodeSystem, What: "interfaces", Detail: "netlink subscription: " + err.Error()}
		}
		defer func() {
			close(done)
			// The subscription's goroutine may be writing.
			go func() {
				for range updates {
				}
			}()
		}()
	}
	links, missing := make([]netlink.Link, len(list)), map[string]int{} // by name, what is not ready
	ready := func(i int) bool {
		want := list[i].HardwareAddress
		return links[i] != nil && (want == "" || strings.EqualFold(links[i].Attrs().HardwareAddr.String(), want))
	}
	for i, c := range list {
		link, err := netlink.LinkByName(c.Name)
		if _, gone := errors.AsType[netlink.LinkNotFoundError](err); err != nil && !gone {
			return nil, &proto.Error{Code: proto.CodeSystem, What: "interface " + c.Name, Detail: err.Error()}
		}
		if err == nil {
			links[i] = link
		}
		switch {
		case ready(i):
		case wait > 0:
			missing[c.Name] = i
		case err != nil:
			return nil, &proto.Error{Code: proto.CodeOrder, What: "interface " + c.Name, Detail: "it does not exist", Remedy: "check the inventory's interface name"}
		}
	}
	timer := time.NewTimer(wait.Std())
	defer timer.Stop()
	for len(missing) > 0 {
		select {
		case u, ok := <-updates:
			if !ok {
				return nil, &proto.Error{Code: proto.CodeSystem, What: "interfaces", Detail: "the netlink subscription ended"}
			}
			name := u.Link.Attrs().Name
			if i, awaited := missing[name]; awaited && u.Header.Type == unix.RTM_NEWLINK {
				if links[i] = u.Link; ready(i) {
					delete(missing, name)
				}
			}
		case <-timer.C:
			for i, c := range list {
				if links[i] == nil {
					return nil, &proto.Error{Code: proto.CodeTimeout, What: "interface " + c.Name, Detail: fmt.Sprintf("it did not appear within %v", wait), Remedy: "the emulator creates it: see its log"}
				}
			}
			return links, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return links, nil
}

// applyInterfaces makes the node's interfaces and its bridge, if it has one.
func (s *session) applyInterfaces(ctx context.Context, c *proto.Configure) error {
	links, err := waitInterfaces(ctx, c.Interfaces, c.WaitInterfaces)
	if err != nil {
		return err
	}
	s.links = make(map[string]int)
	for i, link := range links {
		s.links[c.Interfaces[i].Name] = link.Attrs().Index
		if err := s.applyInterface(link, c); err != nil {
			return err
		}
		if c.Bridge == nil {
			if err := s.applyAddress(link, c.Address); err != nil {
				return err
			}
		}
	}
	if c.Bridge == nil {
		return nil
	}
	return s.applyBridge(ctx, c)
}

// applyInterface sets MTU, offloads and the interface's own sysctls, and brings
// it up.
func (s *session) applyInterface(link netlink.Link, c *proto.Configure) error {
	a := link.Attrs()
	if c.MTU > 0 && a.MTU != c.MTU {
		old := a.MTU
		if err := s.push(kindMTU, "mtu of "+a.Name, oldMTU{deviceOf(link), old}); err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(link, c.MTU); err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "mtu of " + a.Name, Wanted: fmt.Sprint(c.MTU), Got: fmt.Sprint(old), Detail: err.Error()}
		}
	}
	if c.OffloadsOff {
		if err := s.offloadsOff(link); err != nil {
			return err
		}
	}
	if err := s.applySysctls(s.sysctls, func(key string) bool { return namesInterface(key, a.Name) }); err != nil {
		return err
	}
	if a.Flags&net.FlagUp == 0 {
		if err := s.push(kindDown, "state of "+a.Name, wasDown{deviceOf(link)}); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "bring up " + a.Name, Detail: err.Error()}
		}
	}
	return nil
}

// applyAddress gives the interface the node's address.
func (s *session) applyAddress(link netlink.Link, address netip.Prefix) error {
	if !address.IsValid() {
		return nil
	}
	have, err := addresses(link)
	if err != nil {
		return err
	}
	name := link.Attrs().Name
	if s.cfg.KeepAddress {
		if !hasAddress(have, s.cfg) {
			return notApplied("address of "+name, "kept: "+address.Addr().String(), fmt.Sprint(have))
		}
		return nil
	}
	if slices.Contains(have, address) {
		return nil
	}
	if err := s.push(kindAddress, "address "+address.String()+" on "+name, newAddress{deviceOf(link), address}); err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, linkAddr(address)); err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "address " + address.String() + " on " + name, Detail: err.Error()}
	}
	return nil
}

// hasAddress tells whether the node's address is among those of an interface. One
// that is kept has the administrator's prefix length.
func hasAddress(have []netip.Prefix, c *proto.Configure) bool {
	return slices.ContainsFunc(have, func(p netip.Prefix) bool {
		return p == c.Address || c.KeepAddress && p.Addr() == c.Address.Addr()
	})
}

func linkAddr(p netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
}

func addresses(link netlink.Link) ([]netip.Prefix, error) {
	list, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_V4) })
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "addresses of " + link.Attrs().Name, Detail: err.Error()}
	}
	var out []netip.Prefix
	for _, a := range list {
		ip, _ := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		out = append(out, netip.PrefixFrom(ip.Unmap(), bits))
	}
	return out, nil
}

// interfaces describes those of the node as they are, without lo.
func interfaces() ([]proto.InterfaceState, error) {
	links, err := netdump.Whole(netlink.LinkList)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "interfaces", Detail: err.Error()}
	}
	var out []proto.InterfaceState
	for _, link := range links {
		if link.Attrs().Flags&net.FlagLoopback != 0 {
			continue
		}
		st := stateOf(link)
		if st.Addresses, err = addresses(link); err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

func stateOf(link netlink.Link) proto.InterfaceState {
	a := link.Attrs()
	return proto.InterfaceState{Name: a.Name, Index: a.Index, Up: a.Flags&net.FlagUp != 0, HardwareAddress: a.HardwareAddr.String(), MTU: a.MTU, TxQueueLen: a.TxQLen}
}

func (s *session) loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "interface lo", Detail: err.Error()}
	}
	if lo.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := s.push(kindDown, "state of lo", wasDown{deviceOf(lo)}); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "bring up lo", Detail: err.Error()}
	}
	return nil
}

func notApplied(what, wanted, got string) error {
	return &proto.Error{Code: proto.CodeNotApplied, What: what, Wanted: wanted, Got: got,
		Remedy: "another program, such as a network manager, may have changed it: stop it for the run"}
}

// verifyInterface compares one interface with the order; address tells whether
// it has the node's.
func (s *session) verifyInterface(name, hardware string, address bool) (proto.InterfaceState, error) {
	c, st := s.cfg, proto.InterfaceState{Name: name}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return st, notApplied("interface "+name, "exists", err.Error())
	}
	st = stateOf(link)
	if st.Addresses, err = addresses(link); err != nil {
		return st, err
	}
	if st.Offloads, err = readOffloads(name); err != nil {
		return st, err
	}
	switch {
	case st.Index != s.links[name]:
		return st, notApplied("index of "+name, fmt.Sprint(s.links[name]), fmt.Sprintf("%d (the interface was replaced)", st.Index))
	case !st.Up:
		return st, notApplied("state of "+name, "up", "down")
	case hardware != "" && !strings.EqualFold(hardware, st.HardwareAddress):
		return st, notApplied("hardware address of "+name, hardware, st.HardwareAddress)
	case c.MTU > 0 && c.MTU != st.MTU:
		return st, notApplied("mtu of "+name, fmt.Sprint(c.MTU), fmt.Sprint(st.MTU))
	case address && c.Address.IsValid() && !hasAddress(st.Addresses, c):
		return st, notApplied("address of "+name, c.Address.String(), fmt.Sprint(st.Addresses))
	}
	if c.OffloadsOff {
		for _, o := range st.Offloads {
			if o.On {
				return st, notApplied(o.Name+" of "+name, "off", "on")
			}
		}
	}
	return st, nil
}

// verifyInterfaces compares lo, every interface and the bridge with the order.
func (s *session) verifyInterfaces(r *proto.Readback) error {
	c := s.cfg
	for _, i := range c.Interfaces {
		st, err := s.verifyInterface(i.Name, i.HardwareAddress, c.Bridge == nil)
		if err != nil {
			return err
		}
		r.Interfaces = append(r.Interfaces, st)
	}
	if c.Bridge != nil {
		var err error
		if r.Bridge, err = s.verifyBridge(); err != nil {
			return err
		}
	}
	if c.Loopback {
		lo, err := netlink.LinkByName("lo")
		if err != nil || lo.Attrs().Flags&net.FlagUp == 0 {
			return notApplied("state of lo", "up", fmt.Sprintf("down (%v)", err))
		}
	}
	return nil
}
