//go:build linux

package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/agent/undo"
	"github.com/hopbed/hopbed/internal/testenv"
)

// inNamespace runs f in a new network namespace with the ends "wlan0" and "eth0"
// of two veth pairs, all up, on a thread that dies with the goroutine.
func inNamespace(t testing.TB, f func(*Table)) {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS)
	done := make(chan error, 1)
	go func() {
		finished := false
		defer func() {
			if !finished { // t.Fatal on this goroutine
				done <- nil
			}
		}()
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		links := map[string]int{}
		for _, name := range []string{"wlan0", "eth0"} {
			if err == nil {
				err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "of-" + name})
			}
			var link netlink.Link
			for _, end := range []string{"of-" + name, name} {
				if err == nil {
					link, err = netlink.LinkByName(end)
				}
				if err == nil {
					err = netlink.LinkSetUp(link)
				}
			}
			if err == nil {
				links[name] = link.Attrs().Index
				err = netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 77, 0, 1), Mask: net.CIDRMask(32, 32)}})
			}
		}
		if err == nil {
			f(NewTable(links))
		}
		finished = true
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func addr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte((i + 1) >> 8), byte(i + 1)})
}

// records are undo records, as another process gets them.
type records []undo.Record

func (r *records) push(x undo.Record) error {
	b, err := json.Marshal(x)
	if err == nil {
		*r = append(*r, undo.Record{})
		err = json.Unmarshal(b, &(*r)[len(*r)-1])
	}
	return err
}

// revert carries all of them out twice, since a record may be.
func (r *records) revert(c *Caps) error {
	table := undo.Table{KindTable: Restore, KindCaps: c.Forget}
	var errs []error
	for range 2 {
		for i := len(*r) - 1; i >= 0; i-- {
			errs = append(errs, table[(*r)[i].Kind](context.Background(), (*r)[i].Data))
		}
	}
	return errors.Join(errs...)
}

// mesh is what node 0 of n nodes has: its neighbours 1 to 8, the last of them at
// eth0, and everybody else behind one of them.
func mesh(n int) (rs []proto.Route, ns []proto.Neighbour) {
	at := func(neighbour int) string {
		if neighbour == 8 {
			return "eth0"
		}
		return "wlan0"
	}
	for i := 1; i < n; i++ {
		r := proto.Route{Dst: netip.PrefixFrom(addr(i), 32), Interface: at(i)}
		if i > 8 {
			r.Via, r.Interface = addr(1+i%8), at(1+i%8)
		} else {
			ns = append(ns, proto.Neighbour{Interface: at(i), Addr: addr(i), HardwareAddress: fmt.Sprintf("02:68:6f:70:00:%02x", i)})
		}
		rs = append(rs, r)
	}
	return rs, ns
}

func TestRoutesAreSetComparedAndReverted(t *testing.T) {
	inNamespace(t, func(tab *Table) {
		rs, ns := mesh(400)
		rs[20].AdvMSS, rs[21].QuickAck, rs[22].CwndCap = 1024, true, 17
		// What was there before: a route and a neighbour that are replaced, one of
		// each that is not.
		foreign := netlink.Route{LinkIndex: tab.links["wlan0"], Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: net.IPv4(192, 0, 2, 0), Mask: net.CIDRMask(24, 32)}}
		before := netlink.Route{LinkIndex: tab.links["wlan0"], Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: net.IP(addr(30).AsSlice()), Mask: net.CIDRMask(32, 32)}}
		for _, r := range []*netlink.Route{&foreign, &before} {
			if err := netlink.RouteAdd(r); err != nil {
				t.Error(err)
				return
			}
		}
		oldMAC := net.HardwareAddr{2, 0, 0, 0, 0, 1}
		if err := netlink.NeighAdd(&netlink.Neigh{LinkIndex: tab.links["wlan0"], State: netlink.NUD_PERMANENT, IP: net.IP(addr(3).AsSlice()), HardwareAddr: oldMAC}); err != nil {
			t.Error(err)
			return
		}

		var stack records
		err := tab.Replace(stack.push, rs, ns)
		if err != nil {
			t.Error(err)
			return
		}
		nr, nn, err := tab.Verify(rs, ns)
		if err != nil || nr != len(rs) || nn != len(ns) {
			t.Errorf("verify: %d routes, %d neighbours, %v; want %d, %d", nr, nn, err, len(rs), len(ns))
		}
		// Again: replace semantics, no "file exists".
		if err := tab.Replace(nil, rs, ns); err != nil {
			t.Errorf("second replace: %v", err)
		}
		if err := stack.revert(new(Caps)); err != nil {
			t.Errorf("revert: %v", err)
		}
		have, err := list()
		if err != nil {
			t.Error(err)
		}
		if len(have) != 2 || len(have[netip.PrefixFrom(addr(30), 32)]) != 1 {
			t.Errorf("after the revert there are %d destinations, want the 2 from before: %v", len(have), have)
		}
		hn, err := neighbours()
		if err != nil || len(hn) != 1 || hn[place{tab.links["wlan0"], addr(3)}].HardwareAddr.String() != oldMAC.String() {
			t.Errorf("after the revert the neighbours are %v, %v; want the one from before", hn, err)
		}
	})
}

