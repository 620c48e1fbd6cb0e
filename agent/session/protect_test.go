//go:build linux

package session_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopbed/hopbed/agent/proto"
)

// An order that would cut the controller's own way is refused before anything is
// changed.
func TestTheControllersWayIsNotTouched(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	a := m.start(0, "--guarded", "--journal", dir)
	addr := netip.MustParseAddr
	before := m.state()
	for _, c := range []struct {
		name   string
		change func(*proto.Configure)
		want   []string // of the error; nil: it is taken
	}{
		{"the node's own address", func(c *proto.Configure) {
			c.Interfaces = []proto.Interface{{Name: "eth0"}}
			c.Protect = []netip.Addr{addr("192.0.2.7")}
		}, []string{"eth0", "192.0.2.7", "another interface"}},
		{"a controller on the same network", func(c *proto.Configure) {
			c.Interfaces = append(c.Interfaces, proto.Interface{Name: "eth0"})
			c.Protect = []netip.Addr{addr("192.0.2.99")}
		}, []string{"eth0", "192.0.2.99"}},
		{"a controller behind a router", func(c *proto.Configure) {
			c.Interfaces = []proto.Interface{{Name: "eth0"}}
			c.Protect = []netip.Addr{addr("198.51.100.1")}
		}, []string{"eth0", "198.51.100.1"}},
		{"as an IPv6 socket names it", func(c *proto.Configure) {
			c.Interfaces = []proto.Interface{{Name: "eth0"}}
			c.Protect = []netip.Addr{addr("::ffff:198.51.100.1")}
		}, []string{"eth0"}},
		{"a link-local address", func(c *proto.Configure) { c.Protect = []netip.Addr{addr("fe80::1%wlan0")} }, []string{"wlan0"}},
		{"a route over it", func(c *proto.Configure) {
			c.Protect = []netip.Addr{addr("10.77.0.5")}
		}, []string{"route to 10.77.0.5/32", "network of their own"}},
		{"another interface", func(c *proto.Configure) {
			c.Protect = []netip.Addr{addr("192.0.2.7"), addr("192.0.2.99"), addr("198.51.100.1"), addr("127.0.0.1"), addr("fe80::1%eth0"), addr("2001:db8::1")}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := m.order()
			c.change(cfg)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := a.client.Configure(ctx, cfg)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.client.Revert(ctx); err != nil {
					t.Fatal(err)
				}
			} else {
				wantError(t, err, proto.CodeOrder, append(c.want, "n01")...)
			}
			m.compare(before)
		})
	}
}

// The address of a node that has it already is neither changed nor removed, with
// whatever prefix length the administrator gave it.
func TestAddressIsKept(t *testing.T) {
	m, dir := newMachine(t), filepath.Join(t.TempDir(), "undo")
	a := m.start(0, "--guarded", "--journal", dir)
	cfg := m.order()
	cfg.KeepAddress = true
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	before := m.state()
	_, err := a.client.Configure(ctx, cfg)
	wantError(t, err, proto.CodeNotApplied, "n01", "address of wlan0", "kept: 10.77.0.1")
	m.compare(before)
	m.run("ip", strings.Fields("addr add 10.77.0.1/16 dev wlan0")...)
	before = m.state()
	r, err := a.client.Configure(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Interfaces[0].Addresses; len(got) != 1 || got[0] != netip.MustParsePrefix("10.77.0.1/16") {
		t.Errorf("the addresses are %v", got)
	}
	if rev, err := a.client.Revert(ctx); err != nil || len(rev.Failed) > 0 {
		t.Errorf("%+v, %v", rev, err)
	}
	m.compare(before)
}
