//go:build linux

package route

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

// Verify reads the tables from the kernel and compares every entry. It returns
// how many were compared and equal; the error is a *proto.Error of
// CodeNotApplied for the first that was not.
func (t *Table) Verify(routes []proto.Route, ns []proto.Neighbour) (nr, nn int, err error) {
	if nr, err = t.verifyRoutes(routes); err != nil {
		return nr, 0, err
	}
	nn, err = t.verifyNeighbours(ns)
	return nr, nn, err
}

func (t *Table) verifyRoutes(routes []proto.Route) (equal int, err error) {
	if len(routes) == 0 {
		return 0, nil
	}
	have, err := list()
	if err != nil {
		return 0, err
	}
	var locked map[netip.Prefix]int
	for _, r := range routes {
		if r.CwndCap > 0 && locked == nil {
			if locked, err = lockedCwnds(); err != nil {
				return equal, err
			}
		}
		got, ok := t.matches(r, have[r.Dst.Masked()])
		if cap := locked[r.Dst.Masked()]; r.CwndCap > 0 && cap != r.CwndCap {
			got, ok = fmt.Sprintf("%s, with a locked cwnd of %d", got, cap), false
		}
		if !ok {
			return equal, &proto.Error{Code: proto.CodeNotApplied, What: "route", Wanted: Describe(r), Got: got,
				Remedy: "another program may manage this table: stop it for the run"}
		}
		equal++
	}
	return equal, nil
}

func (t *Table) verifyNeighbours(ns []proto.Neighbour) (equal int, err error) {
	if len(ns) == 0 {
		return 0, nil
	}
	have, err := neighbours()
	if err != nil {
		return 0, err
	}
	for _, n := range ns {
		got := "none"
		if h, ok := have[place{t.links[n.Interface], n.Addr}]; ok {
			got = h.HardwareAddr.String()
			if h.State != netlink.NUD_PERMANENT {
				got += fmt.Sprintf(" (state %#x)", h.State)
			}
		}
		if got != strings.ToLower(n.HardwareAddress) {
			return equal, &proto.Error{Code: proto.CodeNotApplied, What: "permanent neighbour " + n.Addr.String() + " on " + n.Interface, Wanted: n.HardwareAddress, Got: got,
				Remedy: "another program may manage this table: stop it for the run"}
		}
		equal++
	}
	return equal, nil
}

// matches looks for the route that the kernel would use, the one with the
// lowest priority value, among those of one destination.
func (t *Table) matches(want proto.Route, have []netlink.Route) (got string, ok bool) {
	if len(have) == 0 {
		return "none", false
	}
	h := have[0]
	for _, other := range have[1:] {
		if other.Priority < h.Priority {
			h = other
		}
	}
	via, _ := netip.AddrFromSlice(h.Gw)
	via = via.Unmap()
	got = want.Dst.Masked().String()
	if via.IsValid() {
		got += " via " + via.String()
	}
	got += " dev " + nameOf(t.links, h.LinkIndex)
	if h.AdvMSS > 0 {
		got += fmt.Sprintf(" advmss %d", h.AdvMSS)
	}
	if h.QuickACK > 0 {
		got += fmt.Sprintf(" quickack %d", h.QuickACK)
	}
	ok = h.LinkIndex == t.links[want.Interface] && via == want.Via && h.AdvMSS == want.AdvMSS && (h.QuickACK == 1) == want.QuickAck &&
		h.Type == unix.RTN_UNICAST && (via.IsValid() || h.Scope == unix.RT_SCOPE_LINK)
	return got, ok
}

// nameOf is the name of the interface with an index, or "#index" where it is none
// of these.
func nameOf(links map[string]int, link int) string {
	for name, i := range links {
		if i == link {
			return name
		}
	}
	return fmt.Sprintf("#%d", link)
}
