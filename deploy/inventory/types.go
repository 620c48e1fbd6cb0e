package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hopbed/hopbed/netem/vtime"
)

// Inventory is a lab.
type Inventory struct {
	Path  string // of the file, for messages
	Nodes []Node // in the order of the file; at least one
	// Network is what the experiment addresses lie in.
	Network netip.Prefix
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
	// KnownHosts are files in place of ssh_config's. Like those of Identity they are
	// absolute, relative to the working folder, or begin with ~/.
	KnownHosts []string
	// Sudo runs the agent by `sudo -n`. The default is to do so where the user is
	// not root.
	Sudo *bool
	// Dir is where the agent is kept on the node; empty = ~/.cache/hopbed.
	Dir  string
	Tags []string

	// Interface is the one that experiments use, empty where the file names none;
	// Experiment is the node's address on it: the file's, or assigned by the node's
	// place.
	Interface  string
	Experiment netip.Prefix
	Radio      Radio
}

// Radio is the lab's part of a node's radio; the rest is the experiment's.
type Radio struct {
	Driver  string // of agent/radio: madwifi, nl80211, none (the default)
	Mode    string // adhoc, ahdemo, mesh, station, ap
	Network string // the SSID, or the mesh's id
	BSSID   string // lower case, with colons
	Channel int    // 0 = the experiment's, or as it is
	TxPower *vtime.DBm
	Device  string // madwifi: the base device; nl80211: the phy; empty = the driver's default
}

// Tagged returns the nodes that have any of the tags, in the order of the file; all
// of them when no tag is given. It is an error when none has one.
func (v *Inventory) Tagged(tags []string) (*Inventory, error) {
	if len(tags) == 0 {
		return v, nil
	}
	out := &Inventory{Path: v.Path, Network: v.Network}
	var known []string
	for _, n := range v.Nodes {
		known = append(known, n.Tags...)
		if slices.ContainsFunc(n.Tags, func(t string) bool { return slices.Contains(tags, t) }) {
			out.Nodes = append(out.Nodes, n)
		}
	}
	if len(out.Nodes) > 0 {
		return out, nil
	}
	slices.Sort(known)
	there := "it has no tags"
	if known = slices.Compact(known); len(known) > 0 {
		there = "its tags are " + strings.Join(known, ", ")
	}
	return nil, fmt.Errorf("%s: no node has the tag %s; %s", v.Path, strings.Join(tags, " or "), there)
}

// Node returns the node of a name.
func (v *Inventory) Node(name string) (*Node, bool) {
	for i := range v.Nodes {
		if v.Nodes[i].Name == name {
			return &v.Nodes[i], true
		}
	}
	return nil, false
}
