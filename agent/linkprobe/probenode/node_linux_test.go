package probenode

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/hopbed/hopbed/agent/probe"
	"github.com/hopbed/hopbed/agent/proto"
	"github.com/hopbed/hopbed/internal/testenv"
	"github.com/hopbed/hopbed/netem/vtime"
)

// cable makes a namespace of this test's thread with a cable in it: what is sent at
// one end arrives at the other.
func cable(t *testing.T) {
	t.Helper()
	testenv.Need(t, testenv.Root, testenv.NetNS)
	runtime.LockOSThread() // for good: the thread ends with the test, and the namespace with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "left"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "right"}); err != nil {
		t.Fatal(err)
	}
	for name, addr := range map[string]string{"left": "10.0.0.1/32", "right": "10.0.0.2/32"} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		a, err := netlink.ParseAddr(addr)
		if err == nil {
			err = errors.Join(netlink.AddrAdd(l, a), netlink.LinkSetUp(l))
		}
		if err != nil {
			t.Fatal(err)
		}
		// Both ends are this host's: elsewhere a packet from an own address is none.
		for key, value := range map[string]string{"accept_local": "1", "rp_filter": "0"} {
			// /proc/sys/net is that of the opening thread.
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/"+key, []byte(value), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func probes(n int, period vtime.Duration) proto.Probe {
	return proto.Probe{EpochNS: probe.MonotonicNS() + int64(200*time.Millisecond), Period: period, Count: n, Size: 134, Seed: 1, Tag: 7}
}

// Two nodes hear all of each other's probes over a cable, by broadcasts that no
// route leads anywhere.
func TestNodesHearEachOther(t *testing.T) {
	cable(t)
	o := probes(30, 20*vtime.Millisecond)
	a, err := Start(0, "left", o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Start(1, "right", o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	deadline := time.Now().Add(20 * time.Second)
	done := func(n *Node) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		h := n.prober.Heard()
		return h.Sent == 30 && len(h.From) == 1 && h.From[0].Received == 30
	}
	for !(done(a) && done(b)) && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, n := range []*Node{a, b} {
		h, err := n.Heard()
		if err != nil || h.Sent != 30 || len(h.From) != 1 || h.From[0].Node != 1-h.Node || h.From[0].Received != 30 || h.From[0].Missing != nil {
			t.Errorf("%+v, %v", h, err)
		}
	}
	a.Close() // again
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	cable(t)
	code := func(err error) proto.Code {
		var e *proto.Error
		if errors.As(err, &e) {
			return e.Code
		}
		return ""
	}
	if _, err := Start(0, "nowhere", probes(5, vtime.Second)); code(err) != proto.CodeSystem {
		t.Errorf("an interface that is not there: %v", err)
	}
	late := probes(5, vtime.Second)
	late.EpochNS = probe.MonotonicNS() - 1
	if _, err := Start(0, "left", late); code(err) != proto.CodeOrder {
		t.Errorf("an epoch that has passed: %v", err)
	}
	if _, err := Start(0, "left", probes(0, vtime.Second)); code(err) != proto.CodeOrder {
		t.Errorf("no probes: %v", err)
	}
	a, err := Start(0, "left", probes(5, vtime.Second))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(1, "left", probes(5, vtime.Second)); code(err) != proto.CodeSystem {
		t.Errorf("twice on one interface: %v", err)
	}
	a.Close()
	if b, err := Start(1, "left", probes(5, vtime.Second)); err != nil {
		t.Errorf("after it was closed: %v", err)
	} else {
		b.Close()
	}
}

// An interface that goes away makes the counts worthless, and that is said.
func TestAnInterfaceThatGoesAway(t *testing.T) {
	cable(t)
	a, err := Start(0, "left", probes(1000, 10*vtime.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	l, err := netlink.LinkByName("left")
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	failed := func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.failed != nil }
	for deadline := time.Now().Add(20 * time.Second); !failed() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if h, err := a.Heard(); err == nil {
		t.Errorf("heard %+v on an interface that is gone", h)
	}
}
