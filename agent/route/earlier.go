//go:build linux

package route

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/internal/netdump"
)

// KindTable is the kind of record by which Table.Replace is undone.
const KindTable = "routes"

// earlier is its data: what was set, and what was there in its place.
type earlier struct {
	Links      map[string]int    `json:"links"`
	Routes     []proto.Route     `json:"routes,omitempty"`
	Neighbours []proto.Neighbour `json:"neighbours,omitempty"`
	// OldRoutes are messages as the kernel gave them (rtnetlink(7)): it knows more
	// of a route than we do.
	OldRoutes     [][]byte       `json:"old_routes,omitempty"`
	OldNeighbours []oldNeighbour `json:"old_neighbours,omitempty"`
}

// oldNeighbour is an entry that was replaced. One that the kernel had learned
// comes back as one that it has to verify.
type oldNeighbour struct {
	Link            int        `json:"link"`
	Addr            netip.Addr `json:"addr"`
	HardwareAddress []byte     `json:"hardware_address,omitempty"`
	State           int        `json:"state"`
	Flags           int        `json:"flags,omitempty"`
}

// Restore is the undo.Func of KindTable: it deletes what was set and puts back
// what was there. What is gone already (the interface was removed, or somebody
// deleted the entry) is not an error: the aim is the earlier state.
var Restore = undo.On(func(_ context.Context, e earlier) error { return e.restore() })

// dump returns the payloads of one kind of the kernel's objects.
func dump(typ, answer int, header nl.NetlinkRequestData) ([][]byte, error) {
	return netdump.Whole(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(typ, unix.NLM_F_DUMP)
		req.AddData(header)
		return req.Execute(unix.NETLINK_ROUTE, uint16(answer))
	})
}

// rawRoutes returns the main table's routes that a replacement of rs would remove:
// those of the same destination, type of service 0 and priority 0.
func rawRoutes(rs []proto.Route) ([][]byte, error) {
	if len(rs) == 0 {
		return nil, nil
	}
	wanted := make(map[netip.Prefix]bool, len(rs))
	for _, r := range rs {
		wanted[r.Dst.Masked()] = true
	}
	m := nl.NewRtMsg()
	m.Family, m.Table = unix.AF_INET, unix.RT_TABLE_MAIN
	msgs, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, m)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "route table", Detail: err.Error()}
	}
	var old [][]byte
	for _, b := range msgs {
		h := nl.DeserializeRtMsg(b)
		attrs, err := nl.ParseRouteAttr(b[h.Len():])
		if err != nil {
			return nil, &proto.Error{Code: proto.CodeSystem, What: "route table", Detail: err.Error()}
		}
		if h.Tos != 0 || h.Flags&unix.RTM_F_CLONED != 0 {
			continue
		}
		dst, table, priority := netip.IPv4Unspecified(), uint32(h.Table), uint32(0)
		for _, a := range attrs {
			switch a.Attr.Type &^ unix.NLA_F_NESTED {
			case unix.RTA_DST:
				dst, _ = netip.AddrFromSlice(a.Value)
			case unix.RTA_TABLE:
				table = nl.NativeEndian().Uint32(a.Value)
			case unix.RTA_PRIORITY:
				priority = nl.NativeEndian().Uint32(a.Value)
			}
		}
		if table == unix.RT_TABLE_MAIN && priority == 0 && wanted[netip.PrefixFrom(dst, int(h.Dst_len))] {
			old = append(old, b)
		}
	}
	return old, nil
}

func (t *Table) earlier(routes []proto.Route, ns []proto.Neighbour) (earlier, error) {
	e := earlier{Links: t.links, Routes: routes, Neighbours: ns}
	var err error
	if e.OldRoutes, err = rawRoutes(routes); err != nil {
		return e, err
	}
	if len(ns) == 0 {
		return e, nil
	}
	have, err := neighbours()
	if err != nil {
		return e, err
	}
	for _, n := range ns {
		at := place{t.links[n.Interface], n.Addr}
		h, ok := have[at]
		if !ok || h.State == netlink.NUD_NONE || h.State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) != 0 {
			continue
		}
		state := h.State
		if state&(netlink.NUD_PERMANENT|netlink.NUD_NOARP) == 0 {
			state = netlink.NUD_STALE
		}
		e.OldNeighbours = append(e.OldNeighbours, oldNeighbour{Link: at.link, Addr: at.addr, HardwareAddress: h.HardwareAddr, State: state, Flags: h.Flags &^ netlink.NTF_EXT_LEARNED})
	}
	return e, nil
}

func (e *earlier) restore() error {
	t := NewTable(e.Links)
	var errs []error
	var reqs []*nl.NetlinkRequest
	for i := len(e.Routes) - 1; i >= 0; i-- {
		// Only requests that were valid were sent; the others set nothing.
		if q, err := t.routeRequest(unix.RTM_DELROUTE, 0, e.Routes[i]); err == nil {
			reqs = append(reqs, q)
		}
	}
	for i := len(e.Neighbours) - 1; i >= 0; i-- {
		if q, err := t.neighbourRequest(unix.RTM_DELNEIGH, 0, e.Neighbours[i]); err == nil {
			reqs = append(reqs, q)
		}
	}
	deletions := len(reqs)
	for _, b := range e.OldRoutes {
		q, err := oldRoute(b)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		reqs = append(reqs, q)
	}
	for _, n := range e.OldNeighbours {
		req := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
		req.AddData(&netlink.Ndmsg{Family: unix.AF_INET, Index: uint32(n.Link), State: uint16(n.State), Flags: uint8(n.Flags)})
		req.AddData(nl.NewRtAttr(netlink.NDA_DST, n.Addr.AsSlice()))
		if len(n.HardwareAddress) > 0 {
			req.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, n.HardwareAddress))
		}
		reqs = append(reqs, req)
	}
	failed, err := send(reqs)
	if err != nil {
		errs = append(errs, err)
	}
	for _, f := range failed {
		switch {
		case gone(f.err), errors.Is(f.err, unix.EEXIST):
		case f.index < deletions:
			errs = append(errs, fmt.Errorf("delete entry %d of %d: %w", f.index+1, deletions, f.err))
		default:
			errs = append(errs, fmt.Errorf("put back entry %d of %d: %w", f.index+1-deletions, len(reqs)-deletions, f.err))
		}
	}
	return errors.Join(errs...)
}

// oldRoute asks for a route as the kernel described it. Appending adds it beside
// others of its destination, and refuses a second one of the same.
func oldRoute(b []byte) (*nl.NetlinkRequest, error) {
	if len(b) < unix.SizeofRtMsg {
		return nil, fmt.Errorf("a route of %d bytes cannot be put back", len(b))
	}
	h := nl.DeserializeRtMsg(b)
	attrs := b[h.Len():]
	req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND)
	m := &nl.RtMsg{RtMsg: h.RtMsg}
	m.Flags &^= unix.RTNH_F_DEAD | unix.RTNH_F_LINKDOWN // states, which the kernel does not take
	req.AddData(m)
	req.AddRawData(attrs)
	return req, nil
}

func gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENETDOWN)
}