func TestVerifyNamesTheDifference(t *testing.T) {
	inNamespace(t, func(tab *Table) {
		rs, ns := mesh(40)
		rs[22].CwndCap = 17
		if err := tab.Replace(nil, rs, ns); err != nil {
			t.Error(err)
			return
		}
		for _, c := range []struct {
			name   string
			change func() error
			want   []string // parts of the message
		}{
			{"another gateway", func() error {
				err := tab.Replace(nil, []proto.Route{{Interface: "eth0", Dst: netip.PrefixFrom(addr(20), 32), Via: addr(8)}}, nil)
				return err
			}, []string{"10.77.0.21/32 via 10.77.0.6 dev wlan0", "10.77.0.21/32 via 10.77.0.9 dev eth0"}},
			{"another interface", func() error {
				err := tab.Replace(nil, []proto.Route{{Interface: "eth0", Dst: rs[20].Dst, Via: rs[20].Via}}, nil)
				return err
			}, []string{"via 10.77.0.7 dev wlan0", "via 10.77.0.7 dev eth0"}},
			{"a cap that is not locked", func() error {
				dst := rs[22].Dst.Addr().AsSlice()
				return netlink.RouteReplace(&netlink.Route{LinkIndex: tab.links["wlan0"], Flags: int(netlink.FLAG_ONLINK), Gw: net.IP(rs[22].Via.AsSlice()), Cwnd: 17,
					Dst: &net.IPNet{IP: dst, Mask: net.CIDRMask(32, 32)}})
			}, []string{"10.77.0.24", "cwnd lock 17", "a locked cwnd of 0"}},
			{"a neighbour at another interface", func() error {
				if err := netlink.NeighDel(&netlink.Neigh{LinkIndex: tab.links["eth0"], IP: net.IP(addr(8).AsSlice())}); err != nil {
					return err
				}
				return netlink.NeighSet(&netlink.Neigh{LinkIndex: tab.links["wlan0"], State: netlink.NUD_PERMANENT, IP: net.IP(addr(8).AsSlice()), HardwareAddr: net.HardwareAddr{2, 0x68, 0x6f, 0x70, 0, 8}})
			}, []string{"10.77.0.9 on eth0", `got "none"`}},
			{"route deleted", func() error {
				return netlink.RouteDel(&netlink.Route{LinkIndex: tab.links["wlan0"], Dst: &net.IPNet{IP: net.IP(addr(14).AsSlice()), Mask: net.CIDRMask(32, 32)}})
			}, []string{"10.77.0.15/32", `got "none"`}},
			{"neighbour not permanent", func() error {
				return netlink.NeighSet(&netlink.Neigh{LinkIndex: tab.links["wlan0"], State: netlink.NUD_STALE, IP: net.IP(addr(2).AsSlice()), HardwareAddr: net.HardwareAddr{2, 0x68, 0x6f, 0x70, 0, 2}})
			}, []string{"10.77.0.3", "state"}},
			{"metric", func() error {
				err := tab.Replace(nil, []proto.Route{{Interface: "wlan0", Dst: rs[20].Dst, Via: rs[20].Via, AdvMSS: 512}}, nil)
				return err
			}, []string{rs[20].Dst.String(), "advmss 512"}},
		} {
			if err := c.change(); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			_, _, err := tab.Verify(rs, ns)
			notApplied(t, c.name, err, c.want)
			if err := tab.Replace(nil, rs, ns); err != nil {
				t.Errorf("%s: put right: %v", c.name, err)
			}
		}
	})
}

func TestRefusedEntryIsNamed(t *testing.T) {
	inNamespace(t, func(tab *Table) {
		rs, ns := mesh(40)
		rs[17].Via = netip.AddrFrom4([4]byte{224, 0, 0, 1}) // not a unicast gateway
		var stack records
		err := tab.Replace(stack.push, rs, ns)
		if err == nil || !strings.Contains(err.Error(), rs[17].Dst.String()) {
			t.Errorf("error %v, want one that names %v", err, rs[17].Dst)
		}
		if err := stack.revert(new(Caps)); err != nil {
			t.Errorf("revert after a failure: %v", err)
		}
		if have, err := list(); err != nil || len(have) != 0 {
			t.Errorf("after the revert: %v, %v", have, err)
		}
	})
	tab := NewTable(map[string]int{"lo": 1})
	if err := tab.Replace(nil, []proto.Route{{Interface: "lo", Dst: netip.MustParsePrefix("fd00::/64")}}, nil); err == nil {
		t.Error("an IPv6 route was taken")
	}
	err := tab.Replace(nil, []proto.Route{{Interface: "eth9", Dst: netip.MustParsePrefix("192.0.2.1/32")}}, nil)
	if err == nil || !strings.Contains(err.Error(), `"one of the interfaces lo", got "eth9"`) {
		t.Errorf("a route through an interface that the table does not have: %v", err)
	}
}

func BenchmarkReplaceAndVerify400(b *testing.B) {
	inNamespace(b, func(tab *Table) {
		rs, ns := mesh(400)
		for b.Loop() {
			if err := tab.Replace(nil, rs, ns); err != nil {
				b.Error(err)
			}
			if _, _, err := tab.Verify(rs, ns); err != nil {
				b.Error(err)
			}
		}
	})
}

// notApplied checks an error of code not-applied: the parts of its message, and
// that it says what to do.
func notApplied(t *testing.T, name string, err error, want []string) {
	t.Helper()
	e, ok := errors.AsType[*proto.Error](err)
	if !ok || e.Code != proto.CodeNotApplied || e.Remedy == "" {
		t.Errorf("%s: %v, want a not-applied error with a remedy", name, err)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", name, err, w)
		}
	}
}
