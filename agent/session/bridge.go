//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/route"
)

// bridgeForwarding is BR_STATE_FORWARDING (linux/if_bridge.h).
const bridgeForwarding = 3

// portsWithin bounds the wait until the ports forward: the kernel learns of a
// port's carrier in the background.
const portsWithin = 5 * time.Second

// bridgeSysctls keep a host's packet filter away from what a bridge passes on.
// They exist only where br_netfilter is loaded.
var bridgeSysctls = []string{"net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables", "net.bridge.bridge-nf-call-arptables"}

// ofBridge adds the sysctls of bridges that this kernel has.
func ofBridge(list []proto.Sysctl) []proto.Sysctl {
	for _, key := range bridgeSysctls {
		file, err := sysctlFile(key)
		if err != nil {
			continue
		}
		if _, err := os.Stat(file); err == nil {
			list = append(list, proto.Sysctl{Key: key, Value: "0"})
		}
	}
	return list
}

// applyBridge makes the bridge over all interfaces, with nothing but its static
// table: what it does not find there it drops, and it sends nothing of its own.
// So no ring of bridges can storm, and every frame on a link is the experiment's.
func (s *session) applyBridge(ctx context.Context, c *proto.Configure) error {
	if err := s.createBridge(c.Bridge); err != nil {
		return err
	}
	link, err := netlink.LinkByName(c.Bridge.Name)
	if err != nil {
		return &proto.Error{Code: proto.CodeSystem, What: "bridge " + c.Bridge.Name, Detail: err.Error()}
	}
	s.links[c.Bridge.Name] = link.Attrs().Index
	for _, i := range c.Interfaces {
		if err := s.joinBridge(i.Name, link.Attrs().Index); err != nil {
			return err
		}
	}
	if err := s.applyInterface(link, c); err != nil {
		return err
	}
	if err := s.waitPorts(ctx, c); err != nil {
		return err
	}
	if err := route.NewForwarding(s.links[c.Bridge.Name], s.ports(c)).Replace(c.Bridge.Forward); err != nil {
		return err
	}
	return s.applyAddress(link, c.Address)
}

func (s *session) createBridge(b *proto.Bridge) error {
	what := "bridge " + b.Name
	mac, err := net.ParseMAC(b.HardwareAddress)
	if err != nil || len(mac) != 6 {
		return &proto.Error{Code: proto.CodeOrder, What: what, Got: b.HardwareAddress, Detail: "want a 48-bit hardware address"}
	}
	exists := &proto.Error{Code: proto.CodeOrder, What: what, Detail: "an interface of this name exists, and the agent touches none that it was not given", Remedy: "remove it, or name the bridge otherwise"}
	if _, err := netlink.LinkByName(b.Name); err == nil {
		return exists
	}
	if err := s.push(kindBridge, what, newBridge{b.Name, mac.String()}); err != nil {
		return err
	}
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(b.Name)))
	req.AddData(nl.NewRtAttr(unix.IFLA_ADDRESS, mac))
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("bridge"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_BR_STP_STATE, nl.Uint32Attr(0))
	data.AddRtAttr(nl.IFLA_BR_MCAST_SNOOPING, nl.Uint8Attr(0))
	data.AddRtAttr(nl.IFLA_BR_MCAST_QUERIER, nl.Uint8Attr(0))
	// Without it every static entry would be there twice, once for VLAN 1.
	data.AddRtAttr(nl.IFLA_BR_VLAN_DEFAULT_PVID, nl.Uint16Attr(0))
	req.AddData(info)
	_, err = req.Execute(unix.NETLINK_ROUTE, 0)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return &proto.Error{Code: proto.CodeUnavailable, What: what, Wanted: "bridges (CONFIG_BRIDGE)", Remedy: "modprobe bridge, let the node route (leave `bridge: true` out), or --backend sim"}
	case errors.Is(err, unix.EEXIST):
		return exists
	case err != nil:
		return &proto.Error{Code: proto.CodeSystem, What: what, Detail: err.Error()}
	}
	return nil
}

// portFlags are the settings of a port, all of which are off, with their names
// for errors. Hairpin would send a frame back out where it came from.
var portFlags = []struct {
	name string
	attr int
}{
	{"hairpin", nl.IFLA_BRPORT_MODE},
	{"learning", nl.IFLA_BRPORT_LEARNING},
	{"unicast flooding", nl.IFLA_BRPORT_UNICAST_FLOOD},
	{"multicast flooding", nl.IFLA_BRPORT_MCAST_FLOOD},
	{"broadcast flooding", nl.IFLA_BRPORT_BCAST_FLOOD},
}

// joinBridge makes an interface a port and sets its flags. The port leaves the
// bridge, and loses the flags, when that is deleted.
func (s *session) joinBridge(name string, bridge int) error {
	failed := func(what string, err error) error {
		return &proto.Error{Code: proto.CodeSystem, What: what + " of bridge port " + name, Detail: err.Error()}
	}
	index := s.links[name]
	if err := netlink.LinkSetMasterByIndex(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: index, Name: name}}, bridge); err != nil {
		return failed("addition", err)
	}
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
	msg.Index = int32(index)
	req.AddData(msg)
	port := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	for _, f := range portFlags {
		port.AddRtAttr(f.attr, nl.Uint8Attr(0))
	}
	req.AddData(port)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return failed("settings", err)
	}
	return nil
}

