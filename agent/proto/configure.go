package proto

import (
	"encoding/json"
	"net/netip"

	"github.com/hopbed/hopbed/agent/radio"
	"github.com/hopbed/hopbed/netem/tc"
	"github.com/hopbed/hopbed/netem/vtime"
)

// Configure makes a namespace or a host into the experiment's node. What is
// left out is left alone. It replaces an earlier configuration only after a
// revert.
type Configure struct {
	Node int    `json:"node"` // index in the experiment's node order
	Name string `json:"name"`
	// Interfaces are those that the agent may touch, the radio's before the wired
	// ones; there is at least one.
	Interfaces []Interface `json:"interfaces"`
	// WaitInterfaces bounds the wait for all of them to appear (the emulator
	// creates them); 0 means that they must be there already.
	WaitInterfaces vtime.Duration `json:"wait_interfaces_ns,omitempty"`
	// Bridge joins the interfaces at the link layer; nil: the node routes
	// between them.
	Bridge *Bridge `json:"bridge,omitempty"`
	// Address is the node's, on each of the interfaces or on the bridge alone.
	Address netip.Prefix `json:"address"`
	MTU     int          `json:"mtu,omitempty"` // of every interface and the bridge; 0 = leave
	// OffloadsOff switches TSO, GSO and GRO off, so that a packet on an
	// interface is a packet on the link.
	OffloadsOff bool `json:"offloads_off,omitempty"`
	// Loopback brings lo up.
	Loopback   bool        `json:"loopback,omitempty"`
	Sysctls    []Sysctl    `json:"sysctls,omitempty"` // in this order; read back in this order
	Routes     []Route     `json:"routes,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`

	// Peers maps node ids to addresses, this node included, for the transports
	// that route by themselves (Hop, relays).
	Peers []Peer `json:"peers,omitempty"`
	// NextHops is the node-level route table, for the same transports.
	NextHops []NextHop `json:"next_hops,omitempty"`
	// Ports says which of the node's transmission queues leads to a neighbour; a
	// neighbour that is left out has port 0.
	Ports []Port `json:"ports,omitempty"`
	// Board gives the queue board of the emulated links (netem/board); nil where
	// the node has a real radio.
	Board *Board `json:"board,omitempty"`
	// Radio is what is to be set at the node's radio; nil where the medium is
	// emulated.
	Radio *radio.Config `json:"radio,omitempty"`
	// Shapers are links that the node's kernel emulates, in the order of
	// Interfaces; one at most for each.
	Shapers []tc.Link `json:"shapers,omitempty"`
	// Protect are addresses that must stay reachable as they are: the controller's.
	// A configuration that would change an interface which carries them is refused.
	Protect []netip.Addr `json:"protect,omitempty"`
	// KeepAddress: the interfaces have the node's address already, and lose nothing.
	KeepAddress bool `json:"keep_address,omitempty"`
	// Hop holds the fields of hop.Config that differ from its defaults, as
	// JSON, decoded strictly; absent = defaults.
	Hop json.RawMessage `json:"hop,omitempty"`
	// Flows are those in which this node is source, destination or relay.
	Flows []Flow `json:"flows,omitempty"`
	// Switches are the moments at which the experiment switches the node off and on
	// again, in turn: its transports lose their memory (transport.Restarter). No flow
	// begins or ends at such a node.
	Switches []Switch `json:"switches,omitempty"`
	// SampleInterval is the time between samples; 0 = 100 ms.
	SampleInterval vtime.Duration `json:"sample_interval_ns,omitempty"`
}

// Switch is a moment at which a node is switched off or on.
type Switch struct {
	T  vtime.Time `json:"t_ns"` // on the run's clock
	Up bool       `json:"up"`
}

// Interface is one interface of the node.
type Interface struct {
	Name string `json:"name"` // "wlan0", "eth0"
	// HardwareAddress is the interface's expected MAC address ("02:68:…");
	// empty = not compared. The agent never sets it.
	HardwareAddress string `json:"hardware_address,omitempty"`
}

// Bridge is a bridge over all interfaces of the node. It forwards by its static
// table alone: it neither learns nor floods, and sends nothing of its own (no
// spanning tree, no multicast queries).
type Bridge struct {
	Name            string    `json:"name"` // "br0"
	HardwareAddress string    `json:"hardware_address"`
	Forward         []Forward `json:"forward,omitempty"`
}

// Forward is one static entry of the bridge's forwarding table.
type Forward struct {
	HardwareAddress string `json:"hardware_address"` // destination of the frame
	Interface       string `json:"interface"`        // through which it leaves
}

// Sysctl is one setting below /proc/sys, named with slashes or dots
// ("net.ipv4.ip_forward").
type Sysctl struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Route is one entry of the main table. An invalid Via means that the
// destination is a neighbour (scope link); else the route is "onlink", since
// every node has a /32 address.
type Route struct {
	Interface string       `json:"interface"` // the bridge's, where there is one
	Dst       netip.Prefix `json:"dst"`
	Via       netip.Addr   `json:"via,omitzero"`
	// AdvMSS is the MSS that connections over this route advertise, in bytes;
	// 0 = the kernel's.
	AdvMSS int `json:"advmss,omitempty"`
	// QuickAck acknowledges every segment at once (ip route "quickack 1").
	QuickAck bool `json:"quickack,omitempty"`
	// CwndCap is the most that a congestion window over this route grows to, in
	// segments (ip route "cwnd lock N"); 0 = no cap.
	CwndCap int `json:"cwnd_cap,omitempty"`
}

// Neighbour is one permanent entry of the neighbour table.
type Neighbour struct {
	Interface       string     `json:"interface"` // the bridge's, where there is one
	Addr            netip.Addr `json:"addr"`
	HardwareAddress string     `json:"hardware_address"`
}

// Peer is one node of the experiment.
type Peer struct {
	Node int        `json:"node"`
	Addr netip.Addr `json:"addr"`
}

// NextHop says that packets for node Dst go to the neighbour Via.
type NextHop struct {
	Dst int `json:"dst"`
	Via int `json:"via"`
}

// Port says through which of the node's queues packets for the neighbour Node
// leave: 0 is the radio's, 1+s the queue of the wired interface number s.
type Port struct {
	Node int `json:"node"`
	Port int `json:"port"`
}

// Board names the descriptors of the emulator's queue board: inherited ones, or
// those of another process on this host.
type Board struct {
	// PID, if not 0, is the process that has the descriptors (pidfd_getfd(2)), for
	// agents that were not started by their controller.
	PID     int `json:"pid,omitempty"`
	MemFD   int `json:"mem_fd"`   // memfd shared with the emulator
	EventFD int `json:"event_fd"` // this node's eventfd
	// Nodes is the number of nodes on the board.
	Nodes int `json:"nodes"`
	// Pipes has the board's queue of each wired interface, in their order
	// (2·pipe + end).
	Pipes []int `json:"pipes,omitempty"`
}
