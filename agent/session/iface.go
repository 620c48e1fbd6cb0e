//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/netem/vtime"
)

// waitInterface returns the interface, waiting at most for the given time
// until it exists and, where an address is expected, has it: the emulator
// gives it only after the creation. An address that is still another at the
// end is left to the comparison.
func waitInterface(ctx context.Context, name, hardware string, wait vtime.Duration) (netlink.Link, error) {
	ready := func(l netlink.Link) bool {
		return hardware == "" || strings.EqualFold(l.Attrs().HardwareAddr.String(), hardware)
	}
	// The subscription comes before the look, so that no creation is missed.
	updates, done := make(chan netlink.LinkUpdate, 64), make(chan struct{})
	if wait > 0 {
		if err := netlink.LinkSubscribe(updates, done); err != nil {
			return nil, &proto.Error{Code: proto.CodeSystem, What: "interface " + name, Detail: "netlink subscription: " + err.Error()}
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
	link, err := netlink.LinkByName(name)
	if err == nil && (wait <= 0 || ready(link)) {
		return link, nil
	}
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); err != nil && !missing {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "interface " + name, Detail: err.Error()}
	}
	if wait <= 0 {
		return nil, &proto.Error{Code: proto.CodeOrder, What: "interface " + name, Detail: "it does not exist", Remedy: "check the inventory's interface name"}
	}
	timer := time.NewTimer(wait.Std())
	defer timer.Stop()
	for {
		select {
		case u, ok := <-updates:
			if !ok {
				return nil, &proto.Error{Code: proto.CodeSystem, What: "interface " + name, Detail: "the netlink subscription ended"}
			}
			if u.Header.Type != unix.RTM_NEWLINK || u.Link.Attrs().Name != name {
				continue
			}
			if link = u.Link; ready(link) {
				return link, nil
			}
		case <-timer.C:
			if link != nil {
				return link, nil
			}
			return nil, &proto.Error{Code: proto.CodeTimeout, What: "interface " + name, Detail: fmt.Sprintf("it did not appear within %v", wait), Remedy: "the emulator creates it: see its log"}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// applyInterface sets MTU, offloads, the interface's own sysctls, brings it up
// and gives it the address.
func (s *session) applyInterface(ctx context.Context, c *proto.Configure) error {
	link, err := waitInterface(ctx, c.Interface, c.HardwareAddress, c.WaitInterface)
	if err != nil {
		return err
	}
	a := link.Attrs()
	s.link = a.Index
	if c.MTU > 0 && a.MTU != c.MTU {
		old := a.MTU
		s.undo.push("mtu of "+c.Interface, func() error { return goneIsFine(netlink.LinkSetMTU(link, old)) })
		if err := netlink.LinkSetMTU(link, c.MTU); err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "mtu of " + c.Interface, Wanted: fmt.Sprint(c.MTU), Got: fmt.Sprint(old), Detail: err.Error()}
		}
	}
	if c.OffloadsOff {
		if err := s.offloadsOff(c.Interface); err != nil {
			return err
		}
	}
	if err := s.applySysctls(s.sysctls, func(key string) bool { return namesInterface(key, c.Interface) }); err != nil {
		return err
	}
	if a.Flags&net.FlagUp == 0 {
		s.undo.push("state of "+c.Interface, func() error { return goneIsFine(netlink.LinkSetDown(link)) })
		if err := netlink.LinkSetUp(link); err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "bring up " + c.Interface, Detail: err.Error()}
		}
	}
	if !c.Address.IsValid() {
		return nil
	}
	have, err := addresses(link)
	if err != nil {
		return err
	}
	for _, p := range have {
		if p == c.Address {
			return nil
		}
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: net.IP(c.Address.Addr().AsSlice()), Mask: net.CIDRMask(c.Address.Bits(), c.Address.Addr().BitLen())}}
	s.undo.push("address "+c.Address.String(), func() error { return goneIsFine(netlink.AddrDel(link, addr)) })
	if err := netlink.AddrReplace(link, addr); err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "address " + c.Address.String() + " on " + c.Interface, Detail: err.Error()}
	}
	return nil
}

// goneIsFine: an interface that was removed took its settings with it.
func goneIsFine(err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func addresses(link netlink.Link) ([]netip.Prefix, error) {
	list, err := netlink.AddrList(link, netlink.FAMILY_V4)
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

func (s *session) loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "interface lo", Detail: err.Error()}
	}
	if lo.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	s.undo.push("state of lo", func() error { return netlink.LinkSetDown(lo) })
	if err := netlink.LinkSetUp(lo); err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "bring up lo", Detail: err.Error()}
	}
	return nil
}

// verifyInterface compares the interface with the order.
func verifyInterface(c *proto.Configure, index int) (*proto.Readback, error) {
	link, err := netlink.LinkByName(c.Interface)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeNotApplied, What: "interface " + c.Interface, Wanted: "exists", Got: err.Error()}
	}
	a := link.Attrs()
	r := &proto.Readback{Interface: a.Name, Index: a.Index, Up: a.Flags&net.FlagUp != 0, HardwareAddress: a.HardwareAddr.String(), MTU: a.MTU, TxQueueLen: a.TxQLen}
	if r.Addresses, err = addresses(link); err != nil {
		return nil, err
	}
	if r.Offloads, err = readOffloads(c.Interface); err != nil {
		return nil, err
	}
	notApplied := func(what, wanted, got string) error {
		return &proto.Error{Code: proto.CodeNotApplied, What: what, Wanted: wanted, Got: got}
	}
	hasAddress := !c.Address.IsValid()
	for _, p := range r.Addresses {
		hasAddress = hasAddress || p == c.Address
	}
	switch {
	case a.Index != index:
		return nil, notApplied("index of "+c.Interface, fmt.Sprint(index), fmt.Sprintf("%d (the interface was replaced)", a.Index))
	case !r.Up:
		return nil, notApplied("state of "+c.Interface, "up", "down")
	case c.HardwareAddress != "" && !strings.EqualFold(c.HardwareAddress, r.HardwareAddress):
		return nil, notApplied("hardware address of "+c.Interface, c.HardwareAddress, r.HardwareAddress)
	case c.MTU > 0 && c.MTU != r.MTU:
		return nil, notApplied("mtu of "+c.Interface, fmt.Sprint(c.MTU), fmt.Sprint(r.MTU))
	case !hasAddress:
		return nil, notApplied("address of "+c.Interface, c.Address.String(), fmt.Sprint(r.Addresses))
	}
	if c.OffloadsOff {
		for _, o := range r.Offloads {
			if o.On {
				return nil, notApplied(o.Name+" of "+c.Interface, "off", "on")
			}
		}
	}
	if c.Loopback {
		lo, err := netlink.LinkByName("lo")
		if err != nil || lo.Attrs().Flags&net.FlagUp == 0 {
			return nil, notApplied("state of lo", "up", fmt.Sprintf("down (%v)", err))
		}
	}
	return r, nil
}
