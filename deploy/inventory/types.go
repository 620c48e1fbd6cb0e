package inventory

import (
	"net/netip"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Inventory is a lab.
type Inventory struct {
	Path  string // of the file, for messages
	Nodes []Node // in the order of the file; at least one
}

// Node is one real node. What the file leaves out of how it is reached is for
// ssh_config to say.
type Node struct {
	Name     string   // unique; the node's name in experiments
	Line     int      // in the file
	Address  string   // host name or address; empty = Name, as ssh_config knows it
	User     string   // empty = ssh_config's, else the current user
	Port     int      // 0 = ssh_config's, else 22
	Identity []string // key files, tried in this order before the agent's; empty = ssh_config's
	Jump     []string // hosts between, "[user@]host[:port]", the nearest to us first; nil = ssh_config's; empty and not nil = none
	// KnownHosts are files in place of ssh_config's.
	KnownHosts []string
	// Sudo runs the agent by `sudo -n`. The default is to do so where the user is
	// not root.
	Sudo *bool
	// Dir is where the agent is kept on the node; empty = ~/.cache/hopbed.
	Dir  string
	Tags []string

	// Interface is the one that experiments use, and Experiment the node's address
	// on it; an invalid one is assigned by its place in the inventory.
	Interface  string
	Experiment netip.Prefix
	Radio      Radio
}

// Radio is the lab's part of a node's radio; the rest is the experiment's.
type Radio struct {
	Driver  string // of agent/radio: madwifi, nl80211, none
	Mode    string // adhoc, mesh, station, ap
	Network string
	BSSID   string
	Channel int
	TxPower *vtime.DBm
}
