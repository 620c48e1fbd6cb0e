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
func (t *Table) Verify(routes []proto.Route, neighbours []proto.Neighbour) (nr, nn int, err error) {
	if len(routes) > 0 {
		have, err := list()
		if err != nil {
			return 0, 0, err
		}
		for _, r := range routes {
			if got, ok := t.matches(r, have[r.Dst.Masked()]); !ok {
				return nr, 0, &proto.Error{Code: proto.CodeNotApplied, What: "route on " + t.name, Wanted: Describe(r), Got: got,
					Remedy: "another program may manage this table: stop it for the run"}
			}
			nr++
		}
	}
	if len(neighbours) > 0 {
		have, err := t.neighbours()
		if err != nil {
			return nr, 0, err
		}
		for _, n := range neighbours {
			got := "none"
			h, ok := have[n.Addr]
			if ok {
				got = h.HardwareAddr.String()
				if h.State != netlink.NUD_PERMANENT {
					got += fmt.Sprintf(" (state %#x)", h.State)
				}
			}
			if got != strings.ToLower(n.HardwareAddress) {
				return nr, nn, &proto.Error{Code: proto.CodeNotApplied, What: "permanent neighbour " + n.Addr.String() + " on " + t.name, Wanted: n.HardwareAddress, Got: got}
			}
			nn++
		}
	}
	return nr, nn, nil
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
	if h.LinkIndex != t.link {
		got += fmt.Sprintf(" dev #%d", h.LinkIndex)
	}
	if h.AdvMSS > 0 {
		got += fmt.Sprintf(" advmss %d", h.AdvMSS)
	}
	if h.QuickACK > 0 {
		got += fmt.Sprintf(" quickack %d", h.QuickACK)
	}
	ok = h.LinkIndex == t.link && via == want.Via && h.AdvMSS == want.AdvMSS && (h.QuickACK == 1) == want.QuickAck &&
		h.Type == unix.RTN_UNICAST && (via.IsValid() || h.Scope == unix.RT_SCOPE_LINK)
	return got, ok
}
