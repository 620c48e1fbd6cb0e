//go:build linux

package session

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/netdump"
)

// checkProtected refuses a configuration that would cut the controller's own way
// to the node: of an interface that has a protected address or through which one
// is reached, or of a route to one. Nothing has been changed yet.
func checkProtected(c *proto.Configure) error {
	if len(c.Protect) == 0 {
		return nil
	}
	ours := names(c)
	if c.Radio != nil {
		ours = append(ours, c.Radio.Interface)
	}
	byIndex := make(map[int]string, len(ours))
	for _, name := range ours {
		link, err := netlink.LinkByName(name)
		if _, gone := errors.AsType[netlink.LinkNotFoundError](err); gone {
			continue // it carries nothing yet
		}
		if err != nil {
			return &proto.Error{Code: proto.CodeSystem, What: "interface " + name, Detail: err.Error()}
		}
		byIndex[link.Attrs().Index] = name
	}
	for _, p := range c.Protect {
		p = p.Unmap()
		for _, r := range c.Routes {
			if r.Dst.Contains(p) {
				return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: "route to " + r.Dst.String(), Detail: fmt.Sprintf("it would lead traffic to the controller's connection (%v) through %s, and cut it", p, r.Interface),
					Remedy: "give the nodes experiment addresses of a network of their own (inventory: `experiment:`)"}
			}
		}
		name, err := carrier(p, byIndex)
		if err != nil {
			return err
		}
		if name != "" {
			return &proto.Error{Code: proto.CodeOrder, Node: c.Name, What: "interface " + name, Detail: fmt.Sprintf("the controller's connection goes through it (%v), and configuring it would cut that", p),
				Remedy: "name another interface in the inventory, or reach the node over another one"}
		}
	}
	return nil
}

// carrier is the interface among those with the given indices that has an address
// or through which it is reached; "" = none of them.
func carrier(p netip.Addr, byIndex map[int]string) (string, error) {
	failed := func(err error) error {
		return &proto.Error{Code: proto.CodeSystem, What: "the way to " + p.String(), Detail: err.Error()}
	}
	list, err := netdump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return "", failed(err)
	}
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.Unmap() == p.WithZone("") && byIndex[a.LinkIndex] != "" {
			return byIndex[a.LinkIndex], nil
		}
	}
	if zone := p.Zone(); zone != "" { // fe80::1%wlan0
		for i, name := range byIndex {
			if name == zone || fmt.Sprint(i) == zone {
				return name, nil
			}
		}
		return "", nil
	}
	routes, err := netlink.RouteGet(net.IP(p.AsSlice()))
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ESRCH):
		return "", nil
	case err != nil:
		return "", failed(err)
	}
	for _, r := range routes {
		if name := byIndex[r.LinkIndex]; name != "" {
			return name, nil
		}
	}
	return "", nil
}
