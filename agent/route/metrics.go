//go:build linux

package route

import (
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

// lockedCwnds returns the locked congestion window metrics of the main table's
// IPv4 routes by destination, in segments. The library reads the value of the
// metric, but not whether it is locked, and an unlocked one has no effect
// (ip-route(8)).
func lockedCwnds() (map[netip.Prefix]int, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
	req.AddData(nl.NewIfInfomsg(unix.AF_INET))
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
	if err != nil {
		return nil, &proto.Error{Code: proto.CodeSystem, What: "metrics of the route table", Detail: err.Error()}
	}
	locked := make(map[netip.Prefix]int)
	for _, m := range msgs {
		head := nl.DeserializeRtMsg(m)
		if head.Table != unix.RT_TABLE_MAIN {
			continue
		}
		attrs, err := nl.ParseRouteAttr(m[head.Len():])
		if err != nil {
			return nil, &proto.Error{Code: proto.CodeSystem, What: "metrics of the route table", Detail: err.Error()}
		}
		dst := netip.IPv4Unspecified()
		var locks, cwnd uint32
		for _, a := range attrs {
			switch a.Attr.Type {
			case unix.RTA_DST:
				if v, ok := netip.AddrFromSlice(a.Value); ok {
					dst = v
				}
			case unix.RTA_METRICS:
				metrics, err := nl.ParseRouteAttr(a.Value)
				if err != nil {
					return nil, &proto.Error{Code: proto.CodeSystem, What: "metrics of the route table", Detail: err.Error()}
				}
				for _, v := range metrics {
					switch {
					case len(v.Value) < 4:
					case v.Attr.Type == unix.RTAX_LOCK:
						locks = nl.NativeEndian().Uint32(v.Value)
					case v.Attr.Type == unix.RTAX_CWND:
						cwnd = nl.NativeEndian().Uint32(v.Value)
					}
				}
			}
		}
		if locks&(1<<unix.RTAX_CWND) != 0 {
			locked[netip.PrefixFrom(dst, int(head.Dst_len))] = int(cwnd)
		}
	}
	return locked, nil
}
