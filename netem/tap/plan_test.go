package tap

import (
	"net/netip"
	"testing"
)

func TestAddressPlan(t *testing.T) {
	for i, want := range map[int][2]string{
		0:            {"10.77.0.1", "02:68:6f:70:00:00"},
		254:          {"10.77.0.255", "02:68:6f:70:00:fe"},
		255:          {"10.77.1.0", "02:68:6f:70:00:ff"},
		256:          {"10.77.1.1", "02:68:6f:70:01:00"},
		999:          {"10.77.3.232", "02:68:6f:70:03:e7"},
		MaxNodes - 1: {"10.77.253.232", "02:68:6f:70:fd:e7"},
	} {
		if a, m := Addr(i), HardwareAddr(i); a.String() != want[0] || m.String() != want[1] {
			t.Errorf("node %d has %v and %v, want %v", i, a, m, want)
		}
	}
}

// Every node has addresses of its own, which lead back to it.
func TestAddressesAreInvertible(t *testing.T) {
	addrs := map[netip.Addr]bool{}
	for i := range MaxNodes {
		a, m := Addr(i), HardwareAddr(i)
		if addrs[a] {
			t.Fatalf("node %d shares %v", i, a)
		}
		addrs[a] = true
		if j, ok := NodeOf(a); !ok || j != i {
			t.Fatalf("%v leads to node %d, %v; want %d", a, j, ok, i)
		}
		if j, ok := NodeOfHardware(m); !ok || j != i {
			t.Fatalf("%v leads to node %d, %v; want %d", m, j, ok, i)
		}
		if m.Multicast() {
			t.Fatalf("%v is a group address", m)
		}
	}
}

func TestForeignAddressesHaveNoNode(t *testing.T) {
	for _, s := range []string{"10.77.0.0", "10.76.0.1", "11.77.0.1", "10.77.255.255", "::1", "2001:db8::1"} {
		if i, ok := NodeOf(netip.MustParseAddr(s)); ok {
			t.Errorf("%s is node %d", s, i)
		}
	}
	if i, ok := NodeOf(netip.MustParseAddr("::ffff:10.77.0.1")); !ok || i != 0 {
		t.Error("an IPv4-mapped address is the same node")
	}
	for _, m := range []HardwareAddress{{2, 'h', 'o', 'q'}, {0, 'h', 'o', 'p'}, {2, 'h', 'o', 'p', 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		if i, ok := NodeOfHardware(m); ok {
			t.Errorf("%v is node %d", m, i)
		}
	}
	if !(HardwareAddress{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).Multicast() {
		t.Error("broadcast is a group address")
	}
}

func TestOutsideThePlanIsAProgrammingError(t *testing.T) {
	for _, i := range []int{-1, MaxNodes} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("node %d has an address", i)
				}
			}()
			Addr(i)
		}()
	}
}

func TestParseCounters(t *testing.T) {
	const file = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 wlan0: 18446744073709551615 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
`
	got, err := parseCounters([]byte(file), "wlan0")
	want := Counters{ReceivedBytes: 1<<64 - 1, Received: 2, ReceiveErrors: 3, ReceiveDropped: 4, SentBytes: 9, Sent: 10, TransmitErrors: 11, TransmitDropped: 12}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got.Sub(want) != (Counters{}) || want.Add(Counters{Sent: 1}).Sent != 11 {
		t.Error("sums and differences")
	}
	for _, bad := range []string{"wlan0: 1 2 3\n", " wlan0: x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "wlan1: 1\n", ""} {
		if _, err := parseCounters([]byte(bad), "wlan0"); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
