//go:build linux

package route

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
)

func TestForwardingTableOfABridge(t *testing.T) {
	inNamespace(t, func(tab *Table) {
		off, none := false, uint16(0)
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}, MulticastSnooping: &off, VlanDefaultPVID: &none}
		err := netlink.LinkAdd(br)
		for _, index := range tab.links {
			port := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: index}}
			if err == nil {
				err = netlink.LinkSetMasterByIndex(port, br.Index)
			}
			if err == nil {
				err = netlink.LinkSetLearning(port, false)
			}
		}
		if err == nil {
			err = netlink.LinkSetUp(br)
		}
		if err != nil {
			t.Error(err)
			return
		}
		f := NewForwarding(br.Index, tab.links)
		var entries []proto.Forward
		for i := range 400 {
			e := proto.Forward{HardwareAddress: fmt.Sprintf("02:68:6F:70:%02X:%02x", i>>8, i&255), Interface: "wlan0"}
			if i%3 == 0 {
				e.Interface = "eth0"
			}
			entries = append(entries, e)
		}
		for range 2 { // again: replace semantics
			if err := f.Replace(entries); err != nil {
				t.Error(err)
				return
			}
		}
		if n, err := f.Verify(entries); err != nil || n != len(entries) {
			t.Errorf("%d of %d entries are equal, %v", n, len(entries), err)
		}
		set := func(mac net.HardwareAddr, port string, state int) error {
			return netlink.NeighSet(&netlink.Neigh{LinkIndex: tab.links[port], Family: unix.AF_BRIDGE, State: state, Flags: netlink.NTF_MASTER, HardwareAddr: mac})
		}
		mac := net.HardwareAddr{2, 0x68, 0x6f, 0x70, 0, 6}
		for _, c := range []struct {
			name   string
			change func() error
			want   []string
		}{
			{"another port", func() error { return set(mac, "wlan0", netlink.NUD_NOARP) }, []string{entries[6].HardwareAddress, `wanted "dev eth0"`, "dev wlan0"}},
			{"an entry that ages", func() (err error) {
				// A port takes such entries once the kernel has seen its carrier.
				for range 400 {
					if err = set(mac, "eth0", netlink.NUD_REACHABLE); err == nil {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				return err
			}, []string{entries[6].HardwareAddress, "state 0x2"}},
			{"an entry too many", func() error { return set(net.HardwareAddr{2, 1, 1, 1, 1, 1}, "eth0", netlink.NUD_NOARP) }, []string{"02:01:01:01:01:01", `wanted "none"`}},
		} {
			if err := c.change(); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			_, err := f.Verify(entries)
			notApplied(t, c.name, err, c.want)
			if err := f.Replace(entries); err != nil {
				t.Errorf("%s: put right: %v", c.name, err)
			}
		}
		bad := []proto.Forward{{HardwareAddress: "02:68:6f:70:00:01", Interface: "lo"}}
		if err := f.Replace(bad); err == nil || !strings.Contains(err.Error(), "dev lo") {
			t.Errorf("an entry at an interface that is no port: %v", err)
		}
	})
}
