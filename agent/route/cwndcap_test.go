//go:build linux

package route

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/hopbed/hopbed/agent/proto"
)

// The cap is in the kernel's cache before any connection leaves the node, and
// gone after the revert; nothing else of the node changes.
func TestCapsAreInTheKernelsCache(t *testing.T) {
	inNamespace(t, func(tab *Table) {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			t.Error(err)
			return
		}
		if err := writeNoMetricsSave("1"); err != nil {
			t.Error(err)
			return
		}
		routes, ns := mesh(40)
		routes[0].CwndCap, routes[30].CwndCap = 7, 65535
		if err := tab.Replace(nil, routes, ns); err != nil {
			t.Error(err)
			return
		}
		src := addr(0)
		var caps Caps
		for range 2 { // again: replace semantics
			var stack records
			if err := caps.Enforce(stack.push, src, routes); err != nil {
				t.Error(err)
				return
			}
			for i, want := range map[int]int{0: 7, 1: 0, 30: 65535} {
				if got, err := cachedCwnd(src, routes[i].Dst.Addr()); err != nil || got != want {
					t.Errorf("the cache has %d for %v, %v; want %d", got, routes[i].Dst, err, want)
				}
			}
			if v := readNoMetricsSave(t); v != "1" {
				t.Errorf("tcp_no_metrics_save is %s", v)
			}
			for _, r := range routes {
				if local, err := netlink.RouteGet(r.Dst.Addr().AsSlice()); err != nil || len(local) != 1 || local[0].LinkIndex == loopback {
					t.Errorf("the way to %v is %v, %v", r.Dst, local, err)
				}
			}
			if err := VerifyCaps(src, routes); err != nil {
				t.Error(err)
			}
			if err := stack.revert(&caps); err != nil {
				t.Error(err)
			}
			err := VerifyCaps(src, routes)
			var e *proto.Error
			if !errors.As(err, &e) || e.Code != proto.CodeNotApplied || !strings.Contains(err.Error(), `wanted "7", got "0"`) {
				t.Errorf("after the revert: %v", err)
			}
		}
		err = caps.Enforce(new(records).push, src, []proto.Route{{Interface: "wlan0", Dst: netip.MustParsePrefix("10.78.0.0/16"), CwndCap: 3}})
		if err == nil || !strings.Contains(err.Error(), "one address") {
			t.Errorf("a cap on a network: %v", err)
		}
	})
}

const noMetricsSave = "/proc/sys/net/ipv4/tcp_no_metrics_save"

func writeNoMetricsSave(v string) error { return os.WriteFile(noMetricsSave, []byte(v), 0) }

func readNoMetricsSave(t *testing.T) string {
	b, err := os.ReadFile(noMetricsSave)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(b))
}
