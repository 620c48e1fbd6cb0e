package tap

import (
	"fmt"
	"net"
	"net/netip"
)

// Interface is the name of the radio's interface inside every node.
const Interface = "wlan0"

// MTU of the radio's interface in bytes: an Ethernet payload, so that a frame
// on the air carries what the kernel would put on a wire.
const MTU = 1500

// MaxNodes is the number of nodes that the address plan has room for.
const MaxNodes = 65000

// HardwareAddress is a 48-bit MAC address as a value: it can be compared and
// used as a map key.
type HardwareAddress [6]byte

// String writes the address as "02:68:6f:70:00:07".
func (a HardwareAddress) String() string { return net.HardwareAddr(a[:]).String() }

// Multicast says whether the frame goes to more than one station (the group
// bit of IEEE 802); the broadcast address is one of them.
func (a HardwareAddress) Multicast() bool { return a[0]&1 != 0 }

// Addr is the address of node i (counted from 0): 10.77.0.1 for the first. It
// panics outside the plan, because every i has passed validation long before.
func Addr(i int) netip.Addr {
	check(i)
	return netip.AddrFrom4([4]byte{10, 77, byte((i + 1) >> 8), byte(i + 1)})
}

// NodeOf inverts Addr; ok is false for an address outside the plan.
func NodeOf(a netip.Addr) (i int, ok bool) {
	a = a.Unmap()
	if !a.Is4() {
		return 0, false
	}
	b := a.As4()
	i = int(b[2])<<8 | int(b[3])
	i--
	return i, b[0] == 10 && b[1] == 77 && i >= 0 && i < MaxNodes
}

// HardwareAddr is the MAC address of node i, locally administered: 02:"hop":i.
// It panics outside the plan.
func HardwareAddr(i int) HardwareAddress {
	check(i)
	return HardwareAddress{0x02, 'h', 'o', 'p', byte(i >> 8), byte(i)}
}

// NodeOfHardware inverts HardwareAddr.
func NodeOfHardware(a HardwareAddress) (i int, ok bool) {
	i = int(a[4])<<8 | int(a[5])
	return i, a[0] == 0x02 && a[1] == 'h' && a[2] == 'o' && a[3] == 'p' && i < MaxNodes
}

// MaxPipes is the number of wired interfaces that a node may have.
const MaxPipes = 250

// PipeHardwareAddr is the MAC address of the wired interface number slot of
// node i: 02:"p":0:slot:i. It panics outside the plan.
func PipeHardwareAddr(i, slot int) HardwareAddress {
	check(i)
	if slot < 0 || slot >= MaxPipes {
		panic(fmt.Sprintf("tap: wired interface %d of node %d is outside the address plan (0 to %d)", slot, i, MaxPipes-1))
	}
	return HardwareAddress{0x02, 'p', 0, byte(slot), byte(i >> 8), byte(i)}
}

// NodeOfPipeHardware inverts PipeHardwareAddr.
func NodeOfPipeHardware(a HardwareAddress) (i, slot int, ok bool) {
	i, slot = int(a[4])<<8|int(a[5]), int(a[3])
	return i, slot, a[0] == 0x02 && a[1] == 'p' && a[2] == 0 && slot < MaxPipes && i < MaxNodes
}

func check(i int) {
	if i < 0 || i >= MaxNodes {
		panic(fmt.Sprintf("tap: node %d is outside the address plan (0 to %d)", i, MaxNodes-1))
	}
}

// Sysctl is one setting below /proc/sys, named with dots.
type Sysctl struct{ Key, Value string }

// NodeSysctls are the settings of an emulated node's namespace, in the order in
// which they must be written: IPv6 off before an interface comes up (no
// duplicate address detection or router solicitation on the air), forwarding
// before the per-interface values that it resets.
func NodeSysctls() []Sysctl {
	return []Sysctl{
		{"net.ipv6.conf.all.disable_ipv6", "1"},
		{"net.ipv6.conf.default.disable_ipv6", "1"},
		{"net.ipv4.ip_forward", "1"},
		{"net.ipv4.conf.all.rp_filter", "0"},
		{"net.ipv4.conf.default.rp_filter", "0"},
		{"net.ipv4.conf.all.send_redirects", "0"},
		{"net.ipv4.conf.default.send_redirects", "0"},
		{"net.ipv4.conf.all.accept_redirects", "0"},
		{"net.ipv4.conf.default.accept_redirects", "0"},
		{"net.ipv4.tcp_no_metrics_save", "1"},
	}
}
