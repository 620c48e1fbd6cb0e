//go:build linux

package route

import (
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/netdump"
)

// Forwarding is the table of a bridge: static entries, which it neither learns
// nor forgets. The table vanishes with the bridge, so that nothing needs to be
// put back.
type Forwarding struct {
	bridge int            // index
	ports  map[string]int // index by name
}

// NewForwarding returns the table of the bridge with the given index and ports.
func NewForwarding(bridge int, ports map[string]int) *Forwarding {
	return &Forwarding{bridge: bridge, ports: ports}
}

// Replace sets every entry. The error is a *proto.Error that names the first
// which the kernel refused.
func (f *Forwarding) Replace(entries []proto.Forward) error {
	var reqs []*nl.NetlinkRequest
	for _, e := range entries {
		port, ok := f.ports[e.Interface]
		mac, err := net.ParseMAC(e.HardwareAddress)
		if err != nil || len(mac) != 6 || !ok {
			return &proto.Error{Code: proto.CodeOrder, What: "bridge entry " + e.HardwareAddress + " dev " + e.Interface, Detail: "want a 48-bit hardware address and a port of the bridge"}
		}
		req := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
		// NUD_NOARP is what iproute2 calls static: not the bridge's own address
		// (NUD_PERMANENT), and never aged.
		req.AddData(&netlink.Ndmsg{Family: unix.AF_BRIDGE, Index: uint32(port), State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER})
		req.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, mac))
		reqs = append(reqs, req)
	}
	failed, err := send(reqs)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "forwarding table of the bridge", Detail: err.Error()}
	}
	if len(failed) == 0 {
		return nil
	}
	e := entries[failed[0].index]
	return &proto.Error{Code: proto.CodeSystem, What: "bridge entry " + e.HardwareAddress + " dev " + e.Interface,
		Detail: fmt.Sprintf("the kernel refused it: %v (%d of %d entries refused)", failed[0].err, len(failed), len(reqs))}
}

// Verify reads the table from the kernel and compares every entry. It returns
// how many were equal; the error is a *proto.Error of CodeNotApplied for the
// first that was not, or for an entry that nobody ordered: the bridge would have
// learned it.
func (f *Forwarding) Verify(entries []proto.Forward) (equal int, err error) {
	list, err := netdump.Whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_BRIDGE) })
	if err != nil {
		return 0, &proto.Error{Code: proto.CodeSystem, What: "forwarding table of the bridge", Detail: err.Error()}
	}
	have := make(map[string]netlink.Neigh, len(list))
	for _, n := range list {
		if n.MasterIndex != f.bridge || n.State == netlink.NUD_PERMANENT {
			continue // another bridge's, or the bridge's own address
		}
		have[n.HardwareAddr.String()] = n
	}
	for _, e := range entries {
		key := strings.ToLower(e.HardwareAddress)
		got := "none"
		if h, ok := have[key]; ok {
			got = fmt.Sprintf("dev %s (state %#x)", nameOf(f.ports, h.LinkIndex), h.State)
			if h.State == netlink.NUD_NOARP && h.LinkIndex == f.ports[e.Interface] {
				delete(have, key)
				equal++
				continue
			}
		}
		return equal, &proto.Error{Code: proto.CodeNotApplied, What: "static bridge entry " + e.HardwareAddress, Wanted: "dev " + e.Interface, Got: got,
			Remedy: "another program may manage this bridge: stop it for the run"}
	}
	for key, h := range have {
		return equal, &proto.Error{Code: proto.CodeNotApplied, What: "bridge entry " + key, Wanted: "none", Got: fmt.Sprintf("dev %s (state %#x)", nameOf(f.ports, h.LinkIndex), h.State),
			Remedy: "another program may manage this bridge: stop it for the run"}
	}
	return equal, nil
}
