//go:build linux

package route

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/internal/netdump"
)

// Protocol marks our routes (rtm_protocol), so that a person who looks at a
// node sees who set them; values above RTPROT_STATIC are free to use
// (linux/rtnetlink.h).
const Protocol = 0x68

// Table is the main table's part on some interfaces. Use it on the thread of the
// namespace that it was made in.
type Table struct {
	links map[string]int // index by name
}

// NewTable returns the table of the interfaces with the given names and indices.
func NewTable(links map[string]int) *Table { return &Table{links: links} }

// link returns the index of an entry's interface.
func (t *Table) link(name, what string) (int, error) {
	if i, ok := t.links[name]; ok {
		return i, nil
	}
	return 0, &proto.Error{Code: proto.CodeOrder, What: what, Got: name, Wanted: "one of the interfaces " + strings.Join(slices.Sorted(maps.Keys(t.links)), ", ")}
}

// Replace sets every route and neighbour, replacing what is there for the same
// destination. Before, push takes the record by which the earlier state is put
// back (KindTable); nil: nobody wants it. An error is a *proto.Error that names
// the first entry which the kernel refused.
func (t *Table) Replace(push undo.Push, routes []proto.Route, neighbours []proto.Neighbour) error {
	if len(routes)+len(neighbours) == 0 {
		return nil
	}
	old, err := t.earlier(routes, neighbours)
	if err != nil {
		return err
	}
	if push != nil {
		if err := push(undo.New(KindTable, fmt.Sprintf("%d routes and %d neighbours", len(routes), len(neighbours)), old)); err != nil {
			return err
		}
	}
	var reqs []*nl.NetlinkRequest
	for _, n := range neighbours {
		r, err := t.neighbourRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, n)
		if err != nil {
			return err
		}
		reqs = append(reqs, r)
	}
	for _, r := range routes {
		q, err := t.routeRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, r)
		if err != nil {
			return err
		}
		reqs = append(reqs, q)
	}
	failed, err := send(reqs)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "routes and neighbours", Detail: err.Error()}
	}
	if len(failed) == 0 {
		return nil
	}
	f := failed[0]
	what := ""
	if f.index < len(neighbours) {
		n := neighbours[f.index]
		what = "neighbour " + n.Addr.String() + " dev " + n.Interface
	} else {
		what = "route " + Describe(routes[f.index-len(neighbours)])
	}
	return &proto.Error{Code: proto.CodeSystem, What: what,
		Detail: fmt.Sprintf("the kernel refused it: %v (%d of %d entries refused)", f.err, len(failed), len(reqs))}
}

// Describe writes a route as iproute2 does.
func Describe(r proto.Route) string {
	s := r.Dst.String()
	if r.Via.IsValid() {
		s += " via " + r.Via.String()
	}
	s += " dev " + r.Interface
	if r.Via.IsValid() {
		s += " onlink"
	} else {
		s += " scope link"
	}
	if r.CwndCap > 0 {
		s += fmt.Sprintf(" cwnd lock %d", r.CwndCap)
	}
	if r.AdvMSS > 0 {
		s += fmt.Sprintf(" advmss %d", r.AdvMSS)
	}
	if r.QuickAck {
		s += " quickack 1"
	}
	return s
}

func (t *Table) routeRequest(command, flags int, r proto.Route) (*nl.NetlinkRequest, error) {
	if !r.Dst.IsValid() || !r.Dst.Addr().Is4() || r.Via.IsValid() && !r.Via.Is4() {
		return nil, &proto.Error{Code: proto.CodeOrder, What: "route " + Describe(r), Detail: "it is not an IPv4 route"}
	}
	link, err := t.link(r.Interface, "route "+Describe(r))
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(command, flags)
	m := nl.NewRtMsg()
	m.Family = unix.AF_INET
	m.Dst_len = uint8(r.Dst.Bits())
	m.Protocol = Protocol
	if r.Via.IsValid() {
		m.RtMsg.Flags = unix.RTNH_F_ONLINK
	} else {
		m.Scope = unix.RT_SCOPE_LINK
	}
	req.AddData(m)
	dst := r.Dst.Masked().Addr().As4()
	req.AddData(nl.NewRtAttr(unix.RTA_DST, dst[:]))
	if r.Via.IsValid() {
		via := r.Via.As4()
		req.AddData(nl.NewRtAttr(unix.RTA_GATEWAY, via[:]))
	}
	req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(link))))
	if r.AdvMSS > 0 || r.QuickAck || r.CwndCap > 0 {
		metrics := nl.NewRtAttr(unix.RTA_METRICS, nil)
		if r.CwndCap > 0 {
			metrics.AddRtAttr(unix.RTAX_LOCK, nl.Uint32Attr(1<<unix.RTAX_CWND))
			metrics.AddRtAttr(unix.RTAX_CWND, nl.Uint32Attr(uint32(r.CwndCap)))
		}
		if r.AdvMSS > 0 {
			metrics.AddRtAttr(unix.RTAX_ADVMSS, nl.Uint32Attr(uint32(r.AdvMSS)))
		}
		if r.QuickAck {
			metrics.AddRtAttr(unix.RTAX_QUICKACK, nl.Uint32Attr(1))
		}
		req.AddData(metrics)
	}
	return req, nil
}

func (t *Table) neighbourRequest(command, flags int, n proto.Neighbour) (*nl.NetlinkRequest, error) {
	mac, err := net.ParseMAC(n.HardwareAddress)
	if err != nil || len(mac) != 6 || !n.Addr.Is4() {
		return nil, &proto.Error{Code: proto.CodeOrder, What: "neighbour " + n.Addr.String(), Got: n.HardwareAddress, Detail: "want an IPv4 address and a 48-bit hardware address"}
	}
	link, err := t.link(n.Interface, "neighbour "+n.Addr.String())
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(command, flags)
	req.AddData(&netlink.Ndmsg{Family: unix.AF_INET, Index: uint32(link), State: netlink.NUD_PERMANENT})
	addr := n.Addr.As4()
	req.AddData(nl.NewRtAttr(netlink.NDA_DST, addr[:]))
	req.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, mac))
	return req, nil
}

// list returns the main table's IPv4 routes by destination, of every
// interface.
func list() (map[netip.Prefix][]netlink.Route, error) {
	rs, err := netdump.Whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "route table", Detail: err.Error()}
	}
	by := make(map[netip.Prefix][]netlink.Route, len(rs))
	for _, r := range rs {
		p := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if r.Dst != nil {
			a, _ := netip.AddrFromSlice(r.Dst.IP)
			bits, _ := r.Dst.Mask.Size()
			p = netip.PrefixFrom(a.Unmap(), bits)
		}
		by[p] = append(by[p], r)
	}
	return by, nil
}

// place is where a neighbour entry is: every interface has its own.
type place struct {
	link int
	addr netip.Addr
}

// neighbours returns the IPv4 neighbours on every interface.
func neighbours() (map[place]netlink.Neigh, error) {
	ns, err := netdump.Whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_V4) })
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "neighbour table", Detail: err.Error()}
	}
	by := make(map[place]netlink.Neigh, len(ns))
	for _, n := range ns {
		if a, ok := netip.AddrFromSlice(n.IP); ok {
			by[place{n.LinkIndex, a.Unmap()}] = n
		}
	}
	return by, nil
}
