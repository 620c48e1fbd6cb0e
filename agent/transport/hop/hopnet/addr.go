package hopnet

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hopbed/hopbed/agent/transport/hop"
)

// NodeID names a node. Every node of a network has one of its own, 1 to
// 4,294,967,294. Text has it as a number (7) or, as it is mostly a host's IPv4
// address, as one (10.0.0.2).
type NodeID uint32

// noNode is hop's mark of a next hop that is not known.
const noNode = NodeID(^hop.NodeID(0))

// Valid reports whether the id may name a node.
func (id NodeID) Valid() bool { return id != 0 && id != noNode }

// String returns the id as an IPv4 address, or as a number when it is below
// 65,536.
func (id NodeID) String() string {
	if id < 1<<16 {
		return strconv.FormatUint(uint64(id), 10)
	}
	return netip.AddrFrom4([4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}).String()
}

// MarshalText is String.
func (id NodeID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is ParseNodeID.
func (id *NodeID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseNodeID(string(b))
	return err
}

// ParseNodeID reads a number or an IPv4 address.
func ParseNodeID(s string) (NodeID, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Is4() {
		if id := IDOf(a); id.Valid() {
			return id, nil
		}
	} else if n, err := strconv.ParseUint(s, 10, 32); err == nil && NodeID(n).Valid() {
		return NodeID(n), nil
	}
	return 0, fmt.Errorf("hopnet: node id %q is neither an IPv4 address nor a number from 1 to %d", s, noNode-1)
}

// IDOf returns the id that has the text of an IPv4 address; 0 for another
// address.
func IDOf(a netip.Addr) NodeID {
	if a = a.Unmap(); !a.Is4() {
		return 0
	}
	b := a.As4()
	return NodeID(b[0])<<24 | NodeID(b[1])<<16 | NodeID(b[2])<<8 | NodeID(b[3])
}

// Service is what a listener is found by at its node, as a port is in TCP.
type Service uint16

// Addr is a service at a node; net.Addr.
type Addr struct {
	Node    NodeID
	Service Service
}

// Network returns "hop".
func (Addr) Network() string { return "hop" }

// String returns "NODE:SERVICE".
func (a Addr) String() string { return a.Node.String() + ":" + strconv.Itoa(int(a.Service)) }

// DefaultPort is the UDP port of a Hop node where nothing else is said.
const DefaultPort = 4410

// resolve finds the address of "host:port", "host" or ":port" (any address).
func resolve(s string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), strconv.Itoa(DefaultPort)
	}
	if port == "" {
		port = strconv.Itoa(DefaultPort)
	}
	a, err := net.ResolveUDPAddr("udp", net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("hopnet: address %q: %w (want HOST or HOST:PORT)", s, err)
	}
	ap := a.AddrPort()
	if !ap.Addr().IsValid() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), ap.Port()), nil
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}