// ports are the indices of the node's interfaces by name.
func (s *session) ports(c *proto.Configure) map[string]int {
	ports := make(map[string]int, len(c.Interfaces))
	for _, i := range c.Interfaces {
		ports[i.Name] = s.links[i.Name]
	}
	return ports
}

// waitPorts waits until every port forwards; which one does not is then left to
// the comparison.
func (s *session) waitPorts(ctx context.Context, c *proto.Configure) error {
	deadline := time.Now().Add(portsWithin)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		all := true
		for _, i := range c.Interfaces {
			p, err := readLinkInfo(s.links[i.Name])
			if err != nil {
				return err
			}
			all = all && flag(p.port, unix.IFLA_BRPORT_STATE) == bridgeForwarding
		}
		if all || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// linkInfo is what a link says of itself as a bridge and as a bridge's port.
type linkInfo struct {
	master       int
	kind, ofKind string // its own and its master's
	bridge, port map[uint16][]byte
}

// flag is the value of an attribute of one byte or more; absent is 0: a kernel
// built without the feature.
func flag(m map[uint16][]byte, attr uint16) int {
	switch v := m[attr]; {
	case len(v) >= 4:
		return int(nl.NativeEndian().Uint32(v))
	case len(v) >= 1:
		return int(v[0])
	}
	return 0
}

func readLinkInfo(index int) (linkInfo, error) {
	var out linkInfo
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	replies, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err == nil && len(replies) != 1 {
		err = fmt.Errorf("%d answers", len(replies))
	}
	if err == nil {
		err = out.parse(replies[0][unix.SizeofIfInfomsg:])
	}
	if err != nil {
		return out, &proto.Error{Code: proto.CodeSystem, What: fmt.Sprintf("bridge state of interface #%d", index), Detail: err.Error()}
	}
	return out, nil
}

func (l *linkInfo) parse(b []byte) error {
	top, err := attributes(b)
	if err != nil {
		return err
	}
	if v := top[unix.IFLA_MASTER]; len(v) == 4 {
		l.master = int(nl.NativeEndian().Uint32(v))
	}
	info, err := attributes(top[unix.IFLA_LINKINFO])
	if err != nil {
		return err
	}
	l.kind, l.ofKind = unix.ByteSliceToString(info[nl.IFLA_INFO_KIND]), unix.ByteSliceToString(info[nl.IFLA_INFO_SLAVE_KIND])
	if l.kind == "bridge" {
		if l.bridge, err = attributes(info[nl.IFLA_INFO_DATA]); err != nil {
			return err
		}
	}
	if l.ofKind == "bridge" {
		l.port, err = attributes(info[nl.IFLA_INFO_SLAVE_DATA])
	}
	return err
}

func attributes(b []byte) (map[uint16][]byte, error) {
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	m := make(map[uint16][]byte, len(list))
	for _, a := range list {
		m[a.Attr.Type&^unix.NLA_F_NESTED] = a.Value
	}
	return m, nil
}

// verifyBridge compares the bridge, its ports and its table with the order.
func (s *session) verifyBridge() (*proto.BridgeState, error) {
	c := s.cfg
	b := c.Bridge
	st, err := s.verifyInterface(b.Name, b.HardwareAddress, true)
	if err != nil {
		return nil, err
	}
	r := &proto.BridgeState{InterfaceState: st}
	l, err := readLinkInfo(st.Index)
	switch {
	case err != nil:
		return nil, err
	case l.kind != "bridge":
		return nil, notApplied("kind of "+b.Name, "bridge", l.kind)
	case flag(l.bridge, nl.IFLA_BR_STP_STATE) != 0:
		return nil, notApplied("spanning tree of "+b.Name, "off", "on")
	case flag(l.bridge, nl.IFLA_BR_MCAST_SNOOPING) != 0:
		return nil, notApplied("multicast snooping of "+b.Name, "off", "on")
	}
	for _, i := range c.Interfaces {
		if err := s.verifyPort(i.Name, st.Index); err != nil {
			return nil, err
		}
		r.Ports = append(r.Ports, i.Name)
	}
	r.Forward, err = route.NewForwarding(st.Index, s.ports(c)).Verify(b.Forward)
	return r, err
}

func (s *session) verifyPort(name string, bridge int) error {
	p, err := readLinkInfo(s.links[name])
	if err != nil {
		return err
	}
	if p.master != bridge || p.ofKind != "bridge" {
		return notApplied("bridge of "+name, fmt.Sprintf("#%d", bridge), fmt.Sprintf("#%d", p.master))
	}
	if v := flag(p.port, unix.IFLA_BRPORT_STATE); v != bridgeForwarding {
		return notApplied("state of bridge port "+name, "forwarding", fmt.Sprintf("%d (0 = no carrier)", v))
	}
	for _, f := range portFlags {
		if flag(p.port, uint16(f.attr)) != 0 {
			return notApplied(f.name+" of bridge port "+name, "off", "on")
		}
	}
	return nil
}
